//! The block view: what the file layer asks of a volume, on any engine.

mod lacks;

use crate::damage::LostBytes;
use crate::{Error, Result};
use oblivio_engine::{Action, BlockAnswer, BlockId, BlockOp, BlockOutcome, Lost};
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Numbered blocks on an engine, with one atomic commit over all of them.
///
/// Block ids are dense from 0. The tree grows with the highest reserved id, so callers reuse low
/// ids first.
///
/// Each space answers everything: what it has not, it says with [`lacks!`](crate::lacks). So one
/// that wraps another cannot forget a part of it.
pub trait BlockSpace: Any + Send {
    /// Bytes in a block.
    fn block_bytes(&self) -> usize;

    /// The volume's declared capacity in blocks.
    fn capacity_blocks(&self) -> u64;

    /// Ids below this one may be in use. It exceeds [`Self::capacity_blocks`] after that was
    /// lowered.
    fn addressable_blocks(&self) -> u64;

    /// Whether [`Self::set_capacity`] may work.
    fn can_resize(&self) -> bool;

    /// Declares another capacity. A caller that lowers it has ensured that no more is in use. No
    /// block moves, and a crash leaves the old capacity or the new one.
    ///
    /// # Errors
    /// `Invalid` for one that the volume cannot have, and those of the store.
    fn set_capacity(&mut self, blocks: u64) -> Result<()>;

    /// Makes all ids below `blocks` addressable, growing the tree when its size class is used up.
    ///
    /// # Errors
    /// `Full` beyond the declared capacity.
    fn reserve(&mut self, blocks: u64) -> Result<()>;

