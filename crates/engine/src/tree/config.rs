//! The parameters of a tree engine.

use super::bucket_cache::BucketCache;
use super::eviction::Eviction;
use super::geometry::{Geometry, Shape, buckets_in, shape_for};
use super::position_map::MapFormat;
use crate::{EngineError, Level, Result};

/// The most bytes of a PLB. A header must not make us reserve more memory than any machine has.
const MOST_PLB: usize = 256 << 20;

/// The most bytes of position map in memory after a volume outgrew its original size.
const MOST_GROWN_MAP: usize = 1 << 30;

/// The most slots of a bucket with leaf steps: 2 bits count the missing ones.
const MOST_STEPPED: usize = 4;

/// Blocks by which a few buckets may hold more than their mean.
const WAVERING: u64 = 8;

/// The parameters of a tree engine. All of them are public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeConfig {
    /// Bytes in a block (the papers' B).
    pub block_bytes: usize,
    /// Slots in a bucket (Z).
    pub blocks_per_bucket: usize,
    /// The most blocks ever (N).
    pub capacity: u64,
    /// The tree's greatest fill, in percent of its slots.
    pub fill_percent: u32,
    /// Whether the tree grows in steps of a leaf slot instead of a level.
    pub leaf_steps: bool,
    /// Which paths are written back.
    pub eviction: Eviction,
    /// Whether blocks carry PMMAC tags (Freecursive §6).
    pub pmmac: bool,
    /// Whether buckets carry their children's tags.
    pub tag_tree: bool,
    /// How position-map entries are stored.
    pub map_format: MapFormat,
    /// The most bytes of position map in memory; a larger map recurses.
    pub on_chip_bytes: usize,
    /// Bytes of the PLB (Freecursive §4), for a map that recurses.
    pub plb_bytes: usize,
    /// Its associativity.
    pub plb_ways: usize,
    /// Bytes of memory for the top of the tree.
    pub cache_bytes: usize,
}

impl TreeConfig {
    /// The default: compressed map on-chip, tag tree, as the volume uses it.
    pub fn new(block_bytes: usize, capacity: u64) -> Self {
        Self {
            block_bytes,
            blocks_per_bucket: 4,
            capacity,
            // Just over half. With half, a power of two of blocks would need another level for the
            // one bucket that a full tree lacks.
            fill_percent: 52,
            leaf_steps: false,
            eviction: Eviction::ReadPaths { extra_every: 0 },
            pmmac: false,
            tag_tree: true,
            map_format: MapFormat::Compressed { individual_bits: 14 },
            on_chip_bytes: usize::MAX,
            plb_bytes: 64 * block_bytes.max(1024),
            plb_ways: 4,
            cache_bytes: 64 << 20,
        }
    }

    /// Refuses a configuration that cannot work.
    ///
    /// # Errors
    /// `Invalid` with the reason.
    pub fn validate(&self) -> Result<()> {
        let refuse = |why: &str| Err(EngineError::Invalid(why.into()));
        if self.block_bytes < 64 || self.block_bytes > 1 << 20 {
            return refuse("a block has 64 bytes to 1 MiB");
        }
        if self.capacity == 0 || self.capacity > 1 << 40 {
            return refuse("the capacity is 1 to 2^40 blocks");
        }
        if !(1..=64).contains(&self.blocks_per_bucket) || !(1..=100).contains(&self.fill_percent) {
            return refuse("a bucket has 1 to 64 slots, filled to 1 to 100 %");
        }
        if self.leaf_steps && self.blocks_per_bucket > MOST_STEPPED {
            return refuse("a tree whose leaves grow by slots has at most 4 of them in a bucket");
        }
        if let MapFormat::Flat { bytes } = self.map_format
            && ![4, 8].contains(&bytes)
        {
            return refuse("a counter of the position map has 4 or 8 bytes");
        }
        if let MapFormat::Compressed { individual_bits } = self.map_format
            && !(1..=14).contains(&individual_bits)
        {
            return refuse("individual counters have 1 to 14 bits");
        }
        if self.map_entries_per_block() < 2 {
            return refuse("a position-map block must hold at least two entries");
        }
        if self.plb_bytes > MOST_PLB {
            return refuse("the PLB takes at most 256 MiB");
        }
        if matches!(self.eviction, Eviction::Scheduled { every: 0 }) {
            return refuse("the schedule must evict after every so many accesses");
        }
        if let Some(windows) = self.eviction.windows() {
            if !windows.is_possible() {
                return refuse(
                    "a window has 1 to 1,024 turns, and the pool at least as many leaves",
                );
            }
            if self.levels_of_recursion() > 1 || self.pmmac || !self.tag_tree {
                return refuse("with windows, the whole map is in memory, and tags are a tree");
            }
        }
        Ok(())
    }

