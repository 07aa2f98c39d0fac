//! The engine with a volume's parameters, for experiments that drive an engine without a volume.

use oblivio_engine::tree::{Eviction, TreeConfig, buckets_in};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_volume::DEFAULT_MEMORY;

/// The configuration of a volume with the default memory budget (`config_of` and `cache_bytes`
/// in the volume crate).
pub fn volume_config(block_bytes: usize, blocks: u64) -> TreeConfig {
    let config = TreeConfig {
        eviction: Eviction::Scheduled { every: 3 },
        leaf_steps: true,
        on_chip_bytes: 64 << 20,
        plb_bytes: (4 << 20).max(64 * block_bytes),
        plb_ways: 8,
        ..TreeConfig::new(block_bytes, blocks)
    };
    let map = config.map_format.bytes_for(blocks.min(32 << 20));
    let buckets = buckets_in(config.depth(blocks)) as usize;
    let known = 2 * map + buckets * 14;
    TreeConfig { cache_bytes: (DEFAULT_MEMORY / 4 * 3).saturating_sub(known), ..config }
}

/// An operation that reads a block.
pub fn read(id: u64) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Read }
}

/// An operation that fills a block with its own number.
pub fn write(id: u64, block_bytes: usize) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Write(vec![id as u8; block_bytes]) }
}
