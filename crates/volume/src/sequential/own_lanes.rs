//! The lanes of a volume, as far as the volume opens and makes them.

use super::SequentialVolume;
use super::lanes::{Beside, SharedLane};
use crate::damage::DamagedPlace;
use crate::lane::LaneMaster;
use crate::{Error, Result};
use oblivio_crypto::Passphrase;

impl SequentialVolume {
    /// Opens the lanes that the passphrase has keys for. One that cannot be opened is named, and
    /// burnt from now on.
    pub(super) fn open_lanes(&mut self, keys: Vec<LaneMaster>, end: u64) -> Result<()> {
        for master in keys {
            let number = master.lane;
            match beside(self, end, |beside| beside.open(master)) {
                Some(Ok((lane, damaged))) => {
                    self.session.damaged.extend(damaged);
                    take_in(self, lane);
                }
                Some(Err(error)) if error.is_of_store() => return Err(error),
                Some(Err(error)) => {
                    let object = format!("lane-{}", number + 1);
                    let why = format!("it cannot be opened: {error}");
                    self.session.damaged.push(DamagedPlace { object, bytes: 0..0, why });
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Gives a lane another passphrase; makes it anew if it is not open.
    pub(super) fn give(&mut self, number: u8, passphrase: &Passphrase) -> Result<()> {
        let none = || Error::Unsupported(format!("the volume has no lane {}", number + 1));
        let lanes = self.lanes.as_ref().ok_or_else(none)?;
        if number >= lanes.form.parameters.count {
            return Err(none());
        }
        if let Some(lane) = lanes.lane(number) {
            return lane.give(passphrase);
        }
        let master = lanes.fresh(number, &self.options.environment.lanes)?;
        let end = self.log.end().number;
        let made = beside(self, end, |beside| beside.made(master, passphrase));
        take_in(self, made.ok_or_else(none)??);
        Ok(())
    }
}

/// What a lane stands beside, if the volume's log ends here.
fn beside<T>(
    volume: &SequentialVolume,
    end: u64,
    work: impl FnOnce(&Beside<'_>) -> Result<T>,
) -> Option<Result<T>> {
    let lanes = volume.lanes.as_ref()?;
    Some(work(&Beside {
        form: &lanes.form,
        volume: volume.volume,
        store: &volume.shared.store,
        reads: &volume.shared.reads,
        randomness: &volume.options.environment.lanes,
        number: volume.newest.current.0,
        end,
    }))
}

/// From now on the lane takes part in the volume's acts.
fn take_in(volume: &mut SequentialVolume, lane: SharedLane) {
    volume.log.open_lane(SharedLane::clone(&lane));
    if let Some(lanes) = &mut volume.lanes {
        lanes.open(lane);
    }
}
