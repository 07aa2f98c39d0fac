//! The volume as a block space: batches, deferred writes, durability.

use crate::block::{BlockSpace, Least, ROOT_BYTES, refuse_misfits};
use crate::options::ShownKind;
use crate::records::deferred::Writes;
use crate::tree::shown::runs;
use crate::tree::tuning::{
    MOST_BATCH, MOST_DEFERRED, MOST_OPS, MOST_WAITING, SPARE_BLOCKS, SWEEP_BATCH, SYNC_BYTES,
};
use crate::tree::volume::TreeVolume;
use crate::{Error, Result};
use oblivio_engine::tree::Shape;
use oblivio_engine::{Action, BlockAnswer, BlockId, BlockOp};
use std::time::Duration;

impl TreeVolume {
    /// Runs `work` unless an earlier failure closed this handle; a failure closes it.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if let Some(why) = &self.failed {
            return Err(Error::Closed(why.clone()));
        }
        let result = work(self);
        if let Err(error) = &result
            && !matches!(error, Error::Invalid(_))
        {
            self.failed = Some(error.to_string());
        }
        result
    }

    /// Serves operations as one batch, with its records and its sweep.
    pub(crate) fn serve_batch(&mut self, mut ops: Vec<BlockOp>) -> Result<Vec<BlockAnswer>> {
        let wanted = ops.len();
        self.grow_for(&ops)?;
        self.fill_batch(&mut ops);
        self.waiting.accesses += ops.len() as u64;
        self.keep_little_towards_commit();
        let mut batch = self.ledger.engine.begin_batch(ops)?;
        self.ledger.record_intent(batch.intent())?;
        self.sync_tick()?;
        self.run(&mut batch, ShownKind::Batch)?;
        let mut answers = batch.into_answers();
        answers.truncate(wanted);
        self.sweep(SWEEP_BATCH)?;
        Ok(answers)
    }

    /// Operations in one batch: as many as fit an eighth of the memory budget.
    pub(crate) fn batch_limit(&self) -> usize {
        self.batch_limit_for(self.ledger.engine.shape(), self.ledger.engine.cached_buckets())
    }

    /// The same for a tree of this shape with this many cached buckets.
    pub(crate) fn batch_limit_for(&self, shape: Shape, cached: u64) -> usize {
        if let Some(batch) = self.fixed_batch() {
            return batch;
        }
        // Reads of the access and its share of scheduled paths, and their writes.
        let path_bytes = self.ledger.engine.config().uncached_path_bytes(shape, cached);
        let access_bytes = 2 * path_bytes.max(self.ledger.engine.bucket_bytes());
        (MOST_BATCH.min(self.memory_bytes / 8) / access_bytes).clamp(1, MOST_OPS)
    }

    /// Notes that all writes are durable.
    pub(crate) fn forget_unsynced(&mut self) {
        match &mut self.waiting.unsynced {
            Some(writes) => writes.clear(),
            None => self.waiting.unsynced = Some(Writes::default()),
        }
        self.waiting.root_changed = false;
        self.forget_noted();
    }

    /// Carries out all deferred writes, the oldest first.
    fn drain(&mut self) -> Result<()> {
        while !self.waiting.deferred.is_empty() {
            let ops = self.waiting.deferred.drain(self.batch_limit());
            self.serve_batch(ops)?;
        }
        Ok(())
    }

    /// The most deferred bytes now.
    fn most_deferred(&self) -> usize {
        let block_bytes = self.ledger.engine.block_bytes();
        self.progress().most_deferred(self.most_deferred_ever(), block_bytes)
    }

    /// The highest bound.
    fn most_deferred_ever(&self) -> usize {
        MOST_DEFERRED.min(self.memory_bytes / 16)
    }

    fn too_much_waits(&self) -> bool {
        match self.takes_turns() {
            // Not by the writes' content, nor by where in the operation a commit comes closer.
            true => self.waiting.deferred.len() > self.most_turns(),
            false => {
                self.waiting.deferred.bytes() > self.most_deferred()
                    || self.waiting.deferred.len() > MOST_WAITING
            }
        }
    }

    /// The most deferred turns.
    fn most_turns(&self) -> usize {
        (self.most_deferred_ever() / self.ledger.engine.block_bytes()).clamp(1, MOST_WAITING)
    }

    /// Accepts operations, and carries out the surplus of deferred writes.
    pub(crate) fn take_turns(&mut self, ops: impl Iterator<Item = BlockOp>) -> Result<()> {
        for op in ops {
            // One by one: a commit in between forgets earlier notes.
            self.take_up(op);
            if self.waiting.deferred.len() > self.most_deferred_ops() {
                self.tick()?;
            }
            // No further: each caller waits for about as much as it brought. And at once, so that a
            // commit meets no more.
            while self.too_much_waits() {
                let ops = self.waiting.deferred.drain(self.batch_limit());
                self.serve_batch(ops)?;
                self.commit_within()?;
            }
        }
        Ok(())
    }

    /// The most deferred blocks between operations.
    pub(crate) fn most_waiting(&self) -> usize {
        self.most_deferred_ops().min(MOST_WAITING)
    }

    /// Blocks that deferred writes will add.
    fn coming_blocks(&self) -> u64 {
        let comes = |&id: &u64| self.waiting.deferred.exists(id) == Some(true);
        let coming = self.waiting.deferred.ids().filter(comes);
        coming.filter(|&id| !self.ledger.engine.is_live(BlockId(id))).count() as u64
    }

    /// Carries out all deferred writes; with a pace, in a number of ticks that does not depend on
    /// them.
    pub(crate) fn carry_out_all(&mut self) -> Result<()> {
        if self.pacer.is_some() {
            self.ticks_before_commit()?;
        }
        self.drain()
    }

    /// A commit that leaves nothing deferred and an empty journal.
    pub(crate) fn checkpoint(&mut self) -> Result<()> {
        self.carry_out_all()?;
        self.write_commit()
    }
}