    /// Entries of a position-map block (the paper's X).
    pub fn map_entries_per_block(&self) -> u64 {
        self.map_format.entries_in(self.block_bytes)
    }

    /// Levels of blocks: 1 without recursion (the paper's H).
    pub fn levels_of_recursion(&self) -> usize {
        let mut levels = 1;
        let mut entries = self.capacity;
        while self.map_format.bytes_for(entries) > self.on_chip_bytes && entries > 1 {
            entries = entries.div_ceil(self.map_entries_per_block());
            levels += 1;
        }
        levels
    }

    /// The same with another capacity and as many levels of recursion, on which the stored data
    /// depends. So the part of the map in memory changes size.
    ///
    /// # Errors
    /// `Invalid` for a capacity that no tree has, or that does not fit this number of levels.
    pub fn with_capacity(&self, capacity: u64) -> Result<Self> {
        let levels = self.levels_of_recursion();
        let mut counts = vec![capacity];
        for _ in 1..levels {
            counts.push(counts[counts.len() - 1].div_ceil(self.map_entries_per_block()));
        }
        let bytes = |level: usize| self.map_format.bytes_for(counts[level]);
        let least = bytes(levels - 1);
        let most = if levels > 1 { bytes(levels - 2) - 1 } else { usize::MAX };
        if least > most || least > MOST_GROWN_MAP.max(self.on_chip_bytes) {
            return Err(EngineError::Invalid(format!(
                "{capacity} blocks are too {} for what the volume was made for; make a new one",
                if least > most { "few" } else { "many" }
            )));
        }
        let on_chip_bytes = self.on_chip_bytes.clamp(least, most);
        let config = Self { capacity, on_chip_bytes, ..*self };
        config.validate()?;
        debug_assert_eq!(config.levels_of_recursion(), levels, "as before");
        Ok(config)
    }

    /// Blocks of each level of recursion when `blocks` data blocks are addressable.
    pub fn blocks_by_level(&self, blocks: u64) -> Vec<u64> {
        let mut counts = vec![blocks];
        for _ in 1..self.levels_of_recursion() {
            counts.push(counts[counts.len() - 1].div_ceil(self.map_entries_per_block()));
        }
        counts
    }

    /// The geometry of the tree.
    pub fn geometry(&self) -> Geometry {
        Geometry {
            block_bytes: self.block_bytes,
            blocks_per_bucket: self.blocks_per_bucket,
            tag_tree: self.tag_tree,
            pmmac: self.pmmac,
        }
    }

    /// The depth of the tree when `blocks` data blocks are addressable and may all exist.
    pub fn depth(&self, blocks: u64) -> Level {
        self.shape_for_live(blocks, blocks).depth
    }

    /// The shape of the tree when `ids` data blocks are addressable and at most `live` exist at a
    /// time. The map's own blocks stay in it, whether or not their data blocks exist.
    pub fn shape_for_live(&self, live: u64, ids: u64) -> Shape {
        let held = live + self.blocks_by_level(ids)[1..].iter().sum::<u64>();
        shape_for(held, self.blocks_per_bucket, self.fill_percent, self.leaf_steps)
    }

    /// The number of buckets kept in memory, in heap order, for a tree of this shape. A shrinking
    /// tree becomes `floor`; else this is its shape.
    ///
    /// With windows, they are the pool. Else each level counts with the blocks that its buckets
    /// hold at most in the mean, and all together with those for which the tree has its shape.
    pub fn cached_buckets(&self, shape: Shape, floor: Shape) -> u64 {
        if let Some(windows) = self.eviction.windows() {
            return windows.pool_buckets();
        }
        let known = BucketCache::bytes_per_bucket(&self.geometry(), 0) as u64;
        let reserve = WAVERING * self.block_bytes as u64;
        let budget = (self.cache_bytes as u64).saturating_sub(reserve);
        let all = buckets_in(shape.depth);
        let blocks = shape.slots(self.blocks_per_bucket) * u64::from(self.fill_percent) / 100;
        if all * known + blocks * self.block_bytes as u64 <= budget {
            return all;
        }
        // The leaves to come fill before they lose their slots.
        let leaf_slots = if floor < shape { self.blocks_per_bucket } else { shape.leaf_slots };
        let floor = Shape { leaf_slots, ..floor };
        let (mut cached, mut rest) = (0, budget);
        for level in 0..=floor.depth.0 {
            let cost = known + self.load_bytes(level, floor);
            let fit = (rest / cost).min(1 << level);
            (cached, rest) = (cached + fit, rest - fit * cost);
            if fit < 1 << level {
                break;
            }
        }
        cached
    }

