//! The slot counts of buckets: stored ones, and those rewritten now.

use super::Backend;
use crate::BucketId;
use crate::tree::geometry::Shape;

impl Backend {
    /// The shape of the tree. While it shrinks, the shape before.
    pub fn shape(&self) -> Shape {
        Shape { depth: self.leaves.depth, leaf_slots: self.leaves.leaf_slots }
    }

    /// Forgets the records of stored buckets from `first` on.
    pub fn forget_from(&mut self, first: BucketId) {
        self.marks.present.truncate(first);
        self.marks.missing.truncate(first);
        self.marks.removed.truncate(self.geometry.slot_id(first, 0));
    }

    /// Slots of the stored version of a bucket.
    pub(in crate::tree) fn stored_slots(&self, bucket: BucketId) -> usize {
        self.geometry.blocks_per_bucket - self.marks.missing.get(bucket)
    }

    /// Bytes of the stored version of a bucket.
    pub fn stored_bytes(&self, bucket: BucketId) -> usize {
        self.geometry.bucket_bytes_with(self.stored_slots(bucket))
    }

    /// Slots of a bucket that is rewritten now.
    pub(super) fn room(&self, bucket: BucketId) -> usize {
        if bucket.level() == self.leaves.depth {
            self.leaves.leaf_room
        } else {
            self.geometry.blocks_per_bucket
        }
    }
}
