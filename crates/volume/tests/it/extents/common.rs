//! Computers, folders, and what is in a volume.

use oblivio_crypto::{KdfParams, Passphrase, VolumeId};
use oblivio_engine::sequential::SequentialConfig;
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{MemoryStore, Objects, Store};
use oblivio_volume::extents::{ExtentOptions, ExtentVolume};
use oblivio_volume::sequential::SequentialOptions;
use oblivio_volume::{
    Beside, BlockSpace, Environment, MemoryKeeper, OpenOptions, Result, SimulatedClock, Volume,
    Which,
};
use std::sync::Arc;

pub const BYTES: usize = 256;
pub const BLOCKS: u64 = 60;

pub fn passphrase() -> Passphrase {
    Passphrase::new("extents")
}

/// Levels, a queue and a log of many extents.
pub fn options() -> ExtentOptions {
    let engine = SequentialConfig {
        bucket_blocks: 4,
        queue_buckets: 2,
        fan_out: 3,
        sector_bytes: 256,
        ..SequentialConfig::new(BYTES, BLOCKS)
    };
    let sequential =
        SequentialOptions { quantum_writes: 3, log_quanta: 24, ..SequentialOptions::of(engine) };
    ExtentOptions { sequential, extent_bytes: 4096 }
}

/// A computer: what it has beside the folder, and what it knows.
#[derive(Clone)]
pub struct Computer {
    pub beside: Arc<dyn Store>,
    pub keeper: MemoryKeeper,
    pub seed: u64,
    pub clock: Arc<SimulatedClock>,
}

struct Place(Arc<dyn Store>);

impl Beside for Place {
    fn store(&self, _volume: VolumeId) -> Result<Arc<dyn Store>> {
        Ok(Arc::clone(&self.0))
    }

    fn link(&self, _volume: VolumeId, _object: &str) -> bool {
        false
    }
}

impl Computer {
    pub fn new(seed: u64) -> Self {
        Self::with(Arc::new(MemoryStore::new()), seed)
    }

    pub fn with(beside: Arc<dyn Store>, seed: u64) -> Self {
        let (keeper, clock) = (MemoryKeeper::default(), Arc::default());
        Self { beside, keeper, seed, clock }
    }

    /// The options of its next session. Each has other randomness.
    pub fn session(&mut self, history: Which) -> OpenOptions {
        self.seed += 1;
        OpenOptions {
            keeper: Some(Box::new(self.keeper.clone())),
            beside: Some(Arc::new(Place(Arc::clone(&self.beside)))),
            history,
            environment: Environment {
                clock: self.clock.clone(),
                ..Environment::from_seed(self.seed)
            },
            ..OpenOptions::default()
        }
    }

    pub fn create(&mut self, folder: Arc<dyn Objects>) -> ExtentVolume {
        self.create_with(folder, options())
    }

    pub fn create_with(&mut self, folder: Arc<dyn Objects>, create: ExtentOptions) -> ExtentVolume {
        let (open, quiet) = (self.session(Which::Newest), &mut |_, _| {});
        let kdf = KdfParams::TEST;
        ExtentVolume::create(folder, &passphrase(), kdf, create, open, quiet).expect("it is empty")
    }

    pub fn open(&mut self, folder: Arc<dyn Objects>) -> Result<Volume> {
        self.open_as(folder, Which::Newest)
    }

    pub fn open_as(&mut self, folder: Arc<dyn Objects>, history: Which) -> Result<Volume> {
        let open = self.session(history);
        Volume::open(folder, &passphrase(), open)
    }
}

pub fn write(id: u64, byte: u8) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Write(vec![byte; BYTES]) }
}

/// The first bytes of all blocks.
pub fn contents(volume: &mut dyn BlockSpace) -> Vec<Option<u8>> {
    let read = |id| BlockOp { id: BlockId(id), action: Action::Read };
    let found = volume.access((0..BLOCKS).map(read).collect()).expect("sound");
    found.into_iter().map(|block| block.map(|bytes| bytes[0])).collect()
}

/// The names in a folder, with the lengths of the files.
pub fn names(folder: &dyn Objects) -> Vec<(String, u64)> {
    folder.list().expect("memory")
}
