//! What a controller is built for, and where its buckets lie in memory.

use oblivio_engine::Address;
use oblivio_engine::tree::MapFormat;

/// Bytes of a block, and of a line of memory.
pub const LINE: usize = 64;
/// Slots of a bucket (Z).
pub const SLOTS: usize = 4;
/// Bytes of a chunk: what one pad covers.
pub const CHUNK: usize = 16;
/// The address in an empty slot.
pub const EMPTY: u32 = u32::MAX;

/// A block's content.
pub type Block = [u8; LINE];
/// A block's MAC (PMMAC).
pub type Tag = [u8; 16];

/// The parameters of the hardware.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The depth of the leaves (L).
    pub depth: u32,
    /// Levels of a subtree, whose buckets lie together.
    pub subtree: u32,
    /// Levels of recursion, the data's included (H).
    pub recursion: usize,
    /// The encoding of the position map.
    pub map: MapFormat,
    /// Whether blocks carry MACs.
    pub macs: bool,
    /// Blocks of the PLB, a power of two.
    pub plb_rows: usize,
    /// Blocks of the position map on-chip.
    pub map_rows: usize,
    /// Slots of the stash, with those for a path.
    pub stash: usize,
    /// Groups that can wait for their remap.
    pub backlog: usize,
    /// Cycles between the starts of two paths; 0 for paths as they are needed. The model knows no
    /// time, and nothing of this.
    pub interval: u64,
}

impl Shape {
    /// Entries of a map block, as a power of two.
    pub fn entry_bits(&self) -> u32 {
        self.map.entries_in(LINE).ilog2()
    }

    /// Data blocks: as many as the map on-chip leads to.
    pub fn blocks(&self) -> u64 {
        (self.map_rows as u64) << (self.entry_bits() * self.recursion as u32)
    }

    /// Lines of a bucket: the header, the MACs if there are any, and the blocks.
    pub fn bucket_lines(&self) -> usize {
        1 + usize::from(self.macs) + SLOTS
    }

    /// Bits of an individual counter; 0 for flat counters.
    pub fn individual_bits(&self) -> u32 {
        match self.map {
            MapFormat::Compressed { individual_bits } => individual_bits,
            MapFormat::Flat { .. } => 0,
        }
    }

    /// The map block at `level` that leads to a data block; the data block itself at level 0.
    pub fn at_level(&self, data: u64, level: usize) -> Address {
        Address::new(level, data >> (self.entry_bits() * level as u32))
    }

    /// The PLB's row of a map block: the engine's set function.
    pub fn plb_row(&self, id: Address) -> usize {
        let mixed = id.index().wrapping_add((id.level() as u64).wrapping_mul(0x9e37_79b9));
        (mixed % self.plb_rows as u64) as usize
    }

    /// The leaf of a label.
    pub fn leaf(&self, label: u64) -> u32 {
        label.checked_shr(64 - self.depth).unwrap_or(0) as u32
    }

    /// The deepest level that the paths of two leaves share.
    pub fn common(&self, one: u32, other: u32) -> u32 {
        let unequal = one ^ other;
        self.depth - (u32::BITS - unequal.leading_zeros())
    }

    /// The buckets of a leaf's path, the root first. Subtrees lie in the order of a heap in which
    /// each has 2^`subtree` children; in a subtree, buckets lie in the order of a heap.
    pub fn path(&self, leaf: u32) -> impl Iterator<Item = u64> + use<> {
        let shape = *self;
        let (mut tree, mut inner, mut below) = (0u64, 0u64, 0u64);
        (0..=self.depth).map(move |level| {
            if level > 0 {
                let side = u64::from(leaf >> (shape.depth - level) & 1);
                below = below << 1 | side;
                if level % shape.subtree == 0 {
                    tree = (tree << shape.subtree) + 1 + below;
                    (inner, below) = (0, 0);
                } else {
                    inner = 2 * inner + 1 + side;
                }
            }
            tree * ((1 << shape.subtree) - 1) + inner
        })
    }
}

/// As the hardware stores an address: 4 bits of level, 28 bits of number.
pub fn short(id: Address) -> u32 {
    (id.level() as u32) << 28 | id.index() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    pub fn small(depth: u32, subtree: u32) -> Shape {
        Shape {
            depth,
            subtree,
            recursion: 2,
            map: MapFormat::Flat { bytes: 8 },
            macs: true,
            plb_rows: 4,
            map_rows: 4,
            stash: 50,
            backlog: 16,
            interval: 0,
        }
    }

    #[test]
    fn paths_share_exactly_their_common_buckets() {
        for (depth, subtree) in [(1, 3), (5, 2), (6, 3), (6, 4)] {
            let shape = small(depth, subtree);
            let mut owners = HashMap::new();
            for leaf in 0..1 << depth {
                for (level, bucket) in shape.path(leaf).enumerate() {
                    let owner = (level, leaf >> (depth - level as u32));
                    assert_eq!(*owners.entry(bucket).or_insert(owner), owner, "{bucket}");
                }
            }
            assert_eq!(owners.len(), (2 << depth) - 1);
            for (one, other) in [(0, 0), (0, 1), (0, (1 << depth) - 1)] {
                let both = shape.path(one).zip(shape.path(other)).filter(|(a, b)| a == b);
                assert_eq!(both.count() as u32, shape.common(one, other) + 1);
            }
        }
    }
}
