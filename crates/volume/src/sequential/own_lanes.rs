//! The lanes of a volume, as far as the volume opens and makes them.

use super::SequentialVolume;
use super::lanes::{Beside, LaneMaster, SharedLane};
use crate::damage::DamagedPlace;
use crate::{Error, Result};
use oblivio_crypto::Passphrase;

impl SequentialVolume {
    /// What a lane stands beside, if its log ends here.
    fn beside<T>(
        &self,
        end: u64,
        work: impl FnOnce(&Beside<'_>) -> Result<T>,
    ) -> Option<Result<T>> {
        let lanes = self.lanes.as_ref()?;
        Some(work(&Beside {
            form: &lanes.form,
            volume: self.volume,
            store: &self.shared.store,
            reads: &self.shared.reads,
            randomness: &self.options.environment.randomness,
            number: self.newest.current.0,
            end,
        }))
    }

    /// Opens the lanes that the passphrase has keys for. One that cannot be opened is named, and
    /// burnt from now on.
    pub(super) fn open_lanes(&mut self, keys: Vec<LaneMaster>, end: u64) -> Result<()> {
        for master in keys {
            let number = master.lane;
            match self.beside(end, |beside| beside.open(master)) {
                Some(Ok((lane, damaged))) => {
                    self.session.damaged.extend(damaged);
                    self.open_lane(lane);
                }
                Some(Err(error @ (Error::Store(_) | Error::Full(_) | Error::Busy))) => {
                    return Err(error);
                }
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

    fn open_lane(&mut self, lane: SharedLane) {
        self.log.open_lane(SharedLane::clone(&lane));
        if let Some(lanes) = &mut self.lanes {
            lanes.open(lane);
        }
    }

    /// Gives a lane another passphrase; makes it anew if it is not open.
    pub(super) fn give(&mut self, number: u8, passphrase: &Passphrase) -> Result<()> {
        let none = || Error::Unsupported(format!("the volume has no lane {}", number + 1));
        let lanes = self.lanes.as_ref().ok_or_else(none)?;
        if number >= lanes.form.parameters.count {
            return Err(none());
        }
        let never = || Error::Unsupported("lanes of this volume are never open".into());
        if let Some(lane) = lanes.lane(number) {
            return lane.give(passphrase)?.ok_or_else(never);
        }
        let master = lanes.fresh(number, &self.options.environment.randomness)?;
        let end = self.log.end().number;
        let made = self.beside(end, |beside| beside.made(master, passphrase));
        let lane = made.ok_or_else(none)??.ok_or_else(never)?;
        self.open_lane(lane);
        Ok(())
    }
}
