//! The options of a new volume: its parameters, and the objects that these make.

use super::header::{SequentialHeader, layout, parameters_of};
use super::lanes::{LaneForm, LaneParameters};
use super::log::{LOG_OBJECT, RingLog};
use super::quantum::QuantumForm;
use super::state::STATE_OBJECT;
use super::state_places::StateForm;
use super::times::{self, TIMES_OBJECT};
use super::{DISK_OBJECT, PAGE};
use crate::creation::{Cost, NewOptions};
use crate::header::Parameters;
use crate::{Error, Result};
use oblivio_engine::sequential::{Layout, SequentialConfig};
use oblivio_store::Held;

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
    /// The lanes beside it, if any.
    pub lanes: Option<LaneParameters>,
}

impl SequentialOptions {
    /// The defaults for this block size and capacity, on a disk with seeks.
    pub fn new(block_bytes: usize, capacity_bytes: u64) -> Self {
        Self::of(SequentialConfig::new(block_bytes, blocks(block_bytes, capacity_bytes)))
    }

    /// The defaults on a disk without seeks: less is written for each byte.
    pub fn without_seeks(block_bytes: usize, capacity_bytes: u64) -> Self {
        let blocks = blocks(block_bytes, capacity_bytes);
        Self::of(SequentialConfig::without_seeks(block_bytes, blocks))
    }

    /// The defaults for an engine.
    pub fn of(engine: SequentialConfig) -> Self {
        // Of 16 pages one is parity, and less than one has the heads and the root.
        let room = QUANTUM_BYTES - 2 * PAGE as usize;
        let quantum_writes = (room / engine.block_bytes.max(1)).max(1) as u64;
        let turn = engine.queue_blocks().div_ceil(quantum_writes) + 2;
        Self { engine, quantum_writes, log_quanta: LOG_TURNS * turn, fill: false, lanes: None }
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
        let header = self.header();
        let form = QuantumForm::of(&header);
        let log = form.bytes() as f64 / (form.writes * form.block_bytes) as f64;
        let lanes = LaneForm::of(&header)?.map_or(0.0, |form| form.written_per_byte(&header));
        Ok(layout.cost().written + log + lanes)
    }

    /// What a volume costs.
    ///
    /// # Errors
    /// As [`Self::stored_bytes`].
    pub(crate) fn cost(&self) -> Result<Cost> {
        let (stored, written_per_byte) = (self.stored_bytes()?, self.written_per_byte()?);
        Ok(Cost::Fixed { stored, written_per_byte })
    }

    /// The parameters for the header.
    pub(crate) fn parameters(&self) -> Result<Parameters> {
        parameters_of(&self.header())
    }

    pub(super) fn header(&self) -> SequentialHeader {
        let Self { engine, quantum_writes, log_quanta, lanes, .. } = *self;
        SequentialHeader {
            engine,
            quantum_writes,
            log_quanta,
            whole_table: true,
            two_states: true,
            log_parity: true,
            lanes,
        }
    }
}

impl From<&NewOptions> for SequentialOptions {
    fn from(new: &NewOptions) -> Self {
        let (block_bytes, capacity) = (new.block_bytes, new.capacity_bytes);
        let usual = match (new.map_on_disk, new.seeks) {
            // Little memory has no room for a large queue.
            (true, _) => Self::new(block_bytes, capacity).map_on_disk(),
            (false, true) => Self::new(block_bytes, capacity),
            (false, false) => Self::without_seeks(block_bytes, capacity),
        };
        let lanes = new.lanes.map(|lanes| lanes.guessed_at(new.kdf));
        Self { fill: new.fill, lanes, ..usual }
    }
}

fn blocks(block_bytes: usize, capacity_bytes: u64) -> u64 {
    capacity_bytes.div_ceil(block_bytes.max(1) as u64).max(1)
}

/// The objects of a volume with these parameters.
pub(crate) fn objects_of(parameters: &Parameters) -> Result<Vec<(&'static str, u64)>> {
    objects(&layout(parameters))
}

/// The objects of a volume beside its header, and their lengths, which never change.
pub(super) fn objects(header: &SequentialHeader) -> Result<Vec<(&'static str, u64)>> {
    let invalid = |error: oblivio_engine::EngineError| Error::Invalid(error.to_string());
    let layout = Layout::new(&header.engine).map_err(invalid)?;
    let states = StateForm::of(header, &layout);
    let mut objects = vec![
        (DISK_OBJECT, layout.bytes()),
        (LOG_OBJECT, RingLog::object_bytes(QuantumForm::of(header), header.log_quanta)),
        (STATE_OBJECT, states.object_bytes()),
    ];
    if header.engine.time_pages == 0 {
        let times = layout.schedule().access_time_bytes();
        objects.push((TIMES_OBJECT, times::object_bytes(times)));
    }
    objects.extend(states.objects()[1..].iter().map(|object| (*object, states.object_bytes())));
    objects.extend(LaneForm::of(header)?.iter().flat_map(LaneForm::objects));
    Ok(objects)
}

/// Refuses a volume with an object that is too short, but for those that it can do without: what
/// the disk or the log lacks is damaged, states may have a second copy, and access times can be
/// restored.
pub(super) fn expect_objects(store: &dyn Held, header: &SequentialHeader) -> Result<()> {
    let there = store.list()?;
    for (object, bytes) in objects(header)? {
        let found = there.iter().find(|(name, _)| name == object).map(|(_, len)| *len);
        let least = match object {
            DISK_OBJECT | LOG_OBJECT => 1,
            _ => continue,
        };
        if found.is_none_or(|found| found < least) {
            let found = found.unwrap_or(0);
            let why = format!("object {object:?} has {found} bytes and should have {bytes}");
            return Err(Error::Tampered(why));
        }
    }
    Ok(())
}
