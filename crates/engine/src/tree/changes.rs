//! The changes since the last commit.

use super::bitset::SlotId;
use crate::BucketId;

/// The content of the next delta, collected from the batches in the order of events, with repeats.
#[derive(Default)]
pub struct DeltaChanges {
    /// Advanced on-chip entries.
    pub entries: Vec<u64>,
    /// Requests since the last commit. Times the levels, they bound the changed entries.
    pub requests: u64,
    /// Slots whose block was removed without rewriting the bucket.
    pub removed: Vec<SlotId>,
    /// Paths since the last commit. Each removes at most one block.
    pub paths: u64,
    /// Changed words of the liveness bits.
    pub live: Vec<u64>,
    /// Requested discards, in blocks. With the requests, they bound the changed words.
    pub discarded: u64,
    /// Written or dropped buckets.
    pub written: Vec<BucketId>,
}
