//! The block view: what the file layer asks of a volume, whatever engine serves it.

use crate::{Error, Result};
use oblivio_engine::{Action, BlockAnswer, BlockId, BlockOp};
use std::ops::Range;
use std::sync::Arc;

/// Numbered blocks behind an engine, with one atomic commit over all of them.
///
/// Block ids are dense from 0. The tree follows the highest id that was ever reserved, so callers
/// reuse low ids first.
pub trait BlockSpace: Send {
    /// Bytes in a block.
    fn block_bytes(&self) -> usize;

    /// How many blocks the volume may ever hold (its declared capacity).
    fn capacity_blocks(&self) -> u64;

    /// Ids below this one may be in use: more than [`Self::capacity_blocks`] where that was
    /// lowered.
    fn addressable_blocks(&self) -> u64 {
        self.capacity_blocks()
    }

    /// Whether [`Self::set_capacity`] may work.
    fn can_resize(&self) -> bool {
        false
    }

    /// Declares another capacity; whoever lowers it has made sure that no more is in use. Nothing
    /// is moved, and a crash leaves the old one or the new one.
    ///
    /// # Errors
    /// `Invalid` for one that the volume cannot have, and those of the store.
    fn set_capacity(&mut self, blocks: u64) -> Result<()> {
        let _ = blocks;
        Err(Error::Invalid("the volume's size was fixed when it was made".into()))
    }

    /// Makes all ids below `blocks` addressable, growing the tree when its size class is used up.
    ///
    /// # Errors
    /// `Full` beyond the declared capacity.
    fn reserve(&mut self, blocks: u64) -> Result<()>;

    /// Serves a list of operations in order; operations that are handed in together are served by
    /// as few oblivious batches as the memory budget allows.
    fn access(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockAnswer>>;

    /// As [`Self::access`] of operations whose answers nobody wants: they take effect at once, but
    /// may be carried out later, together with others.
    ///
    /// # Errors
    /// Those of [`Self::access`].
    fn defer(&mut self, ops: Vec<BlockOp>) -> Result<()> {
        self.access(ops).map(drop)
    }

    /// The bytes that the last commit (or [`Self::set_root`]) stored beside the blocks, at most
    /// [`ROOT_BYTES`] long.
    fn root(&self) -> &[u8];

    /// Replaces the root; it becomes durable with the next commit.
    fn set_root(&mut self, root: &[u8]);

    /// How many blocks more may exist before the store is full, as far as that can be known; with
    /// these there is still room for all that commits take meanwhile.
    ///
    /// # Errors
    /// Those of the store.
    fn room(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Makes everything accepted so far durable, atomically.
    fn commit(&mut self) -> Result<()>;

    /// Commits, and leaves nothing to be done again when the volume is opened next.
    ///
    /// # Errors
    /// Those of [`Self::commit`].
    fn finish(&mut self) -> Result<()> {
        self.commit()
    }

    /// The contents of these blocks are no longer wanted: they may read as absent from now on. A
    /// later write makes a block exist again. By default nothing happens.
    ///
    /// # Errors
    /// Those of an access.
    fn discard(&mut self, ids: &[u64]) -> Result<()> {
        let _ = ids;
        Ok(())
    }

    /// Makes these blocks absent: they read so from now on. By default each costs an operation.
    ///
    /// # Errors
    /// Those of an access.
    fn erase(&mut self, ids: &[u64]) -> Result<()> {
        let op = |&id: &u64| BlockOp { id: BlockId(id), action: Action::Remove };
        self.defer(ids.iter().map(op).collect())
    }

    /// Whether a block may exist, with all that was accepted so far. An absent one reads as zeros;
    /// asking costs no access. By default every block may.
    fn exists(&self, id: u64) -> bool {
        let _ = id;
        true
    }

    /// Which of these blocks exist, as exactly as it can be said without its being seen that
    /// somebody asked. By default what [`Self::exists`] knows; where reads do not show it may read.
    ///
    /// # Errors
    /// Those of a read.
    fn present(&self, ids: Range<u64>) -> Result<Vec<bool>> {
        Ok(ids.map(|id| self.exists(id)).collect())
    }

    /// Whether [`Self::erase`] costs less than writing. By default it does not.
    fn erases_cheaply(&self) -> bool {
        false
    }

    /// Says that one of the caller's operations is over: its accesses may be padded now.
    ///
    /// # Errors
    /// Those of [`Self::access`].
    fn end_operation(&mut self) -> Result<()> {
        Ok(())
    }

    /// Whether what an operation shows is to follow from its kind and its size alone, and the
    /// caller says how much that is with [`Self::bring_up`]. A deferred read then takes a turn like
    /// a write, and has no effect.
    fn pads(&self) -> bool {
        false
    }

    /// Brings what was done since the last call to these public numbers, where the space
    /// [`pads`](Self::pads). Else nothing happens.
    ///
    /// # Errors
    /// Those of [`Self::access`].
    fn bring_up(&mut self, least: Least) -> Result<()> {
        let _ = least;
        Ok(())
    }

    /// Whether whoever has just answered everybody should commit now, so that no operation finds itself in
    /// the midst of a commit.
    fn wants_commit(&self) -> bool {
        false
    }

    /// Does what waits for quiet times, a little of it; gives the time after which it wants to be
    /// called again although nothing else happened.
    ///
    /// # Errors
    /// Those of [`Self::access`].
    fn idle(&mut self) -> Result<Option<std::time::Duration>> {
        Ok(None)
    }

    /// The bytes of memory that the caller may use for caches of its own.
    fn cache_budget(&self) -> usize;

    /// What other threads may read blocks with, beside all that goes on here. By default nobody may:
    /// where a read is an access, it has its turn like every other.
    fn reader(&self) -> Option<Arc<dyn BlockReader>> {
        None
    }
}

/// How much an operation shows at least; if it is more, a power of two times as much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Least {
    /// Blocks that are written, sooner or later.
    pub writes: u64,
    /// Batches of [`Least::BATCH`] reads.
    pub reads: u64,
    /// Blocks that are given back.
    pub discards: u64,
}

impl Least {
    /// Operations in a batch, where the space pads.
    pub const BATCH: usize = crate::tree::padding::PAD_BATCH;
}

/// Reads blocks of a space from any thread.
///
/// A read finds all that was accepted before it began, and of what is written meanwhile all or
/// nothing of each block. What ends the space's handle ends its readers, and the other way round.
pub trait BlockReader: Send + Sync {
    /// Reads blocks. `take` gets each, in order, with its number in the list; absent ones are `None`.
    ///
    /// # Errors
    /// `Invalid` when there is no such block; those of [`BlockSpace::access`].
    fn read(&self, blocks: &[BlockId], take: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<()>;

    /// Whether the space is for little memory: each thread that reads takes some MiB.
    fn saves_memory(&self) -> bool {
        false
    }
}

/// Refuses operations for blocks that a space has not, before anything of them is remembered.
pub(crate) fn refuse_misfits(ops: &[BlockOp], blocks: u64, block_bytes: usize) -> Result<()> {
    match ops.iter().find(|op| op.id.0 >= blocks || op.action.end() > block_bytes) {
        Some(op) => Err(Error::Invalid(format!("block {} of {blocks} of {block_bytes}", op.id.0))),
        None => Ok(()),
    }
}

/// The most bytes that [`BlockSpace::root`] holds.
pub const ROOT_BYTES: usize = 1024;
