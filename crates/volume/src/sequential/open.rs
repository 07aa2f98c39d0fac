//! Opening a volume: the newest state, the access times, and the log beyond them.

use super::header::layout;
use super::log::{LOG_OBJECT, LogPosition, LogReader, OpenedQuantum, not_synced};
use super::options::{expect_objects, objects};
use super::quantum::QuantumEntry;
use super::state::{STATE_OBJECT, State};
use super::state_places::FoundState;
use super::times::{self, TIMES_OBJECT};
use super::volume::{ENGINE, SequentialVolume};
use crate::engine::{Opening, open_as};
use crate::options::OpenOptions;
use crate::trust::{Act, ComputerId, beside_damage};
use crate::{Error, Result};
use oblivio_crypto::{MasterKey, Passphrase};
use oblivio_engine::carry_out;
use oblivio_engine::sequential::{Sequential, SequentialKeys};
use oblivio_store::{Slots, Store};
use std::sync::Arc;

impl SequentialVolume {
    /// Opens a volume; replays the log of a session that did not end well.
    ///
    /// # Errors
    /// `WrongPassphrase`, `Unsupported`, `Tampered`, `RolledBack`, `Busy`.
    pub fn open(store: Arc<dyn Store>, passphrase: &Passphrase, open: OpenOptions) -> Result<Self> {
        open_as(&ENGINE, store, passphrase, open, |opening| Self::of(opening.slots()?))
    }

    /// Opens a volume whose header is read and unlocked.
    pub(crate) fn of(opening: Opening<'_, Arc<dyn Slots>>) -> Result<Self> {
        expect_objects(&*opening.store, &layout(&opening.header.parameters()))?;
        let (master, mut opening) = (opening.master, opening);
        let keys = std::mem::take(&mut opening.lanes);
        let mut volume = Self::assemble(opening)?;
        volume.make_durable()?;
        let reads = volume.shared.reads.clone();
        let FoundState { state, identity, newer_may_be_damaged, damaged } = reads
            .of_copies(&*volume.shared.store, || {
                volume.states.read(&*volume.shared.store, &reads)
            })?;
        volume.session.damaged = damaged;
        if let Some(lanes) = &volume.lanes {
            let named = (state.epoch, state.lanes);
            volume.session.damaged.extend(lanes.damaged(&*volume.shared.store, &reads, named)?);
        }
        volume.newest.lanes = state.lanes;
        if state.log_parity {
            volume.log.take_parity();
        }
        (volume.newest.current, volume.newest.state_end) = ((state.epoch, identity), state.end);
        volume.session.writer = state.computers.as_ref().map(|computers| computers.writer);
        let table = state.computers.as_ref().map(|computers| computers.table.clone());
        let judged = volume.trust.judge_commit(state.epoch, identity, table);
        judged.map_err(|error| beside_damage(error, newer_may_be_damaged, STATE_OBJECT))?;
        let (end, durable, writer) = volume.expect_log(&state)?;
        // A lane may have to read much. This computer's record comes later, so that its time tells
        // nothing of that.
        volume.open_lanes(keys, (end.number, durable))?;
        let newest = writer.map(|computer| Act { computer, number: end.number });
        volume.trust.begin(end.into(), newest)?;
        volume.session.found_end = end.number;
        let has_times = volume.restore(&state, master)?;
        volume.session.clean = has_times && end.number == state.end;
        volume.session.replaying = true;
        volume.replay(&state, end)?;
        volume.session.replaying = false;
        if let Some(lanes) = &volume.lanes {
            lanes.stand_at(volume.engine().flushes());
        }
        // A session that died while padding a long turn leaves the rest to this one, which must not
        // lengthen the turn further.
        volume.pad_if_long()?;
        Ok(volume)
    }

    /// A killed process may have left data in the system's cache that no disk has yet. What the
    /// opening believes from now on must not be lost.
    pub(super) fn make_durable(&self) -> Result<()> {
        let there = self.shared.store.list()?;
        let is_there = |object: &str| there.iter().any(|(name, _)| name == object);
        let objects = objects(&self.header)?.into_iter().map(|(object, _)| object);
        let names: Vec<&str> = objects.filter(|object| is_there(object)).collect();
        Ok(self.shared.store.sync(&names)?)
    }

    /// Finds the end of the log, up to where it is known to have been durable, and who wrote the
    /// end; checks it against what this computer knows.
    fn expect_log(&mut self, state: &State) -> Result<(LogPosition, u64, Option<ComputerId>)> {
        let from = state.log;
        let mut check = self.trust.log_check();
        let mut reader = LogReader::new(from);
        let mut writer = self.session.writer;
        refuse_other_log(state, from)?;
        while let Some(opened) = reader.next(&mut self.log, &*self.shared.store)? {
            check.pass(reader.at().into());
            refuse_other_log(state, reader.at())?;
            if reader.at().number > state.end {
                check.sync();
                writer = writer_in(&opened).or(writer);
            }
        }
        let end = reader.at();
        self.log.refuse_hole(&*self.shared.store, from, end)?;
        if end.number < state.end {
            return Err(not_synced(end.number));
        }
        let durable = reader.durable().max(state.end).max(check.durable());
        self.log.excuse(durable);
        self.log.set_durable(end.number);
        check.finish(from.number, end.number)?;
        Ok((end, durable, writer))
    }

