//! The tree follows the live blocks: it grows when its size class is used up, and shrinks when most
//! of them are gone.

use super::ledger::{Core, LEAST_BLOCKS, Ledger, Policy};
use crate::Result;
use oblivio_engine::{Action, BlockId, BlockOp};
use std::ops::Range;

impl<L: Ledger> Core<L>
where
    Self: Policy,
{
    /// Grows the tree if these operations add more blocks than its class holds.
    pub(crate) fn grow_for(&mut self, ops: &[BlockOp]) -> Result<()> {
        let writes = |op: &&BlockOp| !matches!(op.action, Action::Read | Action::Remove);
        let engine = self.ledger.engine();
        let fresh = ops.iter().filter(writes).filter(|op| !engine.is_live(op.id)).count();
        let live = engine.live_blocks() + fresh as u64;
        if live <= engine.size_class() {
            return Ok(());
        }
        self.set_class(engine.config().size_class_after(live, engine.size_class()))
    }

    /// The class that suits the live blocks.
    fn class_due(&self) -> u64 {
        let engine = self.ledger.engine();
        let class = engine.config().size_class_after(engine.live_blocks(), engine.size_class());
        class.max(LEAST_BLOCKS)
    }

    /// Whether the tree is much too large.
    pub(crate) fn shrink_is_due(&self) -> bool {
        self.class_due() < self.ledger.engine().size_class()
    }

    /// Begins to shrink a tree that is much too large.
    pub(crate) fn shrink_if_due(&mut self) -> Result<()> {
        if self.shrink_is_due() { self.set_class(self.class_due()) } else { Ok(()) }
    }

    fn set_class(&mut self, class: u64) -> Result<()> {
        let engine = self.ledger.engine();
        let class = class.min(engine.config().capacity);
        if class == engine.size_class() {
            return Ok(());
        }
        self.ledger.record_resize(self.ledger.engine().capacity(), class)?;
        self.ledger.engine_mut().set_size_class(class)?;
        self.report_rule();
        Ok(())
    }

    /// Makes this number of blocks addressable. They come in powers of two, so that the size of the
    /// position map reveals no more.
    pub(crate) fn grow_to(&mut self, blocks: u64) -> Result<()> {
        let blocks = blocks.next_power_of_two().min(self.addressable());
        self.ledger.record_resize(blocks, self.ledger.engine().size_class())?;
        self.ledger.engine_mut().grow(blocks)?;
        self.report_rule();
        self.grown()
    }

    /// Makes the blocks absent from now on.
    pub(crate) fn drop_blocks(&mut self, ids: Range<u64>) -> Result<()> {
        ids.clone().for_each(|id| self.waiting.deferred.forget(id));
        self.lost.forget(&ids);
        let ids: Vec<_> = ids.map(BlockId).collect();
        Ok(self.ledger.engine_mut().discard(&ids)?)
    }

    /// As [`Self::drop_blocks`], but the next commit reveals only how many adjacent blocks there
    /// are.
    pub(crate) fn drop_run(&mut self, ids: Range<u64>) -> Result<()> {
        ids.clone().for_each(|id| self.waiting.deferred.forget(id));
        self.lost.forget(&ids);
        Ok(self.ledger.engine_mut().discard_run(ids)?)
    }
}
