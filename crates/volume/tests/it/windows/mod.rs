//! Volumes on the tree in windows: what the store sees, several computers, crashes.

mod cache;
mod collecting;
mod computers;
mod costs;
mod crashes;
mod damage;
mod handover;
mod not_damage;
mod outages;
mod passed;
mod requests;
mod sectors;
mod traces;
mod whole;
mod workloads;

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::Store;
use oblivio_testkit::SplitMix64;
use oblivio_volume::windows::{WindowOptions, WindowVolume};
use oblivio_volume::{BlockSpace, Environment, OpenOptions, Result, Volume};
use std::sync::Arc;

/// Bytes in a block, and blocks that the workloads use.
pub(crate) const BYTES: usize = 1024;
pub(crate) const BLOCKS: u64 = 200;

pub(crate) fn passphrase() -> Passphrase {
    Passphrase::new("windows")
}

/// Windows of four turns, and three levels in the pool.
pub(crate) fn options(exclusive: bool) -> WindowOptions {
    WindowOptions {
        object_bytes: 16 * BYTES,
        pool_bytes: 28 * BYTES,
        ..WindowOptions::new(BYTES, 4096 * BYTES as u64, exclusive)
    }
}

pub(crate) fn create(store: Arc<dyn Store>, exclusive: bool, seed: u64) -> WindowVolume {
    let open = OpenOptions { environment: Environment::from_seed(seed), ..OpenOptions::default() };
    let (create, kdf) = (options(exclusive), KdfParams::TEST);
    let mut volume =
        WindowVolume::create(store, &passphrase(), kdf, create, open).expect("an empty store");
    volume.reserve(BLOCKS).expect("room");
    volume
}

pub(crate) fn open(store: Arc<dyn Store>, seed: u64) -> Result<Volume> {
    let open = OpenOptions { environment: Environment::from_seed(seed), ..OpenOptions::default() };
    Volume::open(store, &passphrase(), open)
}

pub(crate) fn write(id: u64, byte: u8) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Write(vec![byte; BYTES]) }
}

pub(crate) fn read(id: u64) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Read }
}

/// The first bytes of all blocks.
pub(crate) fn contents(volume: &mut impl BlockSpace) -> Vec<Option<u8>> {
    let found = volume.access((0..BLOCKS).map(read).collect()).expect("sound");
    found.into_iter().map(|block| block.map(|bytes| bytes[0])).collect()
}

/// Writes to drawn blocks, some synced; the model of them.
pub(crate) fn fill(
    volume: &mut impl BlockSpace,
    dice: &mut SplitMix64,
    steps: u64,
) -> Vec<Option<u8>> {
    let mut model = vec![None; BLOCKS as usize];
    for step in 0..steps {
        let (id, byte) = (dice.below(BLOCKS), dice.below(256) as u8);
        volume.defer(vec![write(id, byte)]).expect("memory");
        model[id as usize] = Some(byte);
        if step % 7 == 6 {
            volume.commit().expect("memory");
        }
    }
    volume.commit().expect("memory");
    model
}
