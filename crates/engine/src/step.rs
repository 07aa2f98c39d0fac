//! The sans-I/O protocol: what an engine wants read and written, as plain data.
//!
//! The list of [`Step`]s of a run is exactly what the store sees, so obliviousness is tested on
//! it, a crash is the list cut short, and one engine serves any kind of store.

use crate::{BlockAnswer, BlockOp, BucketId, Leaf};
use std::sync::Arc;

/// Which tree of an engine a step is for; engines with one tree use [`TreeId::DATA`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeId(pub u8);

impl TreeId {
    /// The only tree of most engines, and the data tree of a plain recursive ORAM.
    pub const DATA: TreeId = TreeId(0);
}

/// A sealed bucket. Who writes it may keep it for as long as that takes, where a copy would cost as much as
/// sealing did.
pub type SealedBucket = Arc<Vec<u8>>;

/// What an engine wants done before it is called again.
#[derive(Debug)]
pub enum Step<'a> {
    /// Fill `into` with the sealed buckets; none when all are in memory.
    Read {
        /// The tree they belong to.
        tree: TreeId,
        /// The leaves whose paths this read shows; a crash after it repeats them.
        shown: &'a [Leaf],
        /// How many of them, the last, follow the public schedule.
        scheduled: usize,
        /// The buckets, ascending.
        buckets: &'a [BucketId],
        /// How many bytes each of them has: as many as when it was written.
        lens: &'a [u32],
        /// `buckets.len()` equal parts, one for each, which begins with it.
        into: &'a mut [u8],
    },
    /// Store the sealed buckets.
    Write {
        /// The tree they belong to.
        tree: TreeId,
        /// The buckets, descending (children before parents).
        buckets: &'a [BucketId],
        /// What each of them becomes.
        from: &'a [SealedBucket],
    },
    /// Nothing is left to do.
    Done,
}

/// An engine: batches go in, steps come out, answers are fetched at the end.
pub trait Engine: Send {
    /// Bytes in a block.
    fn block_bytes(&self) -> usize;
    /// How many blocks are addressable now.
    fn capacity(&self) -> u64;
    /// Accepts a batch, served in order and shown to the store as one.
    ///
    /// # Errors
    /// `Invalid` when a batch is under way, an id is out of range or data is too long.
    fn submit(&mut self, ops: Vec<BlockOp>) -> crate::Result<()>;
    /// Asks for everything that is only in memory to be written back.
    ///
    /// # Errors
    /// `Invalid` when a batch is under way.
    fn begin_flush(&mut self) -> crate::Result<()>;
    /// The next step; calling it again says that the step before was carried out.
    ///
    /// # Errors
    /// `Tampered` when what was read is not what was written last. The engine is then closed.
    fn step(&mut self) -> crate::Result<Step<'_>>;
    /// The answers of the batch that is done.
    fn take_answers(&mut self) -> Vec<BlockAnswer>;
}
