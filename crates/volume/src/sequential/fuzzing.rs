//! Entry points for the fuzz targets in `fuzz/` to the parsers of a sequential volume: quanta, logs
//! of them, states and access times.
//!
//! **Not part of the API.** See [`crate::fuzzing`].

use super::header::layout as layout_of;
use super::log::{LOG_OBJECT, LogPosition, LogReader, RingLog};
use super::parity::Parity;
use super::quantum::{Filling, Quantum, QuantumEntry, QuantumForm};
use super::reads::DiskReads;
use super::state_places::{StateForm, StatePlaces};
use super::times::{self, TIMES_OBJECT};
use crate::fuzzing::Key;
use crate::header::HeaderCopies;
use crate::trust::ComputerId;
use crate::{Error, Result};
use oblivio_crypto::{OsEntropy, Passphrase, Prf, SEAL_HEADER, Sealer, TAG_BYTES, Tag, VolumeId};
use oblivio_engine::BlockId;
use oblivio_engine::sequential::Layout;
use oblivio_store::{Held, Log, MemoryStore, ReadAt, Slots, WriteAt};

const VOLUME: VolumeId = VolumeId([7; 16]);
/// The form of the quanta here.
const FORM: QuantumForm = QuantumForm::new(BLOCK_BYTES, QUANTUM_WRITES).with_parity();
/// Bytes of a block of the quanta here.
pub const BLOCK_BYTES: usize = 64;
/// Writes that fit in one of them.
pub const QUANTUM_WRITES: usize = 5;
/// Quanta that fit in a log here.
pub const QUANTA: u64 = 8;

/// One entry of a quantum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A block was written.
    Write(u64, Vec<u8>),
    /// A block was made absent.
    Discard(u64),
    /// This many empty writes.
    Padding(u64),
    /// A session of this computer begins.
    Session([u8; 16]),
}

impl Said {
    fn entry(&self) -> QuantumEntry<'_> {
        match self {
            Said::Write(block, content) => QuantumEntry::Write(BlockId(*block), content),
            Said::Discard(block) => QuantumEntry::Discard(BlockId(*block)),
            Said::Padding(count) => QuantumEntry::Padding(*count),
            Said::Session(computer) => QuantumEntry::Session(ComputerId(*computer)),
        }
    }
}

/// Everything that a quantum says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct All {
    /// The number of its first write.
    pub first_write: u64,
    /// The writes below it were durable.
    pub durable: u64,
    /// The root, if it has one.
    pub root: Option<Vec<u8>>,
    /// Its entries.
    pub entries: Vec<Said>,
}

fn all(quantum: &Quantum<'_>) -> All {
    let said = |entry| match entry {
        QuantumEntry::Write(block, content) => Said::Write(block.0, <[u8]>::to_vec(content)),
        QuantumEntry::Discard(block) => Said::Discard(block.0),
        QuantumEntry::Padding(count) => Said::Padding(count),
        QuantumEntry::Session(computer) => Said::Session(computer.0),
    };
    All {
        first_write: quantum.first_write,
        durable: quantum.durable,
        root: quantum.root.map(<[u8]>::to_vec),
        entries: quantum.entries().map(|entry| said(entry.expect("it was parsed"))).collect(),
    }
}

/// Bytes of a quantum's plaintext.
pub fn quantum_bytes() -> usize {
    FORM.sealed_bytes() - SEAL_HEADER - TAG_BYTES
}

/// Parses an opened quantum.
pub fn quantum(plain: &[u8]) -> Option<All> {
    Quantum::parse(FORM, plain).map(|quantum| all(&quantum))
}

/// The plaintext of a quantum.
pub fn quantum_of(all: &All) -> Vec<u8> {
    let mut filling = Filling::new(FORM, all.first_write);
    all.entries.iter().for_each(|said| filling.add(said.entry()));
    all.root.iter().for_each(|root| filling.set_root(root));
    let (buf, form) = filling.finish(Tag::default(), all.durable);
    buf[SEAL_HEADER..form.sealed_bytes() - TAG_BYTES].to_vec()
}

fn ring(key: Key, entropy: u64) -> RingLog {
    let parity = Parity::new(Prf::from_seed(key.0));
    let form = (FORM, QUANTA);
    RingLog::new(VOLUME, (key.sealer(entropy), parity), DiskReads::default(), form, None)
}

