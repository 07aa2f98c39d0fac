//! The costs and the memory of an engine so far.

use super::backend::Backend;
use super::frontend::TreeOram;
use super::meters::Meters;

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
        let mut sum = self.meters;
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
