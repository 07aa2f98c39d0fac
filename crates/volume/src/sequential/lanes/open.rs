//! Opening a lane: its newest state, its access times, and what its log has beyond that.
//!
//! The volume may have gone on without the lane since then. What it did counts as a gap. What the
//! log has and the state lacks rides again, with the numbers that it has.

use super::form::LaneForm;
use super::lane::{Inner, Lane, LaneSealers, SharedLane};
use super::places::LanePlaces;
use super::riding::{Content, LoggedWrite, Riding};
use super::state::LaneState;
use super::unlock::lane_key;
use crate::damage::DamagedPlace;
use crate::lane::LaneMaster;
use crate::sequential::log_position::LogPosition;
use crate::sequential::quantum::{Quantum, QuantumEntry};
use crate::sequential::reads::DiskReads;
use crate::sequential::shared::Shared;
use crate::sequential::times;
use crate::{Error, Result};
use oblivio_crypto::{
    LANE_SLOTS_BYTES, LanePassphrases, LanePlace, Passphrase, Randomness, SEAL_HEADER, Sealer,
    TAG_BYTES, VolumeId, tag_of,
};
use oblivio_engine::sequential::{LaneDisk, Sequential, SequentialKeys};
use oblivio_engine::{BlockId, carry_out};
use oblivio_store::{ReadAt, Slots};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Bytes of a log read at a time.
const WINDOW: usize = 4 << 20;

/// What a lane stands beside.
pub(in crate::sequential) struct Beside<'a> {
    pub form: &'a LaneForm,
    pub volume: VolumeId,
    pub store: &'a Arc<dyn Slots>,
    pub reads: &'a DiskReads,
    pub randomness: &'a Randomness,
    /// The number of the volume's newest state.
    pub number: u64,
    /// Where its log ends.
    pub end: u64,
}

impl Beside<'_> {
    fn shared(&self, lane: u8, engine: Sequential, disk: LaneDisk) -> Shared {
        let object = self.form.parameters.objects()[usize::from(lane)].disk;
        let places = Some(LanePlaces::new(object, disk));
        Shared::new(Arc::clone(self.store), self.reads.clone(), engine, places)
    }

    fn keys(&self, master: &LaneMaster) -> SequentialKeys {
        SequentialKeys::of_volume(&master.master, self.volume, self.randomness)
    }

    /// An empty lane, which this passphrase opens from the next state on. Whatever the lane held is
    /// lost then.
    pub fn made(&self, master: LaneMaster, passphrase: &Passphrase) -> Result<SharedLane> {
        let key = lane_key(self.form, passphrase, self.volume)?;
        let engine = self.form.layout.engine(self.keys(&master));
        let shared = self.shared(master.lane, engine, LaneDisk::new(self.form.layout.clone()));
        let next = LogPosition { number: self.end, ..LogPosition::default() };
        let inner = Inner {
            riding: Riding::default(),
            keys: LaneSealers::of(master, self.volume, self.randomness),
            passphrases: LanePassphrases::one(key),
            next,
            durable: next.number,
            synced: 0,
            turns: [next; 2],
            root: Vec::new(),
            times: None,
            named: false,
            ended: false,
        };
        Ok(Arc::new(Lane::of(self.form, self.volume, shared, inner)))
    }

    /// Opens a lane with its keys, and says what of it is damaged.
    ///
    /// # Errors
    /// `Tampered` if nothing is left that it can go on from; those of the store.
    pub fn open(&self, master: LaneMaster) -> Result<(SharedLane, Vec<DamagedPlace>)> {
        let mut keys = LaneSealers::of(master, self.volume, self.randomness);
        let state = self.newest(keys.master.lane, &mut keys.state)?;
        let lane = keys.master.lane;
        let at = LanePlace { volume: self.volume, lane, place: state.number % self.form.states };
        let passphrases = LanePassphrases::open(&keys.master.master, &at, &state.keys);
        let passphrases = passphrases.map_err(Error::sealing)?;
        let times = self.times(lane, &mut keys.times, &state)?;
        let (layout, own) = (&self.form.layout, self.keys(&keys.master));
        let mut engine = layout.restore(own, &state.engine, times.as_deref())?;
        let disk = LaneDisk::restore(layout.clone(), &mut engine, &state.disk)?;
        let shared = self.shared(lane, engine, disk);
        {
            let mut engine = shared.engine();
            if engine.times_are_lost() {
                carry_out(&mut engine.begin_rebuild()?, &mut *engine, &mut shared.disk())?;
            }
        }
        let writes = shared.engine().lost_writes().end;
        let log = self.log(lane, &mut keys.log, &state, writes)?;
        let mut inner = Inner {
            riding: Riding::with_logged(log.beyond),
            keys,
            passphrases,
            next: log.next,
            durable: log.next.number,
            synced: 0,
            turns: [state.log; 2],
            root: log.root,
            times: None,
            named: true,
            ended: false,
        };
        {
            let mut engine = shared.engine();
            for number in engine.lost_writes() {
                let write = log.lost.get(&number);
                let write = write.map(|(block, content)| {
                    (*block, content.as_ref().map(|content| content.to_vec()))
                });
                engine.write_again(write)?;
            }
            inner.feed(&mut engine)?;
        }
        Ok((Arc::new(Lane::of(self.form, self.volume, shared, inner)), log.damaged))
    }

    /// The newest state that opens. One that is newer than the volume's is the remains of a crash.
    fn newest(&self, lane: u8, sealer: &mut Sealer) -> Result<LaneState> {
        let object = self.form.parameters.objects()[usize::from(lane)].state;
        let bytes = self.form.state_bytes() as usize;
        let (mut place, mut newest) = (0, None::<LaneState>);
        while place < self.form.states {
            let together = ((WINDOW / bytes).max(1) as u64).min(self.form.states - place);
            let mut found = vec![0; together as usize * bytes];
            let offset = place * bytes as u64;
            self.reads.read(&**self.store, &mut [ReadAt { object, offset, buf: &mut found }])?;
            for state in found.chunks_mut(bytes) {
                let sealed = &mut state[LANE_SLOTS_BYTES..];
                if let Ok(plain) = sealer.open(&Lane::state_seal(self.volume, place), sealed) {
                    let state = LaneState::parse(plain, self.form)?;
                    let counts = state.number <= self.number;
                    if counts && newest.as_ref().is_none_or(|it| it.number < state.number) {
                        newest = Some(state);
                    }
                }
                place += 1;
            }
        }
        newest.ok_or_else(|| Error::Tampered(format!("{object}: no state of the lane opens")))
    }

    fn times(&self, lane: u8, sealer: &mut Sealer, state: &LaneState) -> Result<Option<Vec<u8>>> {
        let Some(identity) = state.times else { return Ok(None) };
        let object = self.form.parameters.objects()[usize::from(lane)].times;
        let from = (&**self.store, self.reads);
        let bytes = self.form.layout.schedule().access_time_bytes() as usize;
        times::read(from, sealer, (object, (self.volume, state.number)), identity, bytes)
    }

    /// What the log has from a state on.
    fn log(
        &self,
        lane: u8,
        sealer: &mut Sealer,
        state: &LaneState,
        writes: u64,
    ) -> Result<FoundLog> {
        let object = self.form.parameters.objects()[usize::from(lane)].log;
        let mut found = FoundLog::from(object, state);
        let size = self.form.quantum.bytes();
        let mut number = state.log.number.max(self.end.saturating_sub(self.form.quanta));
        while number < self.end {
            let until_end = self.form.quanta - number % self.form.quanta;
            let count =
                until_end.min((WINDOW / size).max(1) as u64).min(self.end - number) as usize;
            let mut window = vec![0; count * size];
            let offset = number % self.form.quanta * size as u64;
            self.reads.read(&**self.store, &mut [ReadAt { object, offset, buf: &mut window }])?;
            for sealed in window.chunks_mut(size) {
                let tag = tag_of(sealed);
                let place = Lane::quantum_place(self.volume, number);
                if sealer.open(&place, sealed).is_ok() {
                    let plain = &sealed[SEAL_HEADER..size - TAG_BYTES];
                    let quantum = Quantum::parse(self.form.quantum, plain);
                    let quantum = quantum.ok_or_else(|| {
                        Error::Tampered(format!("{object}: quantum {number} does not parse"))
                    })?;
                    found.take(state, number, &quantum, tag.unwrap_or_default(), writes)?;
                }
                number += 1;
            }
        }
        found.pass_end(state)?;
        Ok(found)
    }
}

