//! Disks under the tests' file systems: blocks in memory, and a volume on the sequential engine in
//! a store with a volatile cache.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::{MemoryStore, Store};
use oblivio_testkit::CrashStore;
use oblivio_testkit::blocks::MemoryBlocks;
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::{BlockSpace, OpenOptions, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// A disk whose power may fail.
pub trait TestDisk {
    /// Opens it.
    fn boxed(&self) -> Box<dyn BlockSpace>;
    /// The power fails; nobody may have it open.
    fn crash(&self);
}

impl TestDisk for MemoryBlocks {
    fn boxed(&self) -> Box<dyn BlockSpace> {
        self.boxed()
    }

    fn crash(&self) {
        self.crash();
    }
}

/// A new sequential volume.
pub fn sequential(block_bytes: usize, blocks: u64) -> MemoryStore {
    let store = Arc::new(MemoryStore::new());
    let options = SequentialOptions::new(block_bytes, blocks * block_bytes as u64);
    let (kdf, open, quiet) = (KdfParams::TEST, OpenOptions::default(), &mut |_, _| {});
    let created = SequentialVolume::create(store.clone(), &passphrase(), kdf, options, open, quiet);
    drop(created.expect("a volume"));
    store.snapshot()
}

/// Opens a volume for a file system.
pub fn open(store: Arc<dyn Store>) -> Result<Box<dyn BlockSpace>> {
    let volume = SequentialVolume::open(store, &passphrase(), OpenOptions::default())?;
    Ok(Box::new(volume))
}

fn passphrase() -> Passphrase {
    Passphrase::new("correct horse")
}

/// A sequential volume. Of what the engine had not made durable, a crash keeps a random part.
pub struct SequentialDisk {
    store: Mutex<Arc<CrashStore>>,
    chance: u64,
}

impl SequentialDisk {
    pub fn new(block_bytes: usize, blocks: u64, chance: u64) -> Self {
        let store = CrashStore::holding(&sequential(block_bytes, blocks));
        Self { store: Mutex::new(Arc::new(store)), chance }
    }
}

impl TestDisk for SequentialDisk {
    fn boxed(&self) -> Box<dyn BlockSpace> {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner).clone();
        open(store).expect("it opens")
    }

    fn crash(&self) {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.crash();
        let left = store.survivors(self.chance ^ store.operations());
        *store = Arc::new(CrashStore::holding(&left));
    }
}
