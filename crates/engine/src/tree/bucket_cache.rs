//! The top of the tree, kept open in memory.
//!
//! Which buckets are cached follows from the memory budget alone: the first `limit` in heap
//! order. A cached bucket is read when its path is first shown and written back at a flush.

use super::block_pool::Payload;
use oblivio_crypto::Tag;

/// A block that is in memory, with its label.
#[derive(Clone, Copy, Debug)]
pub struct Resident {
    /// The block.
    pub id: u64,
    /// Its label.
    pub label: u64,
    /// Its PMMAC tag.
    pub mac: Tag,
    /// Its content.
    pub payload: Payload,
}

/// One cached bucket.
#[derive(Clone, Debug, Default)]
pub struct CachedBucket {
    /// Its blocks, at most Z.
    pub blocks: Vec<Resident>,
    /// The tags of its children as they stand in the store.
    pub child_tags: [Tag; 2],
    /// Whether the content is in memory (or was never stored).
    pub loaded: bool,
    /// Whether it differs from what is stored.
    pub dirty: bool,
}

/// The cached buckets.
pub struct BucketCache {
    buckets: Vec<CachedBucket>,
    limit: u64,
}

impl BucketCache {
    /// A cache of the first `limit` buckets in heap order, none loaded.
    pub fn new(limit: u64) -> Self {
        Self { buckets: Vec::new(), limit }
    }

    /// Whether the bucket with this heap index belongs in the cache.
    pub fn holds(&self, bucket: u64) -> bool {
        bucket <= self.limit
    }

    /// The cached bucket, which must be one that [`Self::holds`].
    pub fn get_mut(&mut self, bucket: u64) -> &mut CachedBucket {
        let at = bucket as usize - 1;
        if at >= self.buckets.len() {
            self.buckets.resize_with(at + 1, CachedBucket::default);
        }
        &mut self.buckets[at]
    }

    /// The cached bucket, if it was ever touched.
    pub fn get(&self, bucket: u64) -> Option<&CachedBucket> {
        self.buckets.get((bucket as usize).wrapping_sub(1))
    }

    /// Heap indices of the dirty buckets, descending, so children before parents.
    pub fn dirty(&self) -> Vec<u64> {
        let dirty = |(at, bucket): (usize, &CachedBucket)| bucket.dirty.then_some(at as u64 + 1);
        self.buckets.iter().enumerate().rev().filter_map(dirty).collect()
    }
}
