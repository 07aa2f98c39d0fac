//! The top of the tree, opened, in memory.
//!
//! The memory budget alone determines the cached buckets: the first `limit` in heap order. A cached
//! bucket is read when its path is first shown and written back at a flush.

use super::block_pool::Payload;
use super::geometry::{Geometry, SlotHeader};
use crate::BucketId;
use oblivio_crypto::Tag;

/// A block in memory, with its label.
#[derive(Clone, Copy, Debug)]
pub struct Resident {
    /// The block, its label and its PMMAC tag.
    pub header: SlotHeader,
    /// Its content.
    pub payload: Payload,
    /// Its slot in the stored version of its bucket. Meaningless while that version is out of date.
    pub slot: u8,
    /// What makes it durable while the top is in a log: an entry, or a slot of a stored bucket;
    /// 0 for neither.
    pub home: u64,
}

const VACANT: Resident =
    Resident { header: SlotHeader::VACANT, payload: Payload::NONE, slot: 0, home: 0 };

/// The record of a cached bucket, besides its blocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meta {
    /// The tags of its children as stored.
    pub child_tags: [Tag; 2],
    /// Blocks in it.
    len: u8,
    /// Slots of its next stored version, set when it was last rewritten.
    pub slots: u8,
    /// Whether the content is in memory (or was never stored).
    pub loaded: bool,
    /// Whether it differs from the stored bucket by more than removed blocks.
    pub dirty: bool,
}

/// The cached buckets, adjacent, so that a path costs few cache misses.
pub struct BucketCache {
    slots: usize,
    limit: u64,
    meta: Vec<Meta>,
    blocks: Vec<Resident>,
    /// Blocks in all buckets.
    held: usize,
}

impl BucketCache {
    /// A cache of the first `limit` buckets in heap order, none loaded.
    pub fn new(slots: usize, limit: u64) -> Self {
        Self { slots, limit, meta: Vec::new(), blocks: Vec::new(), held: 0 }
    }

    /// Changes the limit. Returns the blocks of the dropped buckets, which must be clean.
    pub fn set_limit(&mut self, limit: u64) -> Vec<Resident> {
        let mut dropped = Vec::new();
        for bucket in limit + 1..self.meta.len() as u64 {
            dropped.extend_from_slice(self.blocks(BucketId(bucket)));
        }
        self.meta.truncate(limit as usize + 1);
        self.blocks.truncate((limit as usize + 1) * self.slots);
        self.limit = limit;
        self.held -= dropped.len();
        dropped
    }

    /// Forgets the buckets from `first` on, which must be empty and clean.
    pub fn forget_from(&mut self, first: BucketId) {
        self.meta.truncate(first.0 as usize);
        self.blocks.truncate(first.0 as usize * self.slots);
    }

    /// Memory of a cached bucket with `blocks` blocks, in bytes.
    pub fn bytes_per_bucket(geometry: &Geometry, blocks: usize) -> usize {
        let known = geometry.blocks_per_bucket * size_of::<Resident>() + size_of::<Meta>();
        blocks * geometry.block_bytes + known
    }

    /// Memory of the buckets' records in bytes, without their blocks' content.
    pub fn known_bytes(&self) -> usize {
        self.meta.len() * size_of::<Meta>() + self.blocks.len() * size_of::<Resident>()
    }

    /// Blocks in all cached buckets.
    pub fn held(&self) -> usize {
        self.held
    }

    /// The number of cached buckets.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether the bucket belongs in the cache.
    pub fn holds(&self, bucket: BucketId) -> bool {
        bucket.0 <= self.limit
    }

    /// Whether the bucket's content is in memory.
    pub fn is_loaded(&self, bucket: BucketId) -> bool {
        self.meta.get(bucket.0 as usize).is_some_and(|meta| meta.loaded)
    }

    /// Whether the bucket differs from its stored version by more than removed blocks.
    pub fn is_dirty(&self, bucket: BucketId) -> bool {
        self.meta.get(bucket.0 as usize).is_some_and(|meta| meta.dirty)
    }

    /// Slots of the next stored version of a bucket touched before.
    pub fn slots(&self, bucket: BucketId) -> u8 {
        self.meta[bucket.0 as usize].slots
    }

    /// The record of a bucket that [`Self::holds`].
    pub fn meta_mut(&mut self, bucket: BucketId) -> &mut Meta {
        let at = bucket.0 as usize;
        if at >= self.meta.len() {
            self.meta.resize(at + 1, Meta::default());
            self.blocks.resize((at + 1) * self.slots, VACANT);
        }
        &mut self.meta[at]
    }

    /// The blocks of a bucket touched before.
    pub fn blocks(&self, bucket: BucketId) -> &[Resident] {
        let at = bucket.0 as usize;
        &self.blocks[at * self.slots..][..self.meta[at].len as usize]
    }

    /// The blocks of a bucket, none of one that was never touched.
    pub fn blocks_if_touched(&self, bucket: BucketId) -> &[Resident] {
        if (bucket.0 as usize) < self.meta.len() { self.blocks(bucket) } else { &[] }
    }

    /// The tags of a bucket's children, as stored.
    pub fn tags_if_touched(&self, bucket: BucketId) -> [Tag; 2] {
        self.meta.get(bucket.0 as usize).map_or([Tag::default(); 2], |meta| meta.child_tags)
    }

    /// The tags of the buckets right below the cached ones, which are a whole top of the tree.
    pub fn tags_below(&self) -> impl Iterator<Item = (BucketId, Tag)> {
        let parents = (self.limit / 2 + 1..=self.limit).map(BucketId);
        parents.flat_map(|parent| {
            let tags = self.tags_if_touched(parent);
            [0, 1].map(|side| (parent.child(side), tags[side]))
        })
    }

    /// The blocks, to set their slots.
    pub fn blocks_mut(&mut self, bucket: BucketId) -> &mut [Resident] {
        let at = bucket.0 as usize;
        &mut self.blocks[at * self.slots..][..self.meta[at].len as usize]
    }

    /// Adds a block to a bucket touched before, which must have a vacant slot.
    pub fn push(&mut self, bucket: BucketId, block: Resident) {
        let at = bucket.0 as usize;
        let len = &mut self.meta[at].len;
        self.blocks[at * self.slots + *len as usize] = block;
        *len += 1;
        self.held += 1;
    }

    /// Removes one block.
    pub fn remove(&mut self, bucket: BucketId, index: usize) -> Resident {
        let last = self.blocks(bucket).len() - 1;
        let blocks = self.blocks_mut(bucket);
        blocks.swap(index, last);
        let block = blocks[last];
        self.meta[bucket.0 as usize].len -= 1;
        self.held -= 1;
        block
    }

    /// The dirty buckets, descending, so children before parents.
    pub fn dirty(&self) -> Vec<BucketId> {
        let dirty = |(at, meta): (usize, &Meta)| meta.dirty.then_some(BucketId(at as u64));
        self.meta.iter().enumerate().rev().filter_map(dirty).collect()
    }
}
