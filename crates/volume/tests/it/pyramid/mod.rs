//! A volume on the pyramid engine: its trace as data, crashes, rollbacks and refusals.

mod crashes;
mod pairs;
mod refusals;
mod seen;
mod traces;

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::Store;
use oblivio_volume::pyramid::PyramidOptions;
use oblivio_volume::{Environment, OpenOptions, Result, Volume};
use std::sync::Arc;

const BYTES: usize = 1024;
/// Blocks of a volume.
const BLOCKS: u64 = 512;

fn passphrase() -> Passphrase {
    Passphrase::new("a pyramid")
}

fn options(seed: u64) -> OpenOptions {
    let environment = Environment::from_seed(seed);
    OpenOptions { memory_bytes: 8 << 20, environment, ..OpenOptions::default() }
}

/// Of 512 blocks, a stash of 64 asks, and 4 partitions or more.
fn create_options() -> PyramidOptions {
    PyramidOptions {
        block_bytes: BYTES,
        capacity_bytes: BLOCKS * BYTES as u64,
        stash_bytes: 64 * BYTES,
    }
}

fn create(store: Arc<dyn Store>, seed: u64) -> Volume {
    let made = Volume::create_pyramid(
        store,
        &passphrase(),
        KdfParams::TEST,
        create_options(),
        options(seed),
    );
    made.expect("an empty store")
}

fn open(store: Arc<dyn Store>, seed: u64) -> Result<Volume> {
    Volume::open(store, &passphrase(), options(seed))
}

fn read(id: u64) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Read }
}

fn write(id: u64, byte: u8) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Write(vec![byte; BYTES]) }
}
