//! Who waits for a lane: until acts of the volume have made durable what was written into it, until
//! the lane is shut, or until the volume has ended.

use super::lane::{Inner, Lane};
use super::riding::Riding;
use crate::{Error, Result};
use std::sync::PoisonError;
use std::time::Duration;

impl Lane {
    /// Passes a result on. A failure shuts the lane and gives nothing, but for one of the store,
    /// which fails the volume as it does where the lane is burnt.
    pub(super) fn unless_failed<T>(&self, result: Result<T>) -> Result<Option<T>> {
        let error = match result {
            Ok(value) => return Ok(Some(value)),
            Err(error) => error,
        };
        self.shared.close(&error);
        self.wake();
        if error.is_of_store() { Err(error) } else { Ok(None) }
    }

    /// Passes on the result of one who reads or writes in the lane; a failure shuts it.
    pub(super) fn judged<T>(&self, result: Result<T>) -> Result<T> {
        let result = self.shared.judged(result);
        if !self.is_open() {
            self.wake();
        }
        result
    }

    /// Tells those who wait that the lane was shut. Under their lock: one who has just seen it open
    /// waits already.
    fn wake(&self) {
        let _inner = self.inner();
        self.changed.notify_all();
    }

    /// Tells those who wait what is durable.
    pub(super) fn tell(&self, inner: &mut Inner) {
        if inner.named {
            inner.riding.durable = inner.synced;
            self.changed.notify_all();
        }
    }

    /// The volume has ended: nothing that waits becomes durable any more.
    pub fn end(&self) {
        self.inner().ended = true;
        self.wake();
    }

    /// Waits until `done` holds or this time has passed; whether it holds.
    ///
    /// # Errors
    /// `Closed` if the lane failed, `Full` if the volume ended before.
    pub(super) fn wait_until(
        &self,
        time: Duration,
        done: impl Fn(&Riding) -> bool,
    ) -> Result<bool> {
        let waits = |inner: &mut Inner| self.is_open() && !inner.ended && !done(&inner.riding);
        let guard = self.changed.wait_timeout_while(self.inner(), time, waits);
        let (inner, _) = guard.unwrap_or_else(PoisonError::into_inner);
        if done(&inner.riding) {
            return Ok(true);
        }
        if inner.ended {
            let waiting = inner.riding.waiting();
            return Err(Error::Full(format!(
                "{waiting} writes of the lane did not go along before the volume was closed: they \
                 are lost"
            )));
        }
        self.shared.expect_open().map(|()| false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::LaneMaster;
    use crate::sequential::lanes::{Beside, LaneForm, LaneParameters, SharedLane, lane_key};
    use crate::sequential::options::SequentialOptions;
    use crate::sequential::reads::DiskReads;
    use oblivio_crypto::{LanePassphrases, MasterKey, Passphrase, Randomness, VolumeId};
    use oblivio_store::{MemoryStore, Slots};
    use std::sync::{Arc, mpsc};
    use std::thread;

    /// As long as nobody should wait.
    const LONG: Duration = Duration::from_secs(60);

    fn lane() -> SharedLane {
        let lanes = Some(LaneParameters { guess: 3, ..LaneParameters::default() });
        let options = SequentialOptions { lanes, ..SequentialOptions::new(4096, 1 << 20) };
        let form = LaneForm::of(&options.header()).expect("sound parameters").expect("lanes");
        let (volume, randomness) = (VolumeId([7; 16]), Randomness::default());
        let store: Arc<dyn Slots> = Arc::new(MemoryStore::new());
        let outer = MasterKey::generate(&mut randomness.clone());
        let key = lane_key(&form, &Passphrase::new("a lane's"), volume).expect("it is stretched");
        let beside = Beside {
            form: &form,
            volume,
            store: &store,
            reads: &DiskReads::default(),
            randomness: &randomness,
            number: 0,
            end: 0,
            durable: 0,
        };
        beside.made(LaneMaster::generate(0, vec![outer], &randomness), LanePassphrases::one(key))
    }

    /// No wake-up is missed between a look and the wait.
    #[test]
    fn nobody_waits_on_for_a_lane_that_was_shut_or_for_a_volume_that_has_ended() {
        let failed = || Error::Tampered("a byte was changed".into());
        let shut: [fn(&Lane, Error); 3] = [
            |lane, error| drop(lane.unless_failed::<()>(Err(error))),
            |lane, error| drop(lane.judged::<()>(Err(error))),
            |lane, _| lane.end(),
        ];
        for (way, shut) in shut.into_iter().enumerate() {
            let lane = lane();
            let (looks, looked) = mpsc::channel();
            let (tells, told) = mpsc::channel();
            let (ends, ended) = mpsc::channel();
            let waiting = Arc::clone(&lane);
            let waits = thread::spawn(move || {
                let outcome = waiting.wait_until(LONG, |_| {
                    // The lane was seen open. It is shut before this one waits, if it can be.
                    let _ = looks.send(());
                    let _ = told.recv_timeout(Duration::from_millis(200));
                    false
                });
                ends.send(outcome)
            });
            looked.recv().expect("it looks");
            shut(&lane, failed());
            tells.send(()).expect("it waits");
            let outcome = ended.recv_timeout(LONG / 4).expect("it waits on");
            waits.join().expect("no panic").expect("somebody listens");
            assert!(outcome.is_err(), "way {way}: nothing became durable");
        }
    }
}
