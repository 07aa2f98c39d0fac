//! The lanes of a volume, as far as the volume opens and makes them.

use super::SequentialVolume;
use super::lanes::{Beside, Lanes, SharedLane, lane_key, newest_of};
use crate::damage::DamagedPlace;
use crate::lane::LaneMaster;
use crate::{Error, Result};
use oblivio_crypto::{LaneKey, LanePassphrases, MasterKey, Passphrase};

impl SequentialVolume {
    /// Opens the lanes that the passphrase has keys for. One that cannot be opened is named, and
    /// burnt from now on: who can change a byte must not see who goes on.
    pub(super) fn open_lanes(&mut self, keys: Vec<LaneMaster>, ends: (u64, u64)) -> Result<()> {
        for master in keys {
            let number = master.lane;
            match beside(self, ends, |beside| beside.open(master)) {
                Some(Ok((lane, damaged))) => {
                    self.session.damaged.extend(damaged);
                    take_in(self, lane);
                }
                Some(Err(error)) if error.is_of_store() => return Err(error),
                Some(Err(error)) => self.session.damaged.push(gone(number, error)),
                None => {}
            }
        }
        Ok(())
    }

    /// Lanes that nobody opened run too from now on, empty, under keys that are thrown away with
    /// the session: so they take the same work as an open one, and rates tell nothing.
    pub(super) fn run_shut_lanes(&mut self) -> Result<()> {
        let shut = self.lanes.as_ref().map_or(Vec::new(), Lanes::shut);
        for number in shut {
            let randomness = self.options.environment.lanes.clone();
            let unkept = || MasterKey::generate(&mut randomness.clone());
            let before = (0..=number).map(|_| unkept()).collect();
            let master = LaneMaster::generate(number, before, &randomness);
            let end = self.log.end().number;
            let none = LanePassphrases::none();
            let made = beside(self, (end, end), |beside| Ok(beside.made(master, none)));
            made.transpose()?.into_iter().for_each(|lane| take_in(self, lane));
        }
        Ok(())
    }

    /// Gives a lane another passphrase, which opens nothing else; makes it anew if it is not open.
    pub(super) fn give(&mut self, number: u8, passphrase: &Passphrase) -> Result<()> {
        let key = key_of(self, number, passphrase)?;
        expect_own(self, number, (passphrase, &key))?;
        give_key(self, number, key)
    }
}

/// The same at the making of a volume: its passphrases were compared.
pub(super) fn give_first(
    volume: &mut SequentialVolume,
    number: u8,
    passphrase: &Passphrase,
) -> Result<()> {
    let key = key_of(volume, number, passphrase)?;
    give_key(volume, number, key)
}

fn give_key(volume: &mut SequentialVolume, number: u8, key: LaneKey) -> Result<()> {
    let lanes = volume.lanes.as_ref().ok_or_else(|| none(number))?;
    if let Some(lane) = lanes.lane(number) {
        lane.give(key);
        return Ok(());
    }
    let master = lanes.fresh(number, &volume.options.environment.lanes)?;
    let end = volume.log.end().number;
    let made =
        beside(volume, (end, end), |beside| Ok(beside.made(master, LanePassphrases::one(key))));
    take_in(volume, made.ok_or_else(|| none(number))??);
    Ok(())
}

/// A stretched passphrase of a lane.
fn key_of(volume: &SequentialVolume, number: u8, passphrase: &Passphrase) -> Result<LaneKey> {
    let form = volume.lanes.as_ref().map(|lanes| &lanes.form);
    let form = form.filter(|form| number < form.parameters.count);
    lane_key(form.ok_or_else(|| none(number))?, passphrase, volume.volume)
}

/// Refuses a passphrase that opens the volume or another lane: who knows it would open both.
fn expect_own(
    volume: &SequentialVolume,
    number: u8,
    (passphrase, key): (&Passphrase, &LaneKey),
) -> Result<()> {
    let opens_volume = match volume.stored_header.unlock(passphrase) {
        Ok(_) => true,
        Err(Error::WrongPassphrase) => false,
        Err(error) => return Err(error),
    };
    let lanes = volume.lanes.as_ref().ok_or_else(|| none(number))?;
    let mut others = (0..lanes.form.parameters.count).filter(|other| *other != number);
    let opens_other = others.any(|other| {
        let (store, at) = (&*volume.shared.store, (volume.volume, other));
        lanes.lane(other).is_some_and(|lane| lane.is_opened_by(key))
            || newest_of(store, &lanes.form, at, key).is_some()
    });
    match opens_volume || opens_other {
        true => Err(Error::Invalid("a lane needs a passphrase of its own".into())),
        false => Ok(()),
    }
}

fn none(number: u8) -> Error {
    Error::Unsupported(format!("the volume has no lane {}", number + 1))
}

/// A lane whose passphrase is right.
fn gone(number: u8, error: Error) -> DamagedPlace {
    let why = match error {
        Error::Tampered(why) => why,
        other => other.to_string(),
    };
    let why = format!("the passphrase is right, but the lane cannot be opened any more: {why}");
    DamagedPlace { object: format!("lane-{}", number + 1), bytes: 0..0, why }
}

/// What a lane stands beside, if the volume's log ends here and was durable up to there.
fn beside<T>(
    volume: &SequentialVolume,
    (end, durable): (u64, u64),
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
        durable,
    }))
}

/// From now on the lane takes part in the volume's acts.
fn take_in(volume: &mut SequentialVolume, lane: SharedLane) {
    lane.stands_at(volume.engine().flushes());
    volume.log.open_lane(SharedLane::clone(&lane));
    if let Some(lanes) = &mut volume.lanes {
        lanes.open(lane);
    }
}
