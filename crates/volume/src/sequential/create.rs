//! Creating a volume: its parameters, its objects, its first content.

use super::DISK_OBJECT;
use super::header::{SequentialHeader, layout, parameters_of};
use super::log::{LOG_OBJECT, RingLog};
use super::quantum::Form;
use super::state::{STATE_OBJECT, StatePlaces};
use super::times::{self, TIMES_OBJECT};
use super::volume::{ENGINE, SequentialVolume};
use crate::engine::{Opening, make};
use crate::header::Parameters;
use crate::options::OpenOptions;
use crate::trust::LogMark;
use crate::{Error, Result};
use oblivio_crypto::{
    KdfParams, Kind, Passphrase, Place, SEAL_HEADER, Sealer, TAG_BYTES, VolumeId,
};
use oblivio_engine::sequential::{Layout, SequentialConfig};
use oblivio_store::{Held, Slots, Store, WriteAt};
use std::sync::Arc;

/// Approximate bytes of a quantum of the log.
const QUANTUM_BYTES: usize = 64 << 10;
/// Turns of writes that fit in the log without syncs. The rest is for padding, before a turn is cut
/// short.
const LOG_TURNS: u64 = 8;
/// Pages of access times that each flush writes if they are in the ORAM (docs/sequential.md).
const TIME_PAGES: u64 = 8;

/// The parameters of a sequential volume.
#[derive(Clone, Copy, Debug)]
pub struct SequentialOptions {
    /// The engine's parameters.
    pub engine: SequentialConfig,
    /// Writes that fit in a quantum of the log.
    pub quantum_writes: u64,
    /// Quanta that fit in the log.
    pub log_quanta: u64,
    /// Fill the disk with random bytes first, which hides how much was ever written.
    pub fill: bool,
}

impl SequentialOptions {
    /// The defaults for this block size and capacity.
    pub fn new(block_bytes: usize, capacity_bytes: u64) -> Self {
        let blocks = capacity_bytes.div_ceil(block_bytes.max(1) as u64).max(1);
        Self::of(SequentialConfig::new(block_bytes, blocks))
    }

    /// The defaults for an engine.
    pub fn of(engine: SequentialConfig) -> Self {
        let quantum_writes = (QUANTUM_BYTES / engine.block_bytes.max(1)).saturating_sub(1).max(1);
        let quantum_writes = quantum_writes as u64;
        let turn = engine.queue_blocks().div_ceil(quantum_writes) + 2;
        Self { engine, quantum_writes, log_quanta: LOG_TURNS * turn, fill: false }
    }

    /// Puts the access time map into the ORAM: a twentieth more is written, and memory does not
    /// grow with the volume.
    #[must_use]
    pub fn map_on_disk(mut self) -> Self {
        self.engine = self.engine.map_on_disk(TIME_PAGES);
        self
    }

    /// The objects beside the header, and their lengths, which never change.
    ///
    /// # Errors
    /// `Invalid` for impossible parameters.
    pub fn objects(&self) -> Result<Vec<(&'static str, u64)>> {
        let header = self.header();
        header.check()?;
        objects(&header)
    }

    /// Bytes in the store.
    ///
    /// # Errors
    /// As [`Self::objects`].
    pub fn stored_bytes(&self) -> Result<u64> {
        Ok(self.objects()?.into_iter().map(|(_, bytes)| bytes).sum())
    }

    /// Bytes written to the disk and the log for each byte written to the volume, once every level
    /// is in use.
    ///
    /// # Errors
    /// As [`Self::stored_bytes`].
    pub fn written_per_byte(&self) -> Result<f64> {
        let layout =
            Layout::new(&self.engine).map_err(|error| Error::Invalid(error.to_string()))?;
        let form = Form::of(&self.header());
        let log = form.bytes() as f64 / (form.writes * form.block_bytes) as f64;
        Ok(layout.cost().written + log)
    }

    /// The parameters for the header.
    pub(crate) fn parameters(&self) -> Result<Parameters> {
        parameters_of(&self.header())
    }

    fn header(&self) -> SequentialHeader {
        let Self { engine, quantum_writes, log_quanta, .. } = *self;
        SequentialHeader { engine, quantum_writes, log_quanta, whole_table: true }
    }
}