    /// Serves a list of operations in order, in as few oblivious batches as the memory budget
    /// allows. What is lost to damage is an outcome of its operation, and no error: the other
    /// operations are carried out as ever.
    ///
    /// # Errors
    /// Those of the store and of the engine.
    fn access_each(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>>;

    /// As [`Self::access_each`], for a caller that needs all of them.
    ///
    /// # Errors
    /// `Lost` names the first lost block. All operations were carried out.
    fn access(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockAnswer>> {
        let ids: Vec<u64> = ops.iter().map(|op| op.id.0).collect();
        let outcomes = self.access_each(ops)?.into_iter().zip(ids);
        outcomes.map(|(outcome, id)| outcome.map_err(|_| LostBytes::block(id).into())).collect()
    }

    /// Whether any access since the last question met a damaged place, which the store saw. A space
    /// whose reads nobody sees says no: what follows from them would show them.
    fn met_damage(&mut self) -> bool {
        false
    }

    /// As [`Self::access`], without answers. The operations take effect at once, but may be carried
    /// out later, together with others.
    ///
    /// # Errors
    /// Those of [`Self::access`]. `Lost` names a block of which a part was to be written, if it is
    /// known to be lost by now. If that turns out only later, the write is lost with the block: it
    /// stays lost, and reads say so, until it is replaced or removed.
    fn defer(&mut self, ops: Vec<BlockOp>) -> Result<()>;

    /// The bytes that the last commit (or [`Self::set_root`]) stored beside the blocks: at most
    /// [`ROOT_BYTES`].
    fn root(&self) -> &[u8];

    /// Replaces the root; it becomes durable with the next commit.
    ///
    /// # Panics
    /// If it is longer than [`ROOT_BYTES`]: no state has room for it.
    fn set_root(&mut self, root: &[u8]);

    /// How many more blocks may exist before the store is full, as far as that is known. It leaves
    /// room for all commits until then.
    ///
    /// # Errors
    /// Those of the store.
    fn room(&self) -> Result<Option<u64>>;

    /// Makes everything accepted so far durable, atomically.
    fn commit(&mut self) -> Result<()>;

    /// Commits, and leaves nothing to replay at the next opening.
    ///
    /// # Errors
    /// Those of [`Self::commit`].
    fn finish(&mut self) -> Result<()>;

    /// Ends the session after a failure, without a commit, so that other computers need not wait
    /// for this one. Errors are ignored.
    fn give_up(&mut self);

    /// [`Self::finish`]; if the volume has failed, [`Self::give_up`].
    ///
    /// # Errors
    /// Those of [`Self::finish`].
    fn end(&mut self) -> Result<()> {
        let finished = self.finish();
        // A store that failed is asked for nothing more.
        if matches!(&finished, Err(error) if !matches!(error, Error::Store(_))) {
            self.give_up();
        }
        finished
    }

    /// The contents of these blocks are unwanted: from now on they may read as absent. A later
    /// write makes a block exist again.
    ///
    /// # Errors
    /// Those of an access.
    fn discard(&mut self, ids: &[u64]) -> Result<()>;

    /// Makes these blocks absent.
    ///
    /// # Errors
    /// Those of an access.
    fn erase(&mut self, ids: &[u64]) -> Result<()>;

    /// Whether a block may exist, after everything accepted so far. An absent one reads as zeros;
    /// asking costs no access.
    fn exists(&self, id: u64) -> bool;

    /// Which of these blocks exist, as exactly as the store may not see that the caller asked: what
    /// [`Self::exists`] knows; an engine whose reads do not show it may read.
    ///
    /// # Errors
    /// Those of a read.
    fn present(&self, ids: Range<u64>) -> Result<Vec<bool>>;

    /// Whether [`Self::erase`] costs less than writing.
    fn erases_cheaply(&self) -> bool;

    /// Ends one of the caller's operations: its accesses may be padded now.
    ///
    /// # Errors
    /// Those of [`Self::access`].
    fn end_operation(&mut self) -> Result<()>;

    /// Whether an operation's trace must follow from its kind and size alone. The caller then gives
    /// the least counts with [`Self::bring_up`]. A deferred read takes a turn like a write, and has
    /// no effect.
    fn pads(&self) -> bool;

    /// Pads the work since the last call to these public numbers, if the space
    /// [`pads`](Self::pads). Else nothing happens.
    ///
    /// # Errors
    /// Those of [`Self::access`].
    fn bring_up(&mut self, least: Least) -> Result<()>;

    /// Whether a caller with no unanswered request should commit now, before an operation has to.
    fn wants_commit(&self) -> bool;

    /// Whether no measured duration may decide when a caller commits: who gets the stored times of
    /// changes must not learn from them how long a commit took.
    fn commits_evenly(&self) -> bool {
        false
    }

    /// Does a little idle maintenance. Gives the time after which it wants another call even if
    /// nothing else happened.
    ///
    /// # Errors
    /// Those of [`Self::access`].
    fn idle(&mut self) -> Result<Option<Duration>>;

    /// Does a step of a scrub, if the space has one and a step is due; gives the time to the next
    /// call.
    ///
    /// # Errors
    /// Those of the store.
    fn scrub(&mut self) -> Result<Option<Duration>> {
        Ok(None)
    }

    /// Bytes of memory for the caller's own caches.
    fn cache_budget(&self) -> usize;

    /// A reader for other threads, beside all work here. Where a read is an access there is none:
    /// it takes its turn like every other.
    fn reader(&self) -> Option<Arc<dyn BlockReader>>;
}

/// The least that an operation shows; if it is more, a power of two times as much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Least {
    /// Blocks written, sooner or later.
    pub writes: u64,
    /// Batches of [`Least::BATCH`] reads.
    pub reads: u64,
    /// Blocks discarded.
    pub discards: u64,
}

impl Least {
    /// Operations in a batch, if the space pads.
    pub const BATCH: usize = 4;
}

/// Gets blocks: their number in the list of a read, and what they hold.
pub type TakeBlock<'a> = dyn FnMut(usize, std::result::Result<Option<&[u8]>, Lost>) + 'a;

/// Reads blocks of a space from any thread.
///
/// A read finds everything accepted before it began. Of a concurrent write it finds all or nothing
/// of each block. What ends the space's handle ends its readers, and the other way round.
pub trait BlockReader: Send + Sync {
    /// Reads blocks. `take` gets each, in order, with its number in the list; absent ones are
    /// `None`. A lost one fails by itself.
    ///
    /// # Errors
    /// `Invalid` when there is no such block; those of [`BlockSpace::access`].
    fn read(&self, blocks: &[BlockId], take: &mut TakeBlock<'_>) -> Result<()>;

    /// Whether the space saves memory: each reading thread takes some MiB.
    fn saves_memory(&self) -> bool {
        false
    }

    /// How many threads should read, where they wait for something far. By default it follows from
    /// the number of cores.
    fn threads(&self) -> Option<usize> {
        None
    }
}

/// Operations that remove blocks.
#[must_use]
pub fn removals(ids: &[u64]) -> Vec<BlockOp> {
    ids.iter().map(|&id| BlockOp { id: BlockId(id), action: Action::Remove }).collect()
}

/// Refuses operations on blocks that a space does not have, before it remembers any of them.
pub(crate) fn refuse_misfits(ops: &[BlockOp], blocks: u64, block_bytes: usize) -> Result<()> {
    match ops.iter().find(|op| op.id.0 >= blocks || op.action.end() > block_bytes) {
        Some(op) => Err(Error::Invalid(format!("block {} of {blocks} of {block_bytes}", op.id.0))),
        None => Ok(()),
    }
}

/// The most bytes that [`BlockSpace::root`] holds.
pub const ROOT_BYTES: usize = 1024;

/// A root as stored in an engine's state. Zeros follow it, so that its length does not show.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct StoredRoot {
    len: U64,
    bytes: [u8; ROOT_BYTES],
}

impl StoredRoot {
    pub fn new(root: &[u8]) -> Self {
        let mut bytes = [0; ROOT_BYTES];
        bytes[..root.len()].copy_from_slice(root);
        Self { len: U64::new(root.len() as u64), bytes }
    }

    /// The root; `None` if its length makes no sense.
    pub fn get(&self) -> Option<&[u8]> {
        self.bytes.get(..usize::try_from(self.len.get()).ok()?)
    }
}

/// What a change of names or attributes counts in the bytes that a caller changes between two
/// commits: about the size of its metadata.
pub const CHANGE_BYTES: u64 = 4 << 10;
