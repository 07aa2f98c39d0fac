//! Opening a lane: its newest state, its access times, and what its log has beyond that.
//!
//! The volume may have gone on without the lane since then. What it did counts as a gap. What the
//! log has and the state lacks rides again, with the numbers that it has. Where the log lacks what
//! a state needs, an older state counts.

use super::beside::Beside;
use super::found_log::FoundLog;
use super::lane::{Inner, Lane, LaneSealers, SharedLane};
use super::riding::{LoggedWrite, Riding};
use super::state::LaneState;
use crate::damage::DamagedPlace;
use crate::lane::LaneMaster;
use crate::sequential::shared::Shared;
use crate::sequential::times;
use crate::{Error, Result};
use oblivio_crypto::{LANE_SLOTS_BYTES, LanePassphrases, LanePlace, Sealer};
use oblivio_engine::carry_out;
use oblivio_engine::sequential::LaneDisk;
use oblivio_store::ReadAt;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Bytes of states read at a time.
const WINDOW: usize = 4 << 20;

impl Beside<'_> {
    /// Opens a lane with its keys, and says what of it is damaged.
    ///
    /// # Errors
    /// `Tampered` if nothing is left that it can go on from; those of the store.
    pub fn open(&self, master: LaneMaster) -> Result<(SharedLane, Vec<DamagedPlace>)> {
        let mut keys = LaneSealers::of(master, self.volume, self.randomness);
        let lane = keys.master.lane;
        let states = self.states(lane, &mut keys.state)?;
        let passphrases = self.passphrases(&keys.master, &states)?;
        let (state, log) = self.newest_whole(&mut keys, &states)?;
        let times = self.times(lane, &mut keys.times, state)?;
        let (layout, own) = (&self.form.layout, self.keys(&keys.master));
        let mut engine = layout.restore(own, &state.engine, times.as_deref())?;
        let disk = LaneDisk::restore(layout.clone(), &mut engine, &state.disk)?;
        let shared = self.shared(lane, engine, disk);
        let (damaged, beyond) = (log.damaged(), self.again(&shared, log.writes)?);
        let mut inner = Inner {
            riding: Riding::with_logged(beyond),
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
        inner.feed(&mut shared.engine())?;
        Ok((Arc::new(Lane::of(self.form, self.volume, shared, inner)), Vec::from_iter(damaged)))
    }

    /// Gives the engine what its queue had. What the log has beyond that is left.
    fn again(&self, shared: &Shared, writes: Vec<LoggedWrite>) -> Result<VecDeque<LoggedWrite>> {
        let mut engine = shared.engine();
        if engine.times_are_lost() {
            carry_out(&mut engine.begin_rebuild()?, &mut *engine, &mut shared.disk())?;
        }
        let queue = engine.lost_writes();
        let (lost, beyond): (Vec<_>, VecDeque<_>) = split(writes, queue.end);
        let lost: BTreeMap<u64, _> = lost.into_iter().map(|it| (it.number, it)).collect();
        for number in queue {
            let write = lost.get(&number);
            let content = |it: &LoggedWrite| it.content.as_ref().map(|content| content.to_vec());
            engine.write_again(write.map(|it| (it.block, content(it))))?;
        }
        Ok(beyond)
    }

    /// The states that open, the newest first. Those that are newer than the volume's are the
    /// remains of a crash.
    fn states(&self, lane: u8, sealer: &mut Sealer) -> Result<Vec<LaneState>> {
        let object = self.form.parameters.objects()[usize::from(lane)].state;
        let bytes = self.form.state_bytes() as usize;
        let (mut place, mut states) = (0, Vec::new());
        while place < self.form.states {
            let together = ((WINDOW / bytes).max(1) as u64).min(self.form.states - place);
            let mut found = vec![0; together as usize * bytes];
            let offset = place * bytes as u64;
            self.reads.read(&**self.store, &mut [ReadAt { object, offset, buf: &mut found }])?;
            for state in found.chunks_mut(bytes) {
                let sealed = &mut state[LANE_SLOTS_BYTES..];
                if let Ok(plain) = sealer.open(&Lane::state_seal(self.volume, place), sealed) {
                    states.push(LaneState::parse(plain, self.form)?);
                }
                place += 1;
            }
        }
        states.retain(|state| state.number <= self.number);
        states.sort_by_key(|state| Reverse(state.number));
        match states.is_empty() {
            true => Err(Error::Tampered("none of its states is what was written".into())),
            false => Ok(states),
        }
    }

    /// The passphrases in the newest state, whichever the lane goes on from.
    fn passphrases(&self, master: &LaneMaster, states: &[LaneState]) -> Result<LanePassphrases> {
        let newest = &states[0];
        let place = newest.number % self.form.states;
        let at = LanePlace { volume: self.volume, lane: master.lane, place };
        LanePassphrases::open(&master.master, &at, &newest.keys).map_err(Error::sealing)
    }

    /// The newest state up to which the log is whole, and the log from there on. An older one than
    /// the newest costs what was written since: a lane is as it once was, and no mixture.
    fn newest_whole<'s>(
        &self,
        keys: &mut LaneSealers,
        states: &'s [LaneState],
    ) -> Result<(&'s LaneState, FoundLog)> {
        let newest = &states[0];
        // Then an older state has all it needs only if it needs nothing: it is far too old.
        let overtaken = newest.log.number + self.form.quanta < self.end;
        let tried = if overtaken { &states[..1] } else { states };
        for state in tried {
            match FoundLog::read(self, keys, state, newest.end.number) {
                Err(Error::Tampered(_)) => {}
                read => return Ok((state, read?)),
            }
        }
        Err(Error::Tampered(match overtaken {
            true => "the volume was synced without it more often than its grace lets it".into(),
            false => "too much of its log is not what was written".into(),
        }))
    }

    fn times(&self, lane: u8, sealer: &mut Sealer, state: &LaneState) -> Result<Option<Vec<u8>>> {
        let Some(identity) = state.times else { return Ok(None) };
        let object = self.form.parameters.objects()[usize::from(lane)].times;
        let from = (&**self.store, self.reads);
        let bytes = self.form.layout.schedule().access_time_bytes() as usize;
        times::read(from, sealer, (object, (self.volume, state.number)), identity, bytes)
    }
}

/// Those with numbers below this, and the others.
fn split(writes: Vec<LoggedWrite>, end: u64) -> (Vec<LoggedWrite>, VecDeque<LoggedWrite>) {
    let mut lost = writes;
    let at = lost.partition_point(|write| write.number < end);
    let beyond = lost.split_off(at);
    (lost, beyond.into())
}
