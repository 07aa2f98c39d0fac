//! The form of a volume's lanes: all that follows from the header.

use super::mark::MARK_BYTES;
use super::parameters::{LaneObjects, LaneParameters};
use crate::block::StoredRoot;
use crate::sequential::PAGE;
use crate::sequential::header::SequentialHeader;
use crate::sequential::quantum::QuantumForm;
use crate::sequential::times;
use crate::{Error, Result};
use oblivio_crypto::{SEAL_OVERHEAD, TAG_BYTES};
use oblivio_engine::sequential::{LaneLayout, MOST_BYTES, Schedule};

/// The room for passphrases in front of a state: a salt; four slots, each with a master key, a
/// number, two more keys and a tag.
const SLOTS: usize = 32 + 4 * (32 + 8 + 2 * 32 + 16);
/// States beyond those of the grace's turns: each session that writes leaves one.
const SESSIONS: u64 = 256;
/// Turns of quanta beyond the grace's: two that a state may need, and eight as the outer log has.
const LOG_TURNS: u64 = 10;
/// The room for what a state says beside its engine and its disk: counts and tags, the keys of its
/// passphrases, the root.
const FIXED: usize = 1024 + size_of::<StoredRoot>() + TAG_BYTES;

/// The form of each lane of a volume.
#[derive(Clone, Debug)]
pub struct LaneForm {
    /// Which there are.
    pub parameters: LaneParameters,
    /// The places on its disk.
    pub layout: LaneLayout,
    /// Its quanta.
    pub quantum: QuantumForm,
    /// Quanta that fit in its log.
    pub quanta: u64,
    /// Places for states.
    pub states: u64,
    /// Bytes of the state of its engine.
    pub engine_bytes: usize,
    /// Bytes that are written to the volume between two of its flushes.
    pub flush_bytes: u64,
}

impl LaneForm {
    /// That of a volume's lanes; none if it has no lanes.
    ///
    /// # Errors
    /// `Invalid` for impossible parameters.
    pub fn of(header: &SequentialHeader) -> Result<Option<Self>> {
        let Some(parameters) = header.lanes else { return Ok(None) };
        parameters.check()?;
        let (share, grace) = (parameters.share.into(), parameters.grace.into());
        let layout = LaneLayout::new(&header.engine, share, grace);
        let layout = layout.map_err(|error| Error::Invalid(error.to_string()))?;
        let turns = layout.grace_turns();
        let writes = header.quantum_writes.div_ceil(share).max(1) as usize;
        let quantum = QuantumForm::new(header.engine.block_bytes, writes);
        let quantum = quantum.with_behind(MARK_BYTES);
        let turn = header.engine.queue_blocks().div_ceil(header.quantum_writes.max(1)) + 2;
        let (states, quanta) = (turns + 2 + SESSIONS, turn.checked_mul(turns + LOG_TURNS));
        let fits =
            |count: u64, bytes: u64| count.checked_mul(bytes).is_some_and(|it| it <= MOST_BYTES);
        let quanta = quanta.unwrap_or(u64::MAX);
        let engine_bytes = layout.engine_layout().state_bytes();
        let outer = Schedule::new(&header.engine);
        let outer = outer.map_err(|error| Error::Invalid(error.to_string()))?;
        let flush_bytes = outer.writes_per_flush() * header.engine.block_bytes as u64;
        let form = Self { parameters, layout, quantum, quanta, states, engine_bytes, flush_bytes };
        match fits(form.quanta, quantum.bytes() as u64) && fits(states, form.state_bytes()) {
            true => Ok(Some(form)),
            false => Err(Error::Invalid("the log of a lane has at most 2^62 bytes".into())),
        }
    }

    /// Bytes of a place for a state.
    pub fn state_bytes(&self) -> u64 {
        let sealed = FIXED + self.engine_bytes + self.layout.disk_state_bytes() + SEAL_OVERHEAD;
        ((SLOTS + sealed) as u64).next_multiple_of(PAGE)
    }

    /// Bytes of the access times, sealed.
    pub fn times_bytes(&self) -> u64 {
        times::object_bytes(self.layout.schedule().access_time_bytes())
    }

    /// The objects of all lanes, and their lengths, which never change.
    pub fn objects(&self) -> Vec<(&'static str, u64)> {
        let of = |lane: &LaneObjects| {
            [
                (lane.disk, self.layout.bytes()),
                (lane.log, self.quanta * self.quantum.bytes() as u64),
                (lane.state, self.states * self.state_bytes()),
                (lane.times, self.times_bytes()),
            ]
        };
        self.parameters.objects().iter().flat_map(of).collect()
    }

    /// Bytes written to all lanes for each byte written to the volume.
    pub fn written_per_byte(&self, header: &SequentialHeader) -> f64 {
        let block = header.engine.block_bytes as f64;
        let disk = self.layout.flush_bytes() as f64 / self.flush_bytes as f64;
        let log = self.quantum.bytes() as f64 / (header.quantum_writes as f64 * block);
        f64::from(self.parameters.count) * (disk + log)
    }
}