/// What a lane's log has.
struct FoundLog {
    object: &'static str,
    /// Where it goes on.
    next: LogPosition,
    /// Whether it came to the end that the state knows.
    passed: bool,
    /// The writes of the queue, by number.
    lost: BTreeMap<u64, (BlockId, Content)>,
    /// Those beyond the state.
    beyond: VecDeque<LoggedWrite>,
    root: Vec<u8>,
    damaged: Vec<DamagedPlace>,
}

impl FoundLog {
    fn from(object: &'static str, state: &LaneState) -> Self {
        Self {
            object,
            next: state.log,
            passed: false,
            lost: BTreeMap::new(),
            beyond: VecDeque::new(),
            root: state.root.clone(),
            damaged: Vec::new(),
        }
    }

    /// Goes past the end that the state knows.
    ///
    /// # Errors
    /// `Tampered` if a quantum before it is missing: nobody knows then what the queue had.
    fn pass_end(&mut self, state: &LaneState) -> Result<()> {
        if !std::mem::replace(&mut self.passed, true) && self.next != state.end {
            let (object, number) = (self.object, self.next.number);
            return Err(Error::Tampered(format!("{object}: quantum {number} is missing")));
        }
        Ok(())
    }

    /// Takes in a quantum that opened. Those that the lane did not write do not open. One that does
    /// not follow the last is the remains of a crash, unless those between were durable.
    fn take(
        &mut self,
        state: &LaneState,
        number: u64,
        quantum: &Quantum<'_>,
        tag: oblivio_crypto::Tag,
        writes: u64,
    ) -> Result<()> {
        if number >= state.end.number {
            self.pass_end(state)?;
        }
        if quantum.before != self.next.before {
            if quantum.durable > self.next.number && self.damaged.is_empty() {
                let why = format!(
                    "quantum {} of the lane is not what was written; what came after it is lost",
                    self.next.number
                );
                let object = self.object.to_owned();
                self.damaged.push(DamagedPlace { object, bytes: 0..0, why });
            }
            return Ok(());
        }
        let position = LogPosition { number, before: quantum.before };
        self.next = LogPosition { number: number + 1, before: tag };
        if let Some(root) = quantum.root {
            self.root = root.to_vec();
        }
        for (number, entry) in (quantum.first_write..).zip(quantum.entries().flatten()) {
            let (block, content) = match entry {
                QuantumEntry::Write(block, content) => (block, Some(Arc::from(content))),
                QuantumEntry::Discard(block) => (block, None),
                QuantumEntry::Padding(_) | QuantumEntry::Session(_) => continue,
            };
            match number < writes {
                true => drop(self.lost.insert(number, (block, content))),
                false => {
                    let quantum = position;
                    self.beyond.push_back(LoggedWrite { number, quantum, block, content });
                }
            }
        }
        Ok(())
    }
}
