//! Entry points for the fuzz targets in `fuzz/` to otherwise private parsers.
//!
//! **Not part of the API.** Each function does one thing with bytes that a store might return; the
//! target states what must hold of the outcome. The keys are known and fixed, so a target can seal
//! hostile plaintexts: an adversary without keys never gets this far.

use crate::engine::engine_of;
use crate::header::{Header, HeaderCopies};
use crate::records::commit::{COMMIT_OBJECTS, CommitRecord, CommitSlots, StatePair};
use crate::records::journal::{JOURNAL_OBJECT, Journal, PAGE};
use crate::records::record::{self, parse};
use crate::records::state::StateLog;
use crate::registry::ENGINES;
use crate::tree::header::config;
use crate::trust::{Act, ComputerId, LogCheck};
use crate::{Error, Result, Volume};
use oblivio_crypto::{
    Kind, OsEntropy, Passphrase, Place, SEAL_HEADER, SealRoot, Sealer, SeededEntropy, TAG_BYTES,
    VolumeId,
};
use oblivio_engine::BucketId;
use oblivio_engine::tree::{TreeConfig, Verifier};
use oblivio_store::{Held, MemoryStore, ReadAt, Slots, WriteAt};
use std::ops::Range;
use zerocopy::IntoBytes;

const VOLUME: VolumeId = VolumeId([7; 16]);
/// The commit under [`journal`], and its digest.
const EPOCH: u64 = 5;
const DIGEST: [u8; 32] = [3; 32];
const ACT: Act = Act { computer: ComputerId([5; 16]), number: 1 };

/// The sealing key of a target. Each kind of input has its own, so the fuzzer cannot splice one
/// kind's sealed seeds into another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(pub u64);

impl Key {
    pub(crate) fn sealer(self, entropy: u64) -> Sealer {
        Sealer::new(SealRoot::from_seed(self.0), Box::new(SeededEntropy::new(entropy)))
    }
}

/// Parses a header and writes it again.
///
/// # Errors
/// Those of the parser.
pub fn header(bytes: &[u8]) -> Result<Vec<u8>> {
    let header = Header::parse(bytes)?;
    engine_of(&header, ENGINES)?;
    Ok(header.to_bytes())
}

/// The tree that a header asks for.
///
/// # Errors
/// Those of the parser.
pub fn header_config(bytes: &[u8]) -> Result<TreeConfig> {
    let header = Header::parse(bytes)?;
    engine_of(&header, ENGINES)?;
    Ok(config(&header.parameters()))
}

/// Parses an opened commit record and gives its epoch.
pub fn commit_record(plain: &[u8]) -> Option<u64> {
    Some(CommitRecord::parse(plain)?.epoch())
}

/// The plaintext of a commit record.
pub fn commit_plain(epoch: u64) -> Vec<u8> {
    let pair = |generation| StatePair::new(generation, epoch, 100, [9; 32]);
    CommitRecord::new(epoch, pair(epoch + 1), Some(pair(epoch))).as_bytes().to_vec()
}

/// A commit object whose two slots hold these plaintexts, properly sealed.
pub fn commit_object(key: Key, plains: [&[u8]; 2]) -> Vec<u8> {
    let (mut sealer, mut object) = (key.sealer(2), Vec::new());
    for (slot, plain) in plains.into_iter().enumerate() {
        let place = Place { volume: VOLUME, kind: Kind::Commit, index: slot as u64, version: 1 };
        object.resize(slot * 4096, 0);
        object.extend(sealer.seal_vec(&place, plain).expect("a few bytes are sealed"));
    }
    object
}

/// Reads a commit object and gives the epoch of the newest record.
///
/// # Errors
/// Those of the reader.
pub fn read_commits(key: Key, object: &[u8]) -> Result<u64> {
    let store = holding(COMMIT_OBJECTS[0], object)?;
    Ok(CommitSlots::new(VOLUME, key.sealer(3)).read(&store)?.record.epoch())
}

pub use crate::records::record::Record;
pub use crate::records::writes::{WriteEntry, Writes};
pub use crate::sequential::fuzzing as sequential;

/// Parses an opened journal record.
pub fn journal_record(plain: &[u8]) -> Option<Record> {
    Some(parse(plain, &mut LogCheck::default())?.1)
}

fn new_journal(key: Key, entropy: u64) -> Journal {
    let mut journal = Journal::new(VOLUME, key.sealer(entropy));
    journal.restart(EPOCH, &DIGEST);
    journal
}

/// A journal of these records; another `entropy` makes it another session's.
///
/// # Errors
/// Those of the journal.
pub fn journal(key: Key, entropy: u64, records: &[Record]) -> Result<Vec<u8>> {
    let store = MemoryStore::new();
    let mut new = new_journal(key, entropy);
    for record in records {
        let (record, least) = match record {
            Record::Intent(intent) => (record::intent(ACT, None, intent), 0),
            Record::Sync { root, writes } => (record::sync(ACT, None, root, writes), PAGE),
            Record::Resize { blocks, class } => (record::resize(ACT, None, *blocks, *class), 0),
        };
        new.append(&store, record, least)?;
    }
    object(&store, JOURNAL_OBJECT)
}

