//! What a lane took in, and what of it must be carried before all is well.

use crate::error::{Error, Result};
use oblivio_volume::{Error as VolumeError, LaneStatus, LaneSync, LaneWait};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The account of a lane. Clones share it.
#[derive(Clone)]
pub struct LaneTally {
    sync: LaneSync,
    /// What it had taken in when it was ready: nobody misses that, if it is all.
    unused: u64,
    /// What it had taken in when its server had served everything.
    served: Arc<AtomicU64>,
}

impl LaneTally {
    /// Of a lane that nobody has used yet.
    pub fn unused(sync: LaneSync) -> Self {
        let unused = sync.accepted();
        Self { sync, unused, served: Arc::new(AtomicU64::new(unused)) }
    }

    /// What it has taken in.
    pub fn accepted(&self) -> u64 {
        self.sync.accepted()
    }

    /// Waits as [`LaneSync::wait`] does.
    ///
    /// # Errors
    /// Those of [`LaneSync::wait`].
    pub fn wait(&self, accepted: u64, time: Duration) -> oblivio_volume::Result<()> {
        self.sync.wait(accepted, time)
    }

    /// What is to be said of it.
    pub fn status(&self) -> LaneStatus {
        let status = self.sync.status();
        match self.accepted() == self.unused {
            true => LaneStatus { waiting: 0, waiting_bytes: 0, carried_by_bytes: 0, ..status },
            false => status,
        }
    }

    /// How much more may wait in memory.
    pub fn room(&self) -> u64 {
        let most = LaneWait::default().memory_bytes as u64;
        most.saturating_sub(self.sync.status().waiting_bytes)
    }

    /// Its server has served and committed everything. What the end writes after that only spares
    /// the next opening a replay.
    pub fn served(&self) {
        self.served.store(self.accepted(), Ordering::SeqCst);
    }

    /// Once the volume has ended too: refuses to say that all went well if it did not carry
    /// everything.
    ///
    /// # Errors
    /// `NotCarried`.
    pub fn expect_carried(&self) -> Result<()> {
        let served = self.served.load(Ordering::SeqCst);
        if served == self.unused {
            return Ok(());
        }
        self.wait(served, Duration::ZERO).map_err(|error| match error {
            VolumeError::Full(why) => Error::NotCarried(why),
            error => error.into(),
        })
    }
}