/// A log of these quanta, each synced, and what each then says; another `entropy` makes it another
/// session's.
///
/// # Errors
/// Those of the log.
pub fn log(key: Key, entropy: u64, quanta: &[Vec<Said>]) -> Result<(Vec<u8>, Vec<All>)> {
    let (store, mut log) = (MemoryStore::new(), ring(key, entropy));
    store.allocate(LOG_OBJECT, RingLog::object_bytes(FORM, QUANTA))?;
    let (mut write, mut written) = (0, Vec::new());
    for (number, entries) in quanta.iter().enumerate() {
        let (first_write, durable) = (write, number as u64);
        let root = vec![number as u8; number];
        log.set_root(write, &root);
        for said in entries.iter().take(QUANTUM_WRITES) {
            log.add(&store, write, said.entry())?;
            write += 1;
        }
        log.close()?;
        log.sync(&store)?;
        let entries = entries.iter().take(QUANTUM_WRITES).cloned().collect();
        written.push(All { first_write, durable, root: Some(root), entries });
    }
    let mut bytes = vec![0; store.len(LOG_OBJECT)?.unwrap_or(0) as usize];
    store.read(&mut [ReadAt { object: LOG_OBJECT, offset: 0, buf: &mut bytes }])?;
    Ok((bytes, written))
}

/// Reads a log from its beginning, as an opening does.
///
/// # Errors
/// Those of the log.
pub fn read_log(key: Key, bytes: &[u8]) -> Result<Vec<All>> {
    let (store, mut log) = (MemoryStore::new(), ring(key, 9));
    store.write(&[WriteAt::new(LOG_OBJECT, 0, bytes)])?;
    store.truncate(LOG_OBJECT, RingLog::object_bytes(FORM, QUANTA))?;
    let (mut reader, mut read) = (LogReader::new(LogPosition::default()), Vec::new());
    while let Some(opened) = reader.next(&mut log, &store)? {
        let nonsense = || Error::Tampered("a quantum makes no sense".into());
        read.push(all(&opened.quantum().ok_or_else(nonsense)?));
    }
    log.refuse_hole(&store, LogPosition::default(), reader.at())?;
    Ok(read)
}

/// The part that [`edit`] edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditedPart {
    /// The newest state.
    State,
    /// The access times.
    Times,
}

/// Gives the plaintext of a part of a volume to `edit` and makes the outcome current, as a
/// passphrase holder could. Its length stays the same.
///
/// # Errors
/// If the volume is not sound to begin with, or has no such part.
pub fn edit(
    store: &MemoryStore,
    passphrase: &Passphrase,
    part: EditedPart,
    edit: impl FnOnce(&mut Vec<u8>),
) -> Result<()> {
    let (header, master) = HeaderCopies::read(store, |_| Ok(()))?.0.unlock(passphrase)?;
    let volume = header.volume();
    let sealer = |root| Sealer::new(root, Box::new(OsEntropy)).hiding();
    let parameters = layout_of(&header.parameters());
    let layout =
        Layout::new(&parameters.engine).map_err(|error| Error::Tampered(error.to_string()))?;
    let (states, form) = (sealer(master.state_root(volume)), StateForm::of(&parameters, &layout));
    let mut places = StatePlaces::new(volume, states, form);
    let reads = DiskReads::default();
    let mut state = places.read(store, &reads)?.state;
    if part == EditedPart::Times {
        let mut seal = sealer(master.times_root(volume));
        let bytes = layout.schedule().access_time_bytes() as usize;
        let (of, none) = ((volume, state.epoch), || Error::Tampered("it has no times".into()));
        let identity = state.times.ok_or_else(none)?;
        let plain = times::read((store, &reads), &mut seal, (TIMES_OBJECT, of), identity, bytes)?;
        let mut plain = plain.ok_or_else(none)?;
        edit(&mut plain);
        plain.resize(bytes, 0);
        state.times = Some(times::write(store, &mut seal, (TIMES_OBJECT, of), &plain)?);
        return places.write(store, &state).map(drop);
    }
    let mut sealed = state.to_bytes(places.rows());
    let mut plain = sealed.split_off(SEAL_HEADER);
    edit(&mut plain);
    sealed.extend_from_slice(&plain);
    sealed.resize(places.bytes() as usize, 0);
    let place = places.place(state.epoch);
    let done = sealer(master.state_root(volume)).seal(&place, &mut sealed);
    done.map_err(|error| Error::Closed(error.to_string()))?;
    let offset = state.epoch % 2 * places.bytes();
    let write = |object: &&str| store.write_durable(object, offset, &sealed);
    Ok(form.objects().iter().try_for_each(write)?)
}
