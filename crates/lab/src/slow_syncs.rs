//! A disk on which each sync takes a given time. The virtual disks that figures come from sync in a
//! fraction of a millisecond; a laptop's SSD takes 1 to 5 ms, a hard disk 8 to 16.

use oblivio_crypto::VolumeId;
use oblivio_store::{Layer, LocalStore, Result as StoreResult, StoreAnswer, StoreCall};
use oblivio_volume::{ComputerId, Keep, Keeper, Known, NoteSyncer, Result};
use std::time::Duration;

/// A folder whose syncs take longer.
pub struct SlowSyncs {
    pub below: LocalStore,
    /// By how much.
    pub delay: Duration,
}

impl Layer for SlowSyncs {
    type Below = LocalStore;

    fn below(&self) -> &LocalStore {
        &self.below
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> StoreResult<StoreAnswer> {
        use StoreCall::{Allocate, Delete, Put, Settle, Sync, Truncate, WriteDurable};
        if let WriteDurable(_) | Sync(_) | Allocate(..) | Put(..) | Truncate(..) | Delete(_)
        | Settle(_) = call
        {
            std::thread::sleep(self.delay);
        }
        call.on(&self.below)
    }
}

/// A computer that keeps its notes on such a disk.
pub struct SlowKeeper<K> {
    pub below: K,
    pub delay: Duration,
}

impl<K: Keeper> Keeper for SlowKeeper<K> {
    fn take(&mut self, volume: VolumeId) -> Result<Option<Known>> {
        self.below.take(volume)
    }

    fn note(&mut self, known: &Known, keep: Keep) -> Result<()> {
        if keep == Keep::Durable {
            std::thread::sleep(self.delay);
        }
        self.below.note(known, keep)
    }

    fn machine(&self) -> Option<ComputerId> {
        self.below.machine()
    }

    fn syncer(&self) -> Option<NoteSyncer> {
        let (below, delay) = (self.below.syncer()?, self.delay);
        Some(Box::new(move || {
            std::thread::sleep(delay);
            below()
        }))
    }

    fn holds(&mut self, known: &Known) -> Result<bool> {
        self.below.holds(known)
    }
}
