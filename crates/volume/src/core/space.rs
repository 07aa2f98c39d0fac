//! The volume as a block space.

use super::ledger::{Core, LEAST_BLOCKS, Ledger, Policy};
use super::shown::runs;
use crate::Result;
use crate::block::{BlockReader, BlockSpace, Least, ROOT_BYTES, refuse_misfits};
use crate::damage::LostBytes;
use oblivio_engine::{BlockId, BlockOp, BlockOutcome};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

impl<L: Ledger> BlockSpace for Core<L>
where
    Self: Policy,
{
    fn block_bytes(&self) -> usize {
        self.ledger.engine().block_bytes()
    }

    fn capacity_blocks(&self) -> u64 {
        self.ledger.limit()
    }

    fn addressable_blocks(&self) -> u64 {
        self.addressable()
    }

    fn can_resize(&self) -> bool {
        true
    }

    fn set_capacity(&mut self, blocks: u64) -> Result<()> {
        self.guarded(|volume| {
            let blocks = blocks.max(LEAST_BLOCKS);
            volume.ledger.engine_mut().allow(blocks)?;
            volume.ledger.set_limit(blocks)
        })
    }

    fn reserve(&mut self, blocks: u64) -> Result<()> {
        // Also after the limit was lowered.
        if blocks <= self.ledger.engine().capacity() {
            return Ok(());
        }
        if blocks > self.addressable() {
            return Err(self.used_up());
        }
        self.guarded(|volume| volume.grow_to(blocks))
    }

    fn room(&self) -> Result<Option<u64>> {
        self.room_left()
    }

    fn access_each(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        refuse_misfits(&ops, self.ledger.engine().capacity(), self.block_bytes())?;
        self.guarded(|volume| volume.serve(ops))
    }

    fn met_damage(&mut self) -> bool {
        self.ledger.engine_mut().take_damage()
    }

    fn defer(&mut self, ops: Vec<BlockOp>) -> Result<()> {
        refuse_misfits(&ops, self.ledger.engine().capacity(), self.block_bytes())?;
        let lost = self.written_in_part(&ops);
        self.guarded(|volume| volume.accept(ops))?;
        lost.map_or(Ok(()), |id| Err(LostBytes::block(id).into()))
    }

    fn root(&self) -> &[u8] {
        self.ledger.root()
    }

    fn set_root(&mut self, root: &[u8]) {
        assert!(root.len() <= ROOT_BYTES, "the caller keeps to ROOT_BYTES");
        self.ledger.set_root(root.to_vec());
    }

    fn commit(&mut self) -> Result<()> {
        self.guarded(Self::sync)
    }

    fn finish(&mut self) -> Result<()> {
        self.guarded(Self::close)?;
        self.note_ended(true);
        Ok(())
    }

    fn give_up(&mut self) {
        self.ledger.give_up();
    }

    fn discard(&mut self, ids: &[u64]) -> Result<()> {
        let there = |&id: &u64| self.is_stored(id) || self.waiting.deferred.waits(id);
        let mut there: Vec<u64> = ids.iter().copied().filter(there).collect();
        there.sort_unstable();
        there.dedup();
        let asked = ids.len() as u64;
        let absent = asked - there.len() as u64;
        let runs = runs(there.into_iter());
        self.guarded(|volume| {
            for &(first, count) in &runs {
                volume.drop_blocks(first..first + count)?;
            }
            volume.ledger.engine_mut().expect_discarded(absent);
            volume.note_discards(&runs, asked);
            Ok(())
        })
    }

    /// A disk gives ranges back: each counts once, however many of its blocks exist.
    fn erase(&mut self, ids: &[u64]) -> Result<()> {
        let known = ids.iter().copied().filter(|&id| id < self.ledger.engine().capacity());
        let runs = runs(known);
        self.guarded(|volume| {
            for &(first, count) in &runs {
                volume.drop_run(first..first + count)?;
            }
            volume.note_discards(&runs, runs.len() as u64);
            Ok(())
        })
    }

    fn exists(&self, id: u64) -> bool {
        self.waiting.deferred.exists(id).unwrap_or_else(|| self.is_stored(id))
    }

    fn present(&self, ids: Range<u64>) -> Result<Vec<bool>> {
        Ok(ids.map(|id| self.exists(id)).collect())
    }

    /// A removed block is only forgotten.
    fn erases_cheaply(&self) -> bool {
        true
    }

    fn end_operation(&mut self) -> Result<()> {
        self.guarded(Self::pad_operation)
    }

    fn pads(&self) -> bool {
        self.waiting.deferred.has_turn_for_each()
    }

    fn bring_up(&mut self, least: Least) -> Result<()> {
        self.guarded(|volume| volume.pad_to(least))
    }

    fn wants_commit(&self) -> bool {
        self.commit_is_near()
    }

    fn idle(&mut self) -> Result<Option<Duration>> {
        self.guarded(Self::rest)
    }

    fn cache_budget(&self) -> usize {
        self.memory_bytes / 8
    }

    /// A read is an access, so it takes its turn like every other.
    fn reader(&self) -> Option<Arc<dyn BlockReader>> {
        None
    }
}

impl<L: Ledger> Core<L> {
    /// Whether the engine has a block, before what is deferred.
    fn is_stored(&self, id: u64) -> bool {
        let engine = self.ledger.engine();
        id < engine.capacity() && engine.is_live(BlockId(id))
    }
}
