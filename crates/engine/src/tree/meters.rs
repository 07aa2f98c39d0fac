//! An engine's counters, so that claims about its cost are measured and not estimated.

use super::backend::Backend;
use super::frontend::TreeOram;

/// Counters of one engine since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meters {
    /// Operations requested by the caller.
    pub requests: u64,
    /// Paths read for requests, position-map blocks, maintenance and the schedule.
    pub paths: u64,
    /// Paths read for position-map blocks alone.
    pub map_paths: u64,
    /// Buckets read.
    pub buckets_read: u64,
    /// Buckets written.
    pub buckets_written: u64,
    /// Bytes read and written, as the store sees them.
    pub bytes_moved: u64,
    /// The part of `bytes_moved` for position-map blocks.
    pub map_bytes_moved: u64,
    /// Bytes that PMMAC hashed, for checks and new tags.
    pub pmmac_bytes: u64,
    /// Bytes authenticated by the tag tree: every bucket read or written.
    pub tag_tree_bytes: u64,
    /// Group remaps (Freecursive §5.2.2).
    pub group_remaps: u64,
    /// The stash's highest occupancy after an eviction.
    pub stash_peak: u64,
    /// The most blocks that were waiting for a group remap.
    pub remap_backlog_peak: u64,
    /// PLB lookups that found their block.
    pub plb_hits: u64,
    /// PLB lookups that missed.
    pub plb_misses: u64,
}

impl TreeOram {
    /// Memory of the cached buckets now, in bytes.
    pub fn cache_bytes(&self) -> usize {
        let tree = &self.trees[0];
        tree.cache.known_bytes() + tree.cache.held() * self.config.block_bytes
    }

    /// Blocks in the stashes of all trees now.
    pub fn stash_blocks(&self) -> usize {
        self.trees.iter().map(|tree| tree.stash.len()).sum()
    }

    /// The counters so far.
    pub fn meters(&self) -> Meters {
        let mut sum = Meters {
            requests: self.requests,
            pmmac_bytes: self.pmmac_bytes,
            map_paths: self.map_paths,
            map_bytes_moved: self.map_bytes,
            group_remaps: self.group_remaps,
            remap_backlog_peak: self.backlog_peak,
            plb_hits: self.plb_hits,
            plb_misses: self.plb_misses,
            ..Meters::default()
        };
        for tree in &self.trees {
            sum.paths += tree.meters.paths;
            sum.buckets_read += tree.meters.buckets_read;
            sum.buckets_written += tree.meters.buckets_written;
            sum.bytes_moved += tree.meters.bytes_moved;
            sum.tag_tree_bytes += tree.meters.tag_tree_bytes;
            sum.stash_peak = sum.stash_peak.max(tree.meters.stash_peak);
        }
        sum
    }

    /// Bytes of memory that the engine holds.
    pub fn memory_bytes(&self) -> usize {
        self.on_chip.len() + self.trees.iter().map(Backend::memory_bytes).sum::<usize>()
    }
}