impl BlockSpace for TreeVolume {
    fn block_bytes(&self) -> usize {
        self.ledger.engine.block_bytes()
    }

    fn capacity_blocks(&self) -> u64 {
        self.ledger.limit.blocks()
    }

    fn addressable_blocks(&self) -> u64 {
        let (there, limit) = (self.ledger.engine.capacity(), self.capacity_blocks());
        match there > limit {
            // With a restored old limit, existing blocks can still be removed, which takes some.
            true => there + there / 16 + SPARE_BLOCKS,
            false => limit,
        }
    }

    fn can_resize(&self) -> bool {
        true
    }

    fn set_capacity(&mut self, blocks: u64) -> Result<()> {
        self.guarded(|volume| volume.set_limit(blocks))
    }

    fn reserve(&mut self, blocks: u64) -> Result<()> {
        // Also after the limit was lowered.
        if blocks <= self.ledger.engine.capacity() {
            return Ok(());
        }
        if blocks > self.addressable_blocks() {
            return Err(Error::Full(format!(
                "the volume's limit of {} blocks of {} bytes is used up",
                self.capacity_blocks(),
                self.block_bytes()
            )));
        }
        // Powers of two, so that the size of the position map reveals no more.
        let blocks = blocks.next_power_of_two().min(self.addressable_blocks());
        self.guarded(|volume| {
            volume.ledger.record_resize(blocks, volume.ledger.engine.size_class())?;
            volume.ledger.engine.grow(blocks)?;
            volume.report_rule();
            volume.fetch_map()
        })
    }

