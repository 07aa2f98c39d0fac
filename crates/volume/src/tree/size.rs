//! The tree follows the live blocks: it grows when its size class is used up and shrinks, path by
//! path, when most of them are gone.

use crate::Result;
use crate::options::ShownKind;
use crate::tree::tuning::{FEW_HOLES, LEAST_BLOCKS, MOST_HOLES, SWEEP_IDLE, SWEEP_LAST};
use crate::tree::volume::TreeVolume;
use oblivio_engine::{Action, BlockId, BlockOp};
use std::ops::Range;

impl TreeVolume {
    /// Grows the tree if these operations add more blocks than its class holds.
    pub(crate) fn grow_for(&mut self, ops: &[BlockOp]) -> Result<()> {
        let writes = |op: &&BlockOp| !matches!(op.action, Action::Read | Action::Remove);
        let fresh =
            ops.iter().filter(writes).filter(|op| !self.ledger.engine.is_live(op.id)).count();
        self.grow_by(fresh as u64)
    }

    /// Grows the tree if its class does not hold `fresh` more blocks.
    pub(crate) fn grow_by(&mut self, fresh: u64) -> Result<()> {
        let live = self.ledger.engine.live_blocks() + fresh;
        if live <= self.ledger.engine.size_class() {
            return Ok(());
        }
        let class =
            self.ledger.engine.config().size_class_after(live, self.ledger.engine.size_class());
        self.set_class(class)
    }

    /// Declares another limit. Stored data stays where it is.
    pub(crate) fn set_limit(&mut self, blocks: u64) -> Result<()> {
        let blocks = blocks.max(LEAST_BLOCKS);
        self.ledger.engine.allow(blocks)?;
        self.ledger.limit.set(&*self.ledger.store, blocks, self.ledger.engine.capacity())
    }

    /// The class that suits the live blocks.
    fn class_due(&self) -> u64 {
        let (live, class) = (self.ledger.engine.live_blocks(), self.ledger.engine.size_class());
        self.ledger.engine.config().size_class_after(live, class).max(LEAST_BLOCKS)
    }

    /// Whether the tree is much too large.
    pub(crate) fn shrink_is_due(&self) -> bool {
        self.class_due() < self.ledger.engine.size_class()
    }

    /// Begins to shrink a tree that is much too large.
    pub(crate) fn shrink_if_due(&mut self) -> Result<()> {
        if self.shrink_is_due() { self.set_class(self.class_due()) } else { Ok(()) }
    }

    fn set_class(&mut self, class: u64) -> Result<()> {
        let class = class.min(self.ledger.engine.config().capacity);
        if class == self.ledger.engine.size_class() {
            return Ok(());
        }
        self.ledger.record_resize(self.ledger.engine.capacity(), class)?;
        self.ledger.engine.set_size_class(class)?;
        self.report_rule();
        Ok(())
    }

    /// Removes the tree's old leaves, or slots of theirs, along `paths` paths at most.
    pub(crate) fn sweep(&mut self, paths: u64) -> Result<()> {
        let paths = paths.min(self.ledger.engine.shrink_left());
        if paths == 0 {
            return Ok(());
        }
        let mut round = self.ledger.engine.begin_maintenance(paths)?;
        self.ledger.record_intent(round.intent())?;
        self.run(&mut round, ShownKind::Maintenance)
    }

    /// Gives some unneeded space back; says whether there is more.
    pub(crate) fn reclaim(&mut self) -> Result<bool> {
        let most = if self.options.short_pauses { FEW_HOLES } else { MOST_HOLES };
        self.ledger.slab.reclaim(&*self.ledger.store, most)
    }

    /// As [`Self::reclaim`], but if the store has much room, only cuts free space off the end. Most
    /// space that is free during work is soon used again, or cut off with all behind it.
    pub(crate) fn reclaim_end(&mut self) -> Result<bool> {
        if self.since.roomy {
            self.ledger.slab.reclaim(&*self.ledger.store, 0)
        } else {
            self.reclaim()
        }
    }

    /// Gives space back after a commit: a little, because a caller may wait. Buckets of another
    /// length cannot use it, so when the store's space is short, it keeps at most the writes
    /// between two commits.
    pub(crate) fn give_back(&mut self) -> Result<()> {
        let most = self.ledger.slab.most_bytes(self.since.interval);
        while self.reclaim_end()? && self.ledger.slab.idle_bytes() > most {
            let free = self.ledger.store.free_bytes().ok().flatten();
            if !self.ledger.slab.has_short() || free.is_none_or(|free| free > 8 * most) {
                break;
            }
        }
        // If space is short, it must be available to the next write.
        if self.since.roomy { Ok(()) } else { self.ledger.slab.settle(&*self.ledger.store) }
    }

    /// Gives unneeded space back at the end of a session, in as few trips as possible: nobody
    /// waits.
    pub(crate) fn reclaim_at_end(&mut self) -> Result<()> {
        let mut any = false;
        while self.ledger.slab.reclaim(&*self.ledger.store, MOST_HOLES)? {
            any = true;
        }
        if any { self.ledger.slab.settle(&*self.ledger.store) } else { Ok(()) }
    }

    /// Sweeps at the end of a session, by an amount that depends on the size class alone.
    pub(crate) fn sweep_at_end(&mut self) -> Result<()> {
        let mut left = SWEEP_LAST;
        while left > 0 && self.ledger.engine.shrink_left() > 0 {
            self.sweep(SWEEP_IDLE)?;
            self.commit_if_due()?;
            left -= SWEEP_IDLE;
        }
        Ok(())
    }

    /// Makes the blocks absent from now on.
    pub(crate) fn drop_blocks(&mut self, ids: Range<u64>) -> Result<()> {
        for id in ids.clone() {
            self.waiting.deferred.forget(id);
        }
        let ids: Vec<_> = ids.map(BlockId).collect();
        Ok(self.ledger.engine.discard(&ids)?)
    }

    /// As [`Self::drop_blocks`], but the next commit reveals only how many adjacent blocks there
    /// are.
    pub(crate) fn drop_run(&mut self, ids: Range<u64>) -> Result<()> {
        for id in ids.clone() {
            self.waiting.deferred.forget(id);
        }
        Ok(self.ledger.engine.discard_run(ids)?)
    }
}
