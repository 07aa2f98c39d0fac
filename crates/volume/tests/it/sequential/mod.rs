//! Volumes on the sequential engine: right, durable at every crash, the same trace for every
//! workload of the same length, and no changed bytes are believed.
//!
//! `cargo test` plays for a second each, `just sequential-volume` and `just sequential-damage` for
//! long.

mod ahead;
mod beside;
mod bounds;
mod cover;
mod crashes;
mod damage;
mod game;
mod holes;
mod interrupted;
mod lanes;
mod lanes_damage;
mod lanes_open;
mod lanes_refused;
mod log_end;
mod lost;
mod model;
mod repair;
mod stored;
mod traces;

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::sequential::SequentialConfig;
use oblivio_store::Store;
use oblivio_testkit::Dice;
use oblivio_volume::LaneParameters;
pub(crate) use oblivio_volume::MemoryKeeper;
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::{OpenOptions, Result};
use std::sync::Arc;

/// A small volume of random form.
pub fn any_options(dice: &mut Dice) -> SequentialOptions {
    let blocks = 1 + dice.below(60);
    let engine = SequentialConfig {
        bucket_blocks: 1 + dice.below(5),
        queue_buckets: 1 + dice.below(4),
        fan_out: 2 + dice.below(4),
        last_ratio: [40, 100, 250][dice.below(3) as usize],
        sector_bytes: [128, 256, 512][dice.below(3) as usize],
        cached_nodes: dice.below(8) as usize,
        cached_leaves: dice.below(8) as usize,
        ..SequentialConfig::new(64, blocks)
    };
    // With pages in the ORAM, a bucket has room for them and for data.
    let time_pages = if dice.below(3) == 0 { 1 } else { 0 };
    let bucket_blocks = engine.bucket_blocks.max(1 + time_pages);
    let engine = SequentialConfig { time_pages, bucket_blocks, ..engine };
    let quantum_writes = 1 + dice.below(5);
    let turn = engine.queue_blocks().div_ceil(quantum_writes) + 2;
    let log_quanta = (2 + dice.below(3)) * turn;
    let fill = dice.below(2) == 0;
    // From dice of their own: what else a seed stands for stays as it was.
    let lanes = any_lanes(&mut Dice::new(blocks * log_quanta + quantum_writes));
    // A lane's maps need some room in their nodes.
    let lanes = lanes.filter(|_| bucket_blocks > 1 && engine.sector_bytes > 128);
    SequentialOptions { engine, quantum_writes, log_quanta, fill, lanes }
}

/// Lanes of a half, mostly none: they take much space for so small a volume.
fn any_lanes(dice: &mut Dice) -> Option<LaneParameters> {
    let [count, grace] = [1 + dice.below(2), 1 + dice.below(16)].map(|it| it as u8);
    (dice.below(6) == 0).then_some(LaneParameters { count, share: 2, grace, guess: 3 })
}

fn on(computer: &MemoryKeeper) -> OpenOptions {
    OpenOptions { keeper: Some(Box::new(computer.clone())), ..OpenOptions::default() }
}

fn passphrase() -> Passphrase {
    Passphrase::new("correct horse")
}

pub(crate) fn create(
    store: Arc<dyn Store>,
    options: SequentialOptions,
    computer: &MemoryKeeper,
) -> Result<SequentialVolume> {
    let quiet = &mut |_, _| {};
    SequentialVolume::create(store, &passphrase(), KdfParams::TEST, options, on(computer), quiet)
}

pub(crate) fn open(store: Arc<dyn Store>, computer: &MemoryKeeper) -> Result<SequentialVolume> {
    SequentialVolume::open(store, &passphrase(), on(computer))
}
