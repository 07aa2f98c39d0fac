//! Freecursive's named configurations (§7.1), as the engine has them.
//!
//! Where the paper's uncompressed map has labels of 32 bits, ours has counters of 32 bits: as many
//! bytes and paths.

use oblivio_engine::tree::{MapFormat, TreeConfig};

fn paper(block_bytes: usize, capacity: u64) -> TreeConfig {
    TreeConfig {
        tag_tree: false,
        cache_bytes: 0,
        on_chip_bytes: 128 << 10,
        plb_bytes: 64 << 10,
        plb_ways: 1,
        ..TreeConfig::new(block_bytes, capacity)
    }
}

/// Phantom (§7.1.6): the whole map on-chip, no recursion.
pub fn phantom(block_bytes: usize, capacity: u64) -> TreeConfig {
    TreeConfig { on_chip_bytes: usize::MAX, ..p_x16(block_bytes, capacity) }
}

/// P_X16: PLB and unified tree, uncompressed map (16 entries in a 64-byte block).
pub fn p_x16(block_bytes: usize, capacity: u64) -> TreeConfig {
    TreeConfig { map_format: MapFormat::Flat { bytes: 4 }, ..paper(block_bytes, capacity) }
}

/// PC_X32: P and the compressed map (32 entries in a 64-byte block).
pub fn pc_x32(block_bytes: usize, capacity: u64) -> TreeConfig {
    paper(block_bytes, capacity)
}

/// PI_X8: P and PMMAC with flat counters (8 entries in a 64-byte block).
pub fn pi_x8(block_bytes: usize, capacity: u64) -> TreeConfig {
    let map_format = MapFormat::Flat { bytes: 8 };
    TreeConfig { map_format, pmmac: true, ..paper(block_bytes, capacity) }
}

/// PIC_X32: PC and PMMAC.
pub fn pic_x32(block_bytes: usize, capacity: u64) -> TreeConfig {
    TreeConfig { pmmac: true, ..paper(block_bytes, capacity) }
}
