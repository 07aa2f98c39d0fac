//! The sequential engine's parameters in the header.

use super::lanes::LaneParameters;
use crate::header::{PARAMETER_BYTES, Parameters};
use crate::{Error, Result};
use oblivio_engine::sequential::{LaneLayout, Layout, MOST_BYTES, SequentialConfig};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

/// A flag: the state has room for a whole table of computers.
const WHOLE_TABLE: u32 = 1;
/// A flag: two objects have the states.
const TWO_STATES: u32 = 2;
/// A flag: each quantum of the log ends with a page of parity.
const LOG_PARITY: u32 = 4;
/// A flag: lanes are written beside the volume.
const LANES: u32 = 8;

/// The parameters of a sequential volume. All of them are public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequentialHeader {
    /// The engine.
    pub engine: SequentialConfig,
    /// Writes that fit in a quantum of the log.
    pub quantum_writes: u64,
    /// Quanta that fit in the log.
    pub log_quanta: u64,
    /// Whether the state has room for a whole table of computers; in older volumes it has the rest
    /// of the last page.
    pub whole_table: bool,
    /// Whether two objects have the states; in older volumes there is one.
    pub two_states: bool,
    /// Whether each quantum of the log has a page of parity behind its writes. In older volumes the
    /// state says so.
    pub log_parity: bool,
    /// The lanes that are written beside the volume, if any.
    pub lanes: Option<LaneParameters>,
}

impl SequentialHeader {
    /// Refuses impossible parameters.
    ///
    /// # Errors
    /// `Invalid` says which.
    pub fn check(&self) -> Result<()> {
        Layout::new(&self.engine).map_err(|error| Error::Invalid(error.to_string()))?;
        let writes = self.engine.queue_blocks();
        // A turn needs quanta for its writes and one to end it; two turns stay.
        let least = 2 * (writes.div_ceil(self.quantum_writes.max(1)) + 2);
        if !(1..=1 << 12).contains(&self.quantum_writes) {
            return Err(Error::Invalid(
                "a quantum of the log has room for 1 to 4096 writes".into(),
            ));
        }
        if !(least..=1 << 32).contains(&self.log_quanta) {
            return Err(Error::Invalid(format!("the log needs {least} quanta or more")));
        }
        // A quantum has its blocks, an entry for each, and up to three pages.
        let blocks = self.quantum_writes * (self.engine.block_bytes as u64 + 16);
        if self.log_quanta.saturating_mul(blocks + (12 << 10)) > MOST_BYTES {
            return Err(Error::Invalid("the log has at most 2^62 bytes".into()));
        }
        let Some(lanes) = &self.lanes else { return Ok(()) };
        lanes.check()?;
        let lane = LaneLayout::new(&self.engine, lanes.share.into(), lanes.grace.into());
        lane.map(drop).map_err(|error| Error::Invalid(error.to_string()))
    }
}

/// As stored.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Own {
    blocks: U64,
    bucket_blocks: U32,
    queue_buckets: U32,
    fan_out: U32,
    last_ratio: U32,
    time_pages: U32,
    sector_bytes: U32,
    quantum_writes: U32,
    /// Of the lanes: how many, their share, their grace, the cost of a guess. Zeros without lanes.
    lanes: [u8; 4],
    log_quanta: U64,
}

const _: () = assert!(size_of::<Own>() == PARAMETER_BYTES);

/// The parameters of a new volume.
pub(super) fn parameters_of(layout: &SequentialHeader) -> Result<Parameters> {
    layout.check()?;
    let SequentialHeader { engine, quantum_writes, log_quanta, lanes, .. } = layout;
    let own = Own {
        blocks: U64::new(engine.blocks),
        bucket_blocks: U32::new(engine.bucket_blocks as u32),
        queue_buckets: U32::new(engine.queue_buckets as u32),
        fan_out: U32::new(engine.fan_out as u32),
        last_ratio: U32::new(engine.last_ratio as u32),
        time_pages: U32::new(engine.time_pages as u32),
        sector_bytes: U32::new(engine.sector_bytes as u32),
        quantum_writes: U32::new(*quantum_writes as u32),
        lanes: lanes.map_or([0; 4], |it| [it.count, it.share, it.grace, it.guess]),
        log_quanta: U64::new(*log_quanta),
    };
    let block_bytes = engine.block_bytes as u32;
    let flag = |set: bool, flag| if set { flag } else { 0 };
    let flags = flag(layout.whole_table, WHOLE_TABLE)
        | flag(layout.two_states, TWO_STATES)
        | flag(layout.log_parity, LOG_PARITY)
        | flag(lanes.is_some(), LANES);
    Ok(Parameters { flags, block_bytes, own: transmute!(own) })
}

/// Refuses parameters unknown to this version.
pub(super) fn check(parameters: &Parameters) -> Result<()> {
    let own: Own = transmute!(parameters.own);
    let known = WHOLE_TABLE | TWO_STATES | LOG_PARITY | LANES;
    let unknown_lanes = parameters.flags & LANES == 0 && own.lanes != [0; 4];
    if parameters.flags & !known != 0 || unknown_lanes {
        return Err(Parameters::unknown());
    }
    layout(parameters).check().map_err(|error| Error::Unsupported(error.to_string()))
}

/// Decodes the parameters.
pub(super) fn layout(parameters: &Parameters) -> SequentialHeader {
    let own: Own = transmute!(parameters.own);
    let block_bytes = parameters.block_bytes as usize;
    let mut caches = SequentialConfig::new(block_bytes, own.blocks.get());
    if own.time_pages.get() > 0 {
        caches = caches.map_on_disk(own.time_pages.get().into());
    }
    let [count, share, grace, guess] = own.lanes;
    let lanes = LaneParameters { count, share, grace, guess };
    SequentialHeader {
        engine: SequentialConfig {
            bucket_blocks: own.bucket_blocks.get().into(),
            queue_buckets: own.queue_buckets.get().into(),
            fan_out: own.fan_out.get().into(),
            last_ratio: own.last_ratio.get().into(),
            sector_bytes: own.sector_bytes.get() as usize,
            ..caches
        },
        quantum_writes: own.quantum_writes.get().into(),
        log_quanta: own.log_quanta.get(),
        whole_table: parameters.flags & WHOLE_TABLE != 0,
        two_states: parameters.flags & TWO_STATES != 0,
        log_parity: parameters.flags & LOG_PARITY != 0,
        lanes: (parameters.flags & LANES != 0).then_some(lanes),
    }
}
