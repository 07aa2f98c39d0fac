//! What a tree reports of itself.

use crate::engine::VolumeInfo;

/// Information about a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeInfo {
    /// Slots in a bucket.
    pub blocks_per_bucket: usize,
    /// Bytes of a bucket in the store.
    pub bucket_bytes: usize,
    /// Blocks addressable now (the size class that the store can see).
    pub addressable_blocks: u64,
    /// Blocks that the tree is sized for now.
    pub size_class: u64,
    /// Blocks that exist.
    pub live_blocks: u64,
    /// The level of the tree's leaves.
    pub depth: u32,
    /// Slots of the leaves' buckets; all others have [`Self::blocks_per_bucket`].
    pub leaf_slots: usize,
    /// Slots of all stored buckets.
    pub stored_slots: u64,
    /// Levels of recursion of the position map; 1 when it is all in memory.
    pub recursion_levels: usize,
}

impl VolumeInfo {
    /// The report of a tree, if the volume is on one.
    pub fn tree(&self) -> Option<&TreeInfo> {
        self.report()
    }
}
