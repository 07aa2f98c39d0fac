//! The schemes of the paper that the hardware is built for, and requests for them.

use super::bench::Ask;
use super::shape::Shape;
use oblivio_engine::tree::MapFormat;
use oblivio_testkit::SplitMix64;

/// A named scheme (Freecursive section 7.1.4) with a tree of this depth, a PLB of `rows` blocks and
/// a map on-chip of at most as many. Half of the tree's slots are for data, as in the paper.
pub fn scheme(name: &str, depth: u32, rows: usize) -> Option<Shape> {
    let compressed = MapFormat::Compressed { individual_bits: 14 };
    let (map, macs) = match name {
        "PI_X8" => (MapFormat::Flat { bytes: 8 }, true),
        "PC_X32" => (compressed, false),
        "PIC_X32" => (compressed, true),
        _ => return None,
    };
    let (mut recursion, mut entries) = (1, (2u64 << depth) / map.entries_in(64));
    while entries > rows as u64 {
        entries /= map.entries_in(64);
        recursion += 1;
    }
    Some(Shape {
        depth,
        subtree: 4,
        recursion,
        map,
        macs,
        plb_rows: rows,
        map_rows: entries as usize,
        stash: 200 + 4 * (depth as usize + 1),
        backlog: 8,
        interval: 0,
    })
}

/// Reads and writes of blocks near each other and far away.
pub fn requests(shape: &Shape, count: usize, seed: u64) -> Vec<Ask> {
    let (mut dice, mut at, blocks) = (SplitMix64::new(seed), 0, shape.blocks());
    let next = |_| {
        at = match dice.below(8) {
            0..3 => dice.below(blocks),
            3 => dice.below(blocks.min(64)),
            _ => (at + 1) % blocks,
        };
        if dice.below(2) == 0 {
            return Ask::Read(at);
        }
        Ask::Write(at, std::array::from_fn(|_| dice.below(256) as u8))
    };
    (0..count).map(next).collect()
}
