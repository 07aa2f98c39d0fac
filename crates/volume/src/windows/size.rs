//! The tree follows the live blocks. It grows at once, and shrinks window by window.

use super::header::LEAST_BLOCKS;
use super::volume::WindowVolume;
use crate::Result;
use oblivio_engine::{Action, BlockId, BlockOp};
use std::ops::Range;

impl WindowVolume {
    /// Grows the tree if these operations add more blocks than its class holds.
    pub(super) fn grow_for(&mut self, ops: &[BlockOp]) -> Result<()> {
        let writes = |op: &&BlockOp| !matches!(op.action, Action::Read | Action::Remove);
        let engine = &self.ledger.engine;
        let fresh = ops.iter().filter(writes).filter(|op| !engine.is_live(op.id)).count();
        let live = engine.live_blocks() + fresh as u64;
        if live <= engine.size_class() {
            return Ok(());
        }
        let class = engine.config().size_class_after(live, engine.size_class());
        self.set_class(class)
    }

    /// The class that suits the live blocks.
    fn class_due(&self) -> u64 {
        let engine = &self.ledger.engine;
        let class = engine.config().size_class_after(engine.live_blocks(), engine.size_class());
        class.max(LEAST_BLOCKS)
    }

    /// Begins to shrink a tree that is much too large.
    pub(super) fn shrink_if_due(&mut self) -> Result<()> {
        let due = self.class_due();
        if due < self.ledger.engine.size_class() { self.set_class(due) } else { Ok(()) }
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

    /// Makes the blocks absent from now on.
    pub(super) fn drop_blocks(&mut self, ids: Range<u64>) -> Result<()> {
        for id in ids.clone() {
            self.waiting.deferred.forget(id);
        }
        let ids: Vec<_> = ids.map(BlockId).collect();
        Ok(self.ledger.engine.discard(&ids)?)
    }

    /// As [`Self::drop_blocks`], but the next commit reveals only how many adjacent blocks there
    /// are.
    pub(super) fn drop_run(&mut self, ids: Range<u64>) -> Result<()> {
        for id in ids.clone() {
            self.waiting.deferred.forget(id);
        }
        Ok(self.ledger.engine.discard_run(ids)?)
    }
}