    /// The greatest mean bytes of blocks in a bucket of this level, for any accesses. In the levels
    /// above the leaves blocks wait for room below; above them they only pass.
    fn load_bytes(&self, level: u32, shape: Shape) -> u64 {
        let (passing, full) = (self.eviction.passing_load(), self.blocks_per_bucket);
        let quarters = match shape.depth.0 - level {
            0 => 4 * shape.leaf_slots,
            _ if passing >= full => 4 * full,
            1 | 2 => 4 * passing + 3,
            3 => 4 * passing + 1,
            _ => 4 * passing,
        };
        (quarters.min(4 * full) * self.block_bytes / 4) as u64
    }

    /// Bytes of a path's buckets outside memory when the first `cached` are in it; the mean of all
    /// paths.
    pub fn uncached_path_bytes(&self, shape: Shape, cached: u64) -> usize {
        let geometry = self.geometry();
        let outside = |level: u32| {
            let slots =
                if level == shape.depth.0 { shape.leaf_slots } else { self.blocks_per_bucket };
            let buckets = 1u64 << level;
            // This level's buckets follow the levels above in heap order.
            let inside = cached.saturating_sub(buckets - 1).min(buckets);
            (geometry.bucket_bytes_with(slots) as f64 * (1.0 - inside as f64 / buckets as f64))
                as usize
        };
        (0..=shape.depth.0).map(outside).sum()
    }

    /// Bytes of a tree that has stored every bucket.
    pub fn tree_bytes(&self, blocks: u64) -> u64 {
        self.tree_bytes_for(blocks, blocks)
    }

    /// As [`Self::tree_bytes`], with at most `live` existing blocks.
    pub fn tree_bytes_for(&self, blocks: u64, live: u64) -> u64 {
        self.geometry().tree_bytes(self.shape_for_live(live, blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_capacity_leaves_the_levels_of_recursion() {
        let compressed = |capacity, on_chip_bytes| TreeConfig {
            on_chip_bytes,
            ..TreeConfig::new(4096, capacity)
        };
        // The whole map is in memory: up to 32 Mi blocks without a change.
        let flat = compressed(1 << 20, 64 << 20);
        for capacity in [64, 1 << 20, 1 << 25, (1 << 25) + 1, 1 << 28] {
            let config = flat.with_capacity(capacity).expect("one level");
            assert_eq!((config.capacity, config.levels_of_recursion()), (capacity, 1));
            assert_eq!(config.on_chip_bytes > flat.on_chip_bytes, capacity > 1 << 25);
        }
        assert!(flat.with_capacity(1 << 30).is_err(), "a map of 2 GiB in memory");
        assert!(flat.with_capacity(0).is_err() && flat.with_capacity(1 << 41).is_err());
        let deep = compressed(1 << 26, 64 << 20);
        for capacity in [100, 1 << 20, 1 << 26, 1 << 36] {
            let config = deep.with_capacity(capacity).expect("two levels");
            assert_eq!((config.capacity, config.levels_of_recursion()), (capacity, 2));
            // And back.
            let back = config.with_capacity(1 << 26).expect("as it was");
            assert_eq!(back.levels_of_recursion(), 2);
        }
        assert!(deep.with_capacity(1).is_err(), "one block needs no second level");
    }

    #[test]
    fn of_a_path_what_is_not_in_memory_counts() {
        let config = TreeConfig { leaf_steps: true, ..TreeConfig::new(64, 1 << 20) };
        let shape = Shape { depth: Level(3), leaf_slots: 1 };
        let bytes = |cached| config.uncached_path_bytes(shape, cached);
        let [full, leaf] = [4, 1].map(|slots| config.geometry().bucket_bytes_with(slots));
        assert_eq!(config.blocks_per_bucket, 4);
        assert_eq!(bytes(0), 3 * full + leaf);
        assert_eq!(bytes(1), 2 * full + leaf);
        assert_eq!(bytes(5), full / 2 + leaf, "half of the paths pass a bucket that is in memory");
        assert_eq!(bytes(7 + 2), leaf * 3 / 4);
        assert_eq!([bytes(15), bytes(99)], [0; 2]);
    }
}
