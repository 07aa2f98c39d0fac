//! An open lane: its engine, its log, and what waits for the volume to carry it.
//!
//! The volume's thread calls what the volume's acts need: a quantum, a flush, a state. Others write
//! into the lane and wait until acts of the volume have made it durable. Nothing here fails the
//! volume: a lane that fails is shut, and burnt from then on.

use super::form::LaneForm;
use super::lane_flush::LaneFlush;
use super::mark::QuantumMarks;
use super::places::LanePlaces;
use super::riding::{Content, Ride, Riding};
use super::state::LaneState;
use crate::lane::LaneMaster;
use crate::sequential::log_position::LogPosition;
use crate::sequential::quantum::{Filling, QuantumEntry};
use crate::sequential::shared::Shared;
use crate::sequential::times;
use crate::{Error, Result};
use oblivio_crypto::{
    Kind, LANE_SLOTS_BYTES, LaneKey, LanePassphrases, LanePlace, MasterKey, Place, Randomness,
    Sealer, VolumeId,
};
use oblivio_engine::BlockId;
use oblivio_engine::sequential::{Flush, Flushing, Sequential};
use oblivio_store::Slots;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// An open lane.
pub(in crate::sequential) struct Lane {
    pub(super) form: LaneForm,
    pub(super) volume: VolumeId,
    /// Which one, counted from 0.
    pub(super) number: u8,
    pub(super) shared: Shared,
    /// The flush under way.
    flushing: Mutex<Option<Flushing>>,
    /// The volume's next flush.
    outer: AtomicU64,
    inner: Mutex<Inner>,
    /// Something was made durable, or the lane was shut.
    pub(super) changed: Condvar,
}

/// What the volume's thread and the lane's writers share.
pub(super) struct Inner {
    pub riding: Riding,
    pub keys: LaneSealers,
    pub passphrases: LanePassphrases,
    /// The next quantum of its own log.
    pub next: LogPosition,
    /// The quanta below this are durable.
    pub durable: u64,
    /// How many of what rode are in them.
    pub synced: u64,
    /// Where the logs of the previous turn and of this one begin.
    pub turns: [LogPosition; 2],
    /// The root in its log.
    pub root: Vec<u8>,
    /// The access times in their place: the state that they are of, and their identity.
    pub times: Option<(u64, [u8; 32])>,
    /// Whether a durable state has slots for its passphrases: before, nobody could open it again.
    pub named: bool,
    /// Whether the volume has ended.
    pub ended: bool,
}

/// The keys of a lane.
pub(super) struct LaneSealers {
    pub master: LaneMaster,
    pub log: Sealer,
    pub state: Sealer,
    pub times: Sealer,
    pub marks: QuantumMarks,
    pub randomness: Randomness,
}

impl LaneSealers {
    pub fn of(master: LaneMaster, volume: VolumeId, randomness: &Randomness) -> Self {
        let key: &MasterKey = &master.master;
        let sealer = |root| Sealer::new(root, Box::new(randomness.clone())).hiding();
        let (log, state) = (sealer(key.intent_root(volume)), sealer(key.state_root(volume)));
        let times = sealer(key.times_root(volume));
        let marks = QuantumMarks::new(key.parity_prf(volume));
        Self { master, log, state, times, marks, randomness: randomness.clone() }
    }
}

impl Lane {
    pub(super) fn of(form: &LaneForm, volume: VolumeId, shared: Shared, inner: Inner) -> Self {
        Self {
            form: form.clone(),
            volume,
            number: inner.keys.master.lane,
            shared,
            flushing: Mutex::new(None),
            outer: AtomicU64::new(0),
            inner: Mutex::new(inner),
            changed: Condvar::new(),
        }
    }

    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn places(&self) -> &LanePlaces {
        self.shared.lane.as_ref().expect("it is a lane's")
    }

    /// The volume has made all flushes before this one.
    pub fn stands_at(&self, outer: Flush) {
        self.outer.store(outer.0, Ordering::Relaxed);
    }

    /// Whether somebody has a passphrase of it.
    pub fn is_somebodys(&self) -> bool {
        !self.inner().passphrases.is_none()
    }

    /// Whether it takes part in the volume's acts.
    pub fn is_open(&self) -> bool {
        self.shared.expect_open().is_ok()
    }

    /// The place of quantum `number` of the volume in the lane's log.
    pub(super) fn quantum_place(volume: VolumeId, number: u64) -> Place {
        Place { volume, kind: Kind::Journal, index: number, version: 1 }
    }

