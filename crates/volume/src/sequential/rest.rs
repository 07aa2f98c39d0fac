//! The states of a volume: each with everything that it names, and what a session leaves at its
//! end.

use super::lanes::{Lanes, disks};
use super::state::{Computers, State};
use super::times::{self, TIMES_OBJECT};
use super::volume::SequentialVolume;
use crate::Result;
use crate::trust::Keep;
use std::time::Duration;

/// States follow each other quickly under load, and a durable note of one syncs a file. In between,
/// a note that survives the process is enough.
const NOTE_EVERY: Duration = Duration::from_secs(1);

impl SequentialVolume {
    /// The computers for the next state.
    fn computers(&mut self, epoch: u64) -> Option<Computers> {
        if self.states.rows() == 0 {
            return None;
        }
        let newest = self.newest_act().unwrap_or_default();
        let table = self.trust.commit(newest, epoch).clone();
        Some(Computers { writer: newest.computer, end_tag: self.log.end().before, table })
    }

    /// Writes the next state, durably, with everything that it names. If copies of states were
    /// damaged, one comes before it: two in turn are in all places.
    pub(super) fn write_state(&mut self, times: Option<[u8; 32]>) -> Result<()> {
        self.log.heal(&*self.shared.store)?;
        if !self.states.is_whole() {
            self.write_one_state(None)?;
        }
        self.write_one_state(times)?;
        self.states.healed();
        Ok(())
    }

    fn write_one_state(&mut self, times: Option<[u8; 32]>) -> Result<()> {
        let epoch = self.newest.current.0 + 1;
        let computers = self.computers(epoch);
        let (engine, met_damage) = {
            let engine = self.engine();
            (engine.state()?, engine.met_damage())
        };
        self.trust.refuse_overtaken()?;
        // They are durable before the state that names them.
        let lanes = self.lanes.as_mut().map(|lanes| lanes.write_states(&*self.shared.store, epoch));
        let lanes = lanes.transpose()?;
        let state = State {
            epoch,
            lanes,
            log: self.newest.turns[0],
            end: self.log.end().number,
            times,
            root: self.root.clone(),
            engine,
            met_damage,
            log_parity: self.log.took_parity(),
            computers,
        };
        self.newest.current = (state.epoch, self.states.write(&*self.shared.store, &state)?);
        (self.newest.state_end, self.newest.lanes) = (state.end, state.lanes);
        self.lanes.iter().for_each(Lanes::named);
        self.note_state()
    }

    /// Notes the newest state. During a replay the noted end of the log stays.
    fn note_state(&mut self) -> Result<()> {
        let (epoch, digest) = self.newest.current;
        if self.session.replaying {
            return self.trust.replayed(epoch, digest);
        }
        let now = self.options.environment.clock.now();
        let keep = match self.session.noted {
            Some(at) if now - at < NOTE_EVERY => Keep::Soon,
            _ => Keep::Durable,
        };
        if keep == Keep::Durable {
            self.session.noted = Some(now);
        }
        self.trust.committed(epoch, digest, self.log.end().into(), keep)
    }

    /// Leaves as little as possible to the next opening. A session that only read writes nothing,
    /// unless it found damage that it can heal.
    pub(super) fn rest(&mut self) -> Result<()> {
        let whole = self.states.is_whole() && self.log.is_whole();
        if self.session.clean && whole && !self.session.writing && !self.log.waits() {
            return self.leave();
        }
        self.session.noted = None;
        write_whole_state(self)?;
        // Later writes are another session's.
        self.session.writing = false;
        self.trust.end()
    }

    /// Ends a session that wrote nothing: there is nothing to leave to the next opening.
    pub(crate) fn leave(&mut self) -> Result<()> {
        self.trust.end()
    }
}

/// Makes copies of states and pages of the log whole that were found damaged. What the session did
/// before is then at rest as well.
pub(super) fn heal(volume: &mut SequentialVolume) -> Result<()> {
    match volume.states.is_whole() && volume.log.is_whole() {
        true => Ok(()),
        false => write_whole_state(volume),
    }
}

/// Makes everything durable, and then a state from which an opening has nothing to make again.
fn write_whole_state(volume: &mut SequentialVolume) -> Result<()> {
    volume.sync()?;
    volume.shared.store.sync(&disks(&volume.lanes))?;
    // They belong to the last state that is written now.
    let epoch = volume.newest.current.0 + if volume.states.is_whole() { 1 } else { 2 };
    let times = volume.engine().access_times().map(|times| times.to_bytes());
    let times = match times {
        Some(bytes) => {
            let of = (TIMES_OBJECT, (volume.volume, epoch));
            Some(times::write(&*volume.shared.store, &mut volume.times_sealer, of, &bytes)?)
        }
        None => None,
    };
    if let Some(lanes) = &mut volume.lanes {
        lanes.write_times(&*volume.shared.store, epoch)?;
    }
    volume.write_state(times)?;
    volume.session.clean = true;
    Ok(())
}
