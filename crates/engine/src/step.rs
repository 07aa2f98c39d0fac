//! The sans-I/O protocol: an engine's reads and writes, as plain data.
//!
//! The [`Step`]s of a run are exactly the store's view. So tests check obliviousness on that list,
//! a crash is the list cut short, and one engine serves any kind of store.

use crate::{BlockAnswer, BlockOp, BucketId, Leaf, TreeId};
use std::sync::Arc;

/// A sealed bucket. A writer may hold on to it; a copy would cost as much as sealing did.
pub type SealedBucket = Arc<Vec<u8>>;

/// A request to carry out before the next call of the engine.
#[derive(Debug)]
pub enum Step<'a> {
    /// Fill `into` with the sealed buckets; none when all are in memory.
    Read {
        /// The tree they belong to.
        tree: TreeId,
        /// The leaves whose paths this read shows; a crash after it repeats them.
        shown: &'a [Leaf],
        /// How many of them follow the public schedule; these come last.
        scheduled: usize,
        /// The buckets, ascending.
        buckets: &'a [BucketId],
        /// The length of each bucket: its length when it was written.
        lens: &'a [u32],
        /// `buckets.len()` equal parts. Each begins with its bucket.
        into: &'a mut [u8],
    },
    /// Store the sealed buckets.
    Write {
        /// The tree they belong to.
        tree: TreeId,
        /// The buckets, descending (children before parents).
        buckets: &'a [BucketId],
        /// The new content of each.
        from: &'a [SealedBucket],
    },
    /// Nothing is left to do.
    Done,
}

/// An engine: batches go in, steps come out, and the caller takes the answers at the end.
pub trait Engine: Send {
    /// Bytes in a block.
    fn block_bytes(&self) -> usize;
    /// Blocks addressable now.
    fn capacity(&self) -> u64;
    /// Accepts a batch. The engine serves it in order and shows it to the store as one.
    ///
    /// # Errors
    /// `Invalid` when a batch is under way, an id is out of range or data is too long.
    fn submit(&mut self, ops: Vec<BlockOp>) -> crate::Result<()>;
    /// Begins to write back everything that is only in memory.
    ///
    /// # Errors
    /// `Invalid` when a batch is under way.
    fn begin_flush(&mut self) -> crate::Result<()>;
    /// The next step. Another call confirms that the previous step was carried out.
    ///
    /// # Errors
    /// `Tampered` when a read differs from the last write. The engine is then closed.
    fn step(&mut self) -> crate::Result<Step<'_>>;
    /// The answers of the finished batch.
    fn take_answers(&mut self) -> Vec<BlockAnswer>;
}