    /// The lane's quantum beside quantum `number` of the volume's log. `None` if it failed.
    pub fn close_quantum(&self, number: u64) -> Result<Option<Vec<u8>>> {
        if !self.is_open() {
            return Ok(None);
        }
        self.unless_failed(self.quantum(number))
    }

    fn quantum(&self, number: u64) -> Result<Vec<u8>> {
        let mut inner = self.inner();
        let inner = &mut *inner;
        let mut engine = self.shared.engine();
        let mut filling = Filling::new(self.form.quantum, engine.writes());
        while let Some(ride) = inner.riding.next() {
            match ride {
                Ride::Root(root) => {
                    filling.set_root(root);
                    inner.root.clone_from(root);
                }
                Ride::Write(..) if filling.is_full() || engine.flush_due() => break,
                Ride::Write(block, content) => {
                    filling.add(match content {
                        Some(content) => QuantumEntry::Write(*block, content),
                        None => QuantumEntry::Discard(*block),
                    });
                    give(&mut engine, *block, content)?;
                }
            }
            inner.riding.take();
        }
        let (mut bytes, form) = filling.finish(inner.next.before, inner.durable);
        let place = Self::quantum_place(self.volume, number);
        let (sealed, mark) = bytes.split_at_mut(form.sealed_bytes());
        let before = inner.keys.log.seal(&place, sealed).map_err(Error::sealing)?;
        inner.keys.marks.set(number, &inner.keys.randomness, mark);
        inner.next = LogPosition { number: number + 1, before };
        Ok(bytes)
    }

    /// All quanta so far are durable.
    pub fn synced(&self) {
        let mut inner = self.inner();
        (inner.durable, inner.synced) = (inner.next.number, inner.riding.taken);
        self.tell(&mut inner);
    }

    /// The lane's state is durable, and that of the volume beside it.
    pub fn named(&self) {
        let mut inner = self.inner();
        inner.named = true;
        self.tell(&mut inner);
    }

    /// Begins the lane's part of an outer flush: its bytes in `out`. Gives the parts of them that
    /// are to be burnt, and how many bytes it read. `None` if the lane misses this flush.
    pub fn begin_flush(
        &self,
        outer: Flush,
        out: &mut [u8],
    ) -> Result<Option<(Vec<Range<usize>>, u64)>> {
        self.stands_at(Flush(outer.0 + 1));
        if !self.is_open() || !self.places().disk().fits(outer) {
            return Ok(None);
        }
        self.unless_failed(self.flush(outer, out))
    }

    fn flush(&self, outer: Flush, out: &mut [u8]) -> Result<(Vec<Range<usize>>, u64)> {
        let mut job = {
            let mut engine = self.shared.engine();
            while !engine.flush_due() {
                engine.pad()?;
            }
            engine.begin_flush()?
        };
        let mut carrier = LaneFlush::new(&self.shared, self.places(), outer, out);
        while !carrier.has_written() {
            if !self.shared.advance(&mut job, &mut carrier)? {
                return Err(Error::Closed("a lane's flush wrote nothing".into()));
            }
        }
        let found = carrier.done();
        *self.flushing.lock().unwrap_or_else(PoisonError::into_inner) = Some(job);
        Ok(found)
    }

    /// The store has the lane's part of the flush, if it had any.
    pub fn end_flush(&self) -> Result<()> {
        let job = self.flushing.lock().unwrap_or_else(PoisonError::into_inner).take();
        match job {
            Some(job) => self.unless_failed(self.flushed(job)).map(drop),
            None => Ok(()),
        }
    }

    fn flushed(&self, mut job: Flushing) -> Result<()> {
        self.places().disk().end_flush();
        let mut disk = self.shared.disk();
        while self.shared.advance(&mut job, &mut disk)? {}
        let mut inner = self.inner();
        let schedule = self.form.layout.schedule();
        if self.shared.engine().flushes().0.is_multiple_of(schedule.queue_buckets()) {
            // Before the new turn gets any write.
            inner.turns = [inner.turns[1], inner.position()];
        }
        inner.feed(&mut self.shared.engine())
    }

    /// The lane's state beside state `number` of the volume. `None` if it failed.
    pub fn state(&self, number: u64) -> Result<Option<Vec<u8>>> {
        if !self.is_open() {
            return Ok(None);
        }
        self.unless_failed(self.sealed_state(number))
    }