/// A journal of one record with this plaintext, properly sealed.
pub fn journal_of(key: Key, plain: &[u8]) -> Vec<u8> {
    let place = Place { volume: VOLUME, kind: Kind::Journal, index: 0, version: EPOCH };
    let plain = [&DIGEST[..TAG_BYTES], plain].concat();
    let sealed = key.sealer(2).seal_vec(&place, &plain).expect("a few bytes are sealed");
    [&(sealed.len() as u64).to_le_bytes()[..], &EPOCH.to_le_bytes(), &sealed].concat()
}

/// Reads a journal.
///
/// # Errors
/// Those of the journal.
pub fn load_journal(key: Key, journal: &[u8]) -> Result<Vec<Record>> {
    let store = holding(JOURNAL_OBJECT, journal)?;
    let records = new_journal(key, 4).load(&store, &mut LogCheck::default(), parse)?;
    Ok(records.into_iter().map(|(_, record)| record).collect())
}

/// The part that [`edit_state`] edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The checkpoint; the outcome becomes the next one, without deltas.
    Checkpoint,
    /// The newest delta; the outcome is appended as one more.
    Delta,
}

/// Gives the plaintext of a part of a volume's state to `edit` and makes the outcome current, as a
/// passphrase holder could.
///
/// # Errors
/// If the volume is not sound to begin with.
pub fn edit_state(
    store: &MemoryStore,
    passphrase: &Passphrase,
    part: Edit,
    edit: impl FnOnce(&mut Vec<u8>),
) -> Result<()> {
    let (header, master) = HeaderCopies::read(store, |_| Ok(()))?.0.unlock(passphrase)?;
    let volume = header.volume();
    let sealer = |root| Sealer::new(root, Box::new(OsEntropy));
    let mut commits = CommitSlots::new(volume, sealer(master.commit_root(volume)));
    let mut log = StateLog::new(volume, sealer(master.state_root(volume)));
    let current = commits.read(store)?.record;
    let mut plains = log.load(store, current)?.plains;
    if part == Edit::Checkpoint {
        plains.truncate(1);
    }
    let mut last = plains.pop().map(|plain| plain.bytes).unwrap_or_default();
    edit(&mut last);
    last.splice(0..0, [0; SEAL_HEADER]);
    let (record, _) = match part {
        Edit::Checkpoint => log.write(store, None, Some(last))?,
        Edit::Delta => log.write(store, Some(last), None)?,
    };
    commits.write(store, &current, &record)
}

/// A part of a stored volume that is checked as a whole: a bucket of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part(u64);

impl Part {
    /// Its level in the tree.
    pub fn level(self) -> u32 {
        BucketId(self.0).level().0
    }
}

/// A part, its object, and its range there.
pub type StoredPart = (Part, String, Range<u64>);

/// The stored buckets of a volume.
pub fn places(volume: &mut Volume) -> Vec<StoredPart> {
    let Some(volume) = volume.tree() else { return Vec::new() };
    let (_, slab, _) = volume.parts();
    let place = |bucket: BucketId| {
        let ((object, at), len) = (slab.place(bucket)?, slab.len_of(bucket)?);
        Some((Part(bucket.0), object.to_owned(), at..at + len as u64))
    };
    slab.stored().filter_map(place).collect()
}

/// Reads and checks the path from the root to a bucket, as [`Volume::verify`] does with
/// all of them. Only for a volume opened and not used yet.
///
/// # Errors
/// `Tampered` names the bucket.
pub fn check_part(volume: &mut Volume, part: Part) -> Result<()> {
    let (Some(volume), bucket) = (volume.tree(), BucketId(part.0)) else { return Ok(()) };
    let (store, slab, engine) = volume.parts();
    let mut verifier = Verifier::new(engine);
    for up in (0..=bucket.level().0).rev() {
        let bucket = BucketId(bucket.0 >> up);
        for mut bytes in slab.fetch(store, &[bucket])? {
            if let Some(why) = verifier.check(bucket, &mut bytes)? {
                return Err(Error::Tampered(format!("bucket {}: {why}", bucket.0)));
            }
        }
    }
    Ok(())
}

fn holding(object: &str, data: &[u8]) -> Result<MemoryStore> {
    let store = MemoryStore::new();
    store.write(&[WriteAt::new(object, 0, data)])?;
    Ok(store)
}

fn object(store: &MemoryStore, object: &str) -> Result<Vec<u8>> {
    let mut bytes = vec![0; store.len(object)?.unwrap_or(0) as usize];
    store.read(&mut [ReadAt { object, offset: 0, buf: &mut bytes }])?;
    Ok(bytes)
}