    /// Restores the engine to the state. Whether its access times were there.
    fn restore(&mut self, state: &State, master: &MasterKey) -> Result<bool> {
        let config = self.header.engine;
        let times = match state.times {
            Some(identity) if config.time_pages == 0 => {
                let bytes = self.engine().layout().schedule().access_time_bytes() as usize;
                let of = (TIMES_OBJECT, (self.volume, state.epoch));
                let (sealer, reads) = (&mut self.times_sealer, &self.shared.reads);
                let from = (&*self.shared.store, reads);
                reads.of_copies(&*self.shared.store, || {
                    times::read(from, sealer, of, identity, bytes)
                })?
            }
            _ => None,
        };
        let keys =
            SequentialKeys::of_volume(master, self.volume, &self.options.environment.randomness);
        let restored = Sequential::restore(config, keys, &state.engine, times.as_deref());
        *self.engine() = restored?;
        self.root.clone_from(&state.root);
        self.newest.turns = [state.log; 2];
        // There are no readers yet.
        let mut engine = self.shared.engine();
        if !engine.times_are_lost() {
            return Ok(true);
        }
        carry_out(&mut engine.begin_rebuild()?, &mut *engine, &mut self.shared.disk())?;
        Ok(false)
    }

    /// Replays the log: first the writes of the queue, then those beyond the state.
    fn replay(&mut self, state: &State, end: LogPosition) -> Result<()> {
        let from = state.log;
        let turn_start = {
            let engine = self.engine();
            let schedule = engine.layout().schedule();
            engine.turn().0 * schedule.writes_per_flush() * schedule.queue_buckets()
        };
        let (mut reader, mut found) = (LogReader::again(from, end.number), false);
        loop {
            let begin = reader.at();
            let Some(opened) = reader.next(&mut self.log, &*self.shared.store)? else { break };
            let quantum = opened.quantum().ok_or_else(nonsense)?;
            let expected = next_write(&self.engine());
            if quantum.first_write != expected {
                return Err(nonsense());
            }
            if quantum.first_write == turn_start && !std::mem::replace(&mut found, true) {
                self.newest.turns[1] = begin;
            }
            if let Some(writer) = writer_in(&opened).filter(|_| reader.at().number > state.end) {
                self.hand_over(writer, begin.number);
            }
            // A turn ends with a quantum: its mark is the next turn's begin.
            self.log.resume(reader.at());
            if let Some(root) = quantum.root {
                self.root = root.to_vec();
            }
            for entry in quantum.entries() {
                self.again(entry.ok_or_else(nonsense)?)?;
            }
        }
        if self.engine().next_again().is_some() {
            return Err(Error::Tampered(format!("{LOG_OBJECT}: writes of the queue are missing")));
        }
        // The log is read twice, and a store may answer differently each time.
        if reader.at() != end {
            return Err(Error::Tampered(format!("{LOG_OBJECT} changed while it was read")));
        }
        if !found {
            self.newest.turns[1] = reader.at();
        }
        self.log.resume(reader.at());
        Ok(())
    }

    /// Replays one entry of the log.
    fn again(&mut self, entry: QuantumEntry<'_>) -> Result<()> {
        let (block, content) = match entry {
            QuantumEntry::Write(block, content) => (block, Some(content.to_vec())),
            QuantumEntry::Discard(block) => (block, None),
            QuantumEntry::Session(_) => return Ok(()),
            QuantumEntry::Padding(count) => {
                for _ in 0..count {
                    let next = self.engine().next_again();
                    match next {
                        Some(_) => self.engine().write_again(None)?,
                        None => self.pad(1)?,
                    }
                }
                return Ok(());
            }
        };
        let next = self.engine().next_again();
        if next.is_some() {
            return Ok(self.engine().write_again(Some((block, content)))?);
        }
        self.session.replayed += 1;
        self.take(block, content)
    }
}

/// The number of the write that must come next.
fn next_write(engine: &Sequential) -> u64 {
    engine.next_again().unwrap_or_else(|| engine.writes())
}

/// The computer whose session begins with this quantum, if any.
fn writer_in(opened: &OpenedQuantum) -> Option<ComputerId> {
    opened.quantum()?.entries().flatten().find_map(|entry| match entry {
        QuantumEntry::Session(computer) => Some(computer),
        _ => None,
    })
}

/// Refuses a log that differs, at the state's end, from the log under the state: both may be whole
/// and begin alike.
fn refuse_other_log(state: &State, at: LogPosition) -> Result<()> {
    match &state.computers {
        Some(computers) if at.number == state.end && at.before != computers.end_tag => {
            let what = format!("{LOG_OBJECT} is of another history than {STATE_OBJECT}");
            Err(Error::Tampered(what))
        }
        _ => Ok(()),
    }
}

fn nonsense() -> Error {
    Error::Tampered(format!("{LOG_OBJECT} does not parse"))
}