/// The objects of a volume with these parameters.
pub(crate) fn objects_of(parameters: &Parameters) -> Result<Vec<(&'static str, u64)>> {
    objects(&layout(parameters))
}

/// The objects of a volume beside its header, and their lengths, which never change.
pub(super) fn objects(header: &SequentialHeader) -> Result<Vec<(&'static str, u64)>> {
    let invalid = |error: oblivio_engine::EngineError| Error::Invalid(error.to_string());
    let layout = Layout::new(&header.engine).map_err(invalid)?;
    let engine_bytes = layout.state_bytes();
    let mut objects = vec![
        (DISK_OBJECT, layout.bytes()),
        (LOG_OBJECT, RingLog::object_bytes(Form::of(header), header.log_quanta)),
        (STATE_OBJECT, StatePlaces::object_bytes(engine_bytes, header.whole_table)),
    ];
    if header.engine.time_pages == 0 {
        let times = layout.schedule().access_time_bytes();
        objects.push((TIMES_OBJECT, times::object_bytes(times)));
    }
    Ok(objects)
}

impl SequentialVolume {
    /// Creates a volume in an empty store and opens it. `progress` gets the bytes filled, if `fill`
    /// is set.
    ///
    /// # Errors
    /// `Exists` if there is a volume already, `Invalid` if there is something else or the options
    /// make no sense, `Full` if the store has no space for it.
    pub fn create(
        store: Arc<dyn Store>,
        passphrase: &Passphrase,
        kdf: KdfParams,
        create: SequentialOptions,
        open: OpenOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self> {
        let parameters = create.parameters()?;
        make(&ENGINE, store, passphrase, (&parameters, kdf), open, |opening| {
            Self::made(opening.slots()?, &create, progress)
        })
    }

    /// Makes an empty volume in its store; the header is the caller's business.
    pub(crate) fn made(
        opening: Opening<'_, Arc<dyn Slots>>,
        create: &SequentialOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self> {
        let store = Arc::clone(&opening.store);
        let objects = objects(&create.header())?;
        for (object, bytes) in &objects {
            store.allocate(object, *bytes)?;
        }
        if create.fill {
            let (volume, randomness) = (opening.header.volume(), &opening.options.environment);
            let randomness = Box::new(randomness.randomness.clone());
            let sealer = Sealer::new(opening.master.fill_root(volume), randomness);
            fill(&*store, &objects, sealer, volume, progress)?;
        }
        let mut volume = Self::assemble(opening)?;
        volume.make_durable()?;
        volume.trust.begin(LogMark::default(), None)?;
        volume.session.writer = Some(volume.trust.last_act().computer);
        volume.write_state(None)?;
        Ok(volume)
    }
}

/// Bytes filled at a time.
const FILL_BYTES: usize = 4 << 20;

/// Fills the objects with bytes indistinguishable from sealed data: the ciphertext of zeros, under
/// a key with no other use.
fn fill(
    store: &dyn Slots,
    objects: &[(&str, u64)],
    mut sealer: Sealer,
    volume: VolumeId,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<()> {
    let total = objects.iter().map(|(_, bytes)| bytes).sum();
    let mut done = 0;
    for (object, bytes) in objects {
        for offset in (0..*bytes).step_by(FILL_BYTES) {
            let len = FILL_BYTES.min((bytes - offset) as usize);
            let mut buf = vec![0; SEAL_HEADER + len + TAG_BYTES];
            let place = Place { volume, kind: Kind::Slot, index: offset, version: 0 };
            let sealed = sealer.seal(&place, &mut buf);
            sealed.map_err(|error| Error::Closed(error.to_string()))?;
            let data = &buf[SEAL_HEADER..SEAL_HEADER + len];
            store.write(&[WriteAt::new(object, offset, data)])?;
            done += len as u64;
            progress(done, total);
        }
    }
    Ok(())
}

/// Refuses a volume with an object that is too short.
pub(super) fn expect_objects(store: &dyn Held, header: &SequentialHeader) -> Result<()> {
    let there = store.list()?;
    for (object, bytes) in objects(header)? {
        let found = there.iter().find(|(name, _)| name == object).map(|(_, len)| *len);
        if found.is_none_or(|found| found < bytes) {
            let found = found.unwrap_or(0);
            let why = format!("object {object:?} has {found} bytes and should have {bytes}");
            return Err(Error::Tampered(why));
        }
    }
    Ok(())
}