    fn sealed_state(&self, number: u64) -> Result<Vec<u8>> {
        let mut inner = self.inner();
        let inner = &mut *inner;
        let at = self.state_place(number);
        let sealers = &mut inner.keys;
        let master = &sealers.master;
        let keys = inner.passphrases.seal(&master.master, &at, &mut sealers.randomness);
        let state = LaneState {
            number,
            log: inner.turns[0],
            end: inner.next,
            times: inner.times.filter(|times| times.0 == number).map(|times| times.1),
            keys: keys.map_err(Error::sealing)?,
            root: inner.root.clone(),
            engine: self.shared.engine().state()?,
            disk: self.places().disk().state(),
        };
        let mut bytes = state.to_bytes(&self.form);
        let before: Vec<&MasterKey> = master.before.iter().collect();
        let secrets = (&master.master, number, &before[..]);
        let slots = inner.passphrases.slots(secrets, &at, &mut sealers.randomness);
        let (front, sealed) = bytes.split_at_mut(LANE_SLOTS_BYTES);
        front.copy_from_slice(&slots.map_err(Error::sealing)?);
        let place = Self::state_seal(self.volume, at.place);
        sealers.state.seal(&place, sealed).map_err(Error::sealing)?;
        Ok(bytes)
    }

    /// The place of the lane's state beside state `number` of the volume.
    fn state_place(&self, number: u64) -> LanePlace {
        LanePlace { volume: self.volume, lane: self.number, place: number % self.form.states }
    }

    /// What binds a state to its place.
    pub(super) fn state_seal(volume: VolumeId, place: u64) -> Place {
        Place { volume, kind: Kind::State, index: place, version: 1 }
    }

    /// Writes the access times for state `number`, which is to come. False if it failed.
    pub fn write_times(&self, store: &dyn Slots, number: u64) -> Result<bool> {
        let times = self.shared.engine().access_times().map(|times| times.to_bytes());
        let Some(times) = times.filter(|_| self.is_open()) else { return Ok(false) };
        let object = self.form.parameters.objects()[usize::from(self.number)].times;
        let to = (object, (self.volume, number));
        let written = times::write(store, &mut self.inner().keys.times, to, &times);
        let written = self.unless_failed(written)?.map(|identity| (number, identity));
        self.inner().times = written;
        Ok(written.is_some())
    }

    /// How many writes wait for the volume, their bytes, and how many outer flushes the lane may
    /// still miss before it loses anything.
    pub fn left(&self) -> (u64, u64, u64) {
        let (inner, disk) = (self.inner(), self.places().disk());
        let (writes, bytes) = (inner.riding.waiting() as u64, inner.riding.bytes() as u64);
        (writes, bytes, disk.grace_left(Flush(self.outer.load(Ordering::Relaxed))))
    }

    /// This passphrase alone opens the lane, from the next state on.
    pub fn give(&self, key: LaneKey) {
        self.inner().passphrases = LanePassphrases::one(key);
    }

    /// Whether the next state opens by this passphrase.
    pub fn is_opened_by(&self, key: &LaneKey) -> bool {
        self.inner().passphrases.have(key)
    }

    /// The content of a block that waits in memory, if it does.
    pub(super) fn waiting(&self, block: BlockId) -> Option<Content> {
        self.inner().riding.find(block)
    }
}

impl Inner {
    /// Gives the engine what the log has and its bucket has room for.
    pub fn feed(&mut self, engine: &mut Sequential) -> Result<()> {
        while let Some(write) = self.riding.next_logged() {
            while engine.writes() < write.number && !engine.flush_due() {
                engine.pad()?;
            }
            if engine.flush_due() {
                return Ok(());
            }
            if engine.writes() != write.number {
                return Err(Error::Tampered("a lane's log has a write of another number".into()));
            }
            give(engine, write.block, &write.content)?;
            self.riding.take_logged();
        }
        Ok(())
    }

    /// From where the log has everything that is not in the engine yet.
    pub fn position(&self) -> LogPosition {
        match self.riding.next_logged() {
            Some(write) => write.quantum,
            None => self.next,
        }
    }
}

fn give(engine: &mut Sequential, block: BlockId, content: &Content) -> Result<()> {
    match content {
        Some(content) => Ok(engine.write(block, content.to_vec())?),
        None => Ok(engine.discard(block)?),
    }
}

/// A lane that several have.
pub(in crate::sequential) type SharedLane = Arc<Lane>;