    fn access(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockAnswer>> {
        refuse_misfits(&ops, self.ledger.engine.capacity(), self.ledger.engine.block_bytes())?;
        self.guarded(|volume| {
            if ops.iter().any(|op| op.action != Action::Read) {
                volume.drain()?;
            }
            let (limit, block_bytes) = (volume.batch_limit(), volume.ledger.engine.block_bytes());
            let mut answers = Vec::with_capacity(ops.len());
            let mut ops = ops.into_iter().peekable();
            while ops.peek().is_some() {
                let batch: Vec<_> = ops.by_ref().take(limit).collect();
                // Not all at the beginning: a commit in between forgets earlier notes.
                volume.note(&batch);
                let reads = |op: &BlockOp| (op.action == Action::Read).then_some(op.id.0);
                let read: Vec<_> = batch.iter().map(reads).collect();
                volume.answered_reads();
                for (answer, read) in volume.serve_batch(batch)?.into_iter().zip(read) {
                    answers.push(match read {
                        Some(id) => volume.waiting.deferred.overlay(id, block_bytes, answer),
                        None => answer,
                    });
                }
                // Not only at the end: the writes between two commits are bounded.
                volume.commit_within()?;
            }
            Ok(answers)
        })
    }

    fn defer(&mut self, ops: Vec<BlockOp>) -> Result<()> {
        refuse_misfits(&ops, self.ledger.engine.capacity(), self.ledger.engine.block_bytes())?;
        self.guarded(|volume| {
            volume.take_turns(ops.into_iter())?;
            if volume.pacer.is_some() {
                volume.tick_until_synced(SYNC_BYTES / 2)?;
            }
            volume.commit_within()
        })
    }

    fn room(&self) -> Result<Option<u64>> {
        let free = self.ledger.store.free_bytes()?;
        Ok(free.map(|free| self.room_in(free).saturating_sub(self.coming_blocks())))
    }

    fn exists(&self, id: u64) -> bool {
        let stored =
            || id < self.ledger.engine.capacity() && self.ledger.engine.is_live(BlockId(id));
        self.waiting.deferred.exists(id).unwrap_or_else(stored)
    }

    /// A removed block is only forgotten.
    fn erases_cheaply(&self) -> bool {
        true
    }

    fn root(&self) -> &[u8] {
        &self.ledger.root
    }

    fn set_root(&mut self, root: &[u8]) {
        assert!(root.len() <= ROOT_BYTES, "the caller keeps to ROOT_BYTES");
        self.waiting.root_changed |= self.ledger.root != root;
        self.ledger.root = root.to_vec();
    }

    /// By a record in the journal, or a commit if that is too long.
    fn commit(&mut self) -> Result<()> {
        self.guarded(|volume| {
            if volume.pacer.is_some() {
                return volume.tick_until_synced(0);
            }
            let bytes = volume.sync_bytes();
            match volume.waiting.unsynced.take() {
                Some(_) if volume.commit_is_near() => volume.checkpoint()?,
                Some(writes) if bytes == 0 && !volume.waiting.root_changed => {
                    volume.waiting.unsynced = Some(writes);
                }
                Some(writes) if volume.progress().syncs_to_journal() => {
                    volume.record_sync(&writes, volume.least_sync(bytes))?;
                    volume.waiting.unsynced = Some(writes);
                    volume.forget_unsynced();
                }
                _ => volume.checkpoint()?,
            }
            // After the record of the removals, so that a replay has room for all its blocks.
            volume.shrink_if_due()
        })
    }

    fn finish(&mut self) -> Result<()> {
        self.guarded(|volume| {
            volume.carry_out_all()?;
            volume.pad_operation()?;
            if volume.shrink_is_due() {
                // First the removals: a crash in the sweep would restore the blocks into a smaller
                // tree.
                volume.checkpoint()?;
            }
            volume.sweep_at_end()?;
            volume.checkpoint()?;
            volume.reclaim_at_end()?;
            volume.ledger.journal.clear(&*volume.ledger.store)?;
            volume.ledger.trust.end()
        })
    }

    fn discard(&mut self, ids: &[u64]) -> Result<()> {
        let (engine, deferred) = (&self.ledger.engine, &self.waiting.deferred);
        let exists = |id: u64| id < engine.capacity() && engine.is_live(BlockId(id));
        let asked = ids.len() as u64;
        let ids = ids.iter().copied().filter(|&id| exists(id) || deferred.waits(id));
        let mut ids: Vec<u64> = ids.collect();
        ids.sort_unstable();
        ids.dedup();
        let there = ids.len() as u64;
        let runs = runs(ids.into_iter());
        self.guarded(|volume| {
            for &(first, count) in &runs {
                volume.drop_blocks(first..first + count)?;
            }
            volume.ledger.engine.expect_discarded(asked - there);
            volume.note_discards(&runs, asked);
            Ok(())
        })
    }

    /// A disk gives ranges back: each counts once, however many of its blocks exist.
    fn erase(&mut self, ids: &[u64]) -> Result<()> {
        let known = ids.iter().copied().filter(|&id| id < self.ledger.engine.capacity());
        let runs = runs(known);
        self.guarded(|volume| {
            for &(first, count) in &runs {
                volume.drop_run(first..first + count)?;
            }
            volume.note_discards(&runs, runs.len() as u64);
            Ok(())
        })
    }

    fn pads(&self) -> bool {
        self.takes_turns()
    }

    fn bring_up(&mut self, least: Least) -> Result<()> {
        self.guarded(|volume| volume.bring_up(least))
    }

    fn end_operation(&mut self) -> Result<()> {
        self.guarded(TreeVolume::pad_operation)
    }

    fn wants_commit(&self) -> bool {
        self.commit_is_near()
    }

    fn idle(&mut self) -> Result<Option<Duration>> {
        self.guarded(|volume| match volume.serve_pace()? {
            Some(until) => Ok(Some(until)),
            None => Ok(volume.sweep_when_idle()?.then_some(Duration::ZERO)),
        })
    }

    fn cache_budget(&self) -> usize {
        self.memory_bytes / 8
    }
}
