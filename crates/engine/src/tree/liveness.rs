//! The existing data blocks: a bit per id.
//!
//! A block whose bit is clear reads as absent, whatever the tree still holds. The tree drops its
//! copy where that costs nothing. The copy lies on the path of the block's label like any other.
//! Every access moves the label, reads the old path and removes the copy, so a discarded block
//! never comes back. The trace does not depend on these bits.

use super::frontend::TreeOram;
use crate::{BlockId, EngineError, Result};
use std::ops::Range;

impl TreeOram {
    /// Discards these blocks: they are absent from now on. It reads and writes nothing. Like any
    /// change, it is lost in a crash before the next commit.
    ///
    /// # Errors
    /// `Invalid` for an id that is not addressable and while a batch is under way; then nothing is
    /// discarded.
    pub fn discard(&mut self, ids: &[BlockId]) -> Result<()> {
        self.expect_idle()?;
        if let Some(id) = ids.iter().find(|id| id.0 >= self.size.blocks) {
            let why = format!("block {} of {}", id.0, self.size.blocks);
            return Err(EngineError::Invalid(why));
        }
        for id in ids {
            self.set_live(*id, false);
        }
        self.expect_discarded(ids.len() as u64);
        Ok(())
    }

    /// As [`Self::discard`], for adjacent blocks. The next delta shows their number only in steps
    /// of 64.
    ///
    /// # Errors
    /// As for [`Self::discard`].
    pub fn discard_run(&mut self, ids: Range<u64>) -> Result<()> {
        self.expect_idle()?;
        if ids.end > self.size.blocks {
            let why = format!("blocks up to {} of {}", ids.end, self.size.blocks);
            return Err(EngineError::Invalid(why));
        }
        let count = ids.end.saturating_sub(ids.start);
        ids.for_each(|id| self.set_live(BlockId(id), false));
        // One more if they begin inside a word.
        self.expect_discarded(count / 64 + 2);
        Ok(())
    }

    /// Reserves room in the next delta for this many discarded blocks, whether they existed or not.
    /// Otherwise its size would show how many words of bits they share, and so whether they are
    /// adjacent.
    pub fn expect_discarded(&mut self, blocks: u64) {
        let changes = &mut self.tree.changes;
        changes.discarded = changes.discarded.saturating_add(blocks);
    }

    /// The number of existing data blocks: written, and neither removed nor discarded since. It is
    /// exact, except for the rest of a first-version state, where it is an upper bound.
    pub fn live_blocks(&self) -> u64 {
        self.size.live
    }

    /// Whether a data block exists.
    pub fn is_live(&self, id: BlockId) -> bool {
        self.tree.marks.live.get(id)
    }

    /// Marks every block from `first` on as live: a first-version state does not record liveness.
    /// An access detects a missing block; the caller may discard those that it knows of.
    pub(super) fn assume_live(&mut self, first: u64) {
        let live = &mut self.tree.marks.live;
        (first..self.size.blocks).for_each(|id| live.set(BlockId(id), true));
        self.size.live = live.count();
    }

    pub(super) fn set_live(&mut self, id: BlockId, live: bool) {
        let tree = &mut self.tree;
        if tree.marks.live.get(id) == live {
            return;
        }
        tree.marks.live.set(id, live);
        // Runs of blocks are discarded, and 64 of them share a word.
        if tree.changes.live.last() != Some(&(id.0 / 64)) {
            tree.changes.live.push(id.0 / 64);
        }
        self.size.live = if live { self.size.live + 1 } else { self.size.live - 1 };
    }
}
