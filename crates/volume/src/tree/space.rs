//! When the tree's operations are carried out: batches, deferred writes, durability.

use crate::Result;
use crate::block::{BlockSpace, Least};
use crate::core::{Ledger as _, MOST_OPS, Policy, SYNC_BYTES};
use crate::options::ShownKind;
use crate::records::writes::WriteEntry;
use crate::tree::policy::{Commit, Flush};
use crate::tree::tuning::{MOST_BATCH, MOST_DEFERRED, MOST_WAITING, SPARE_BLOCKS, SWEEP_BATCH};
use crate::tree::volume::TreeVolume;
use oblivio_engine::tree::{Intent, Shape, TreeJob};
use oblivio_engine::{Action, BlockId, BlockOp, BlockOutcome};
use std::time::Duration;

impl TreeVolume {
    /// Notes that all writes are durable.
    pub(crate) fn forget_unsynced(&mut self) {
        self.waiting.synced(&self.ledger.root);
        self.account.padding.noted = 0;
    }

    /// Operations in one batch: as many as fit an eighth of the memory budget, for a tree of this
    /// shape with this many cached buckets.
    pub(crate) fn batch_limit_for(&self, shape: Shape, cached: u64) -> usize {
        if let Some(batch) = self.fixed_batch() {
            return batch;
        }
        // Reads of the access and its share of scheduled paths, and their writes.
        let path_bytes = self.ledger.engine.config().uncached_path_bytes(shape, cached);
        let access_bytes = 2 * path_bytes.max(self.ledger.engine.bucket_bytes());
        (MOST_BATCH.min(self.memory_bytes / 8) / access_bytes).clamp(1, MOST_OPS)
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

    /// Carries out all deferred writes; with a pace, in a number of ticks that does not depend on
    /// them.
    pub(crate) fn carry_out_all(&mut self) -> Result<()> {
        if self.account.pacer.is_some() {
            self.ticks_before_commit()?;
        }
        self.drain()
    }
}

/// Carries out a new batch, once its record is durable.
fn show(volume: &mut TreeVolume, batch: &mut TreeJob) -> Result<()> {
    volume.ledger.record_intent(batch.intent())?;
    volume.sync_tick()?;
    volume.run(batch, ShownKind::Batch)
}

impl Policy for TreeVolume {
    fn addressable(&self) -> u64 {
        let (there, limit) = (self.ledger.engine.capacity(), self.ledger.limit());
        match there > limit {
            // With a restored old limit, existing blocks can still be removed, which takes some.
            true => there + there / 16 + SPARE_BLOCKS,
            false => limit,
        }
    }

    fn batch_limit(&self) -> usize {
        self.batch_limit_for(self.ledger.engine.shape(), self.ledger.engine.cached_buckets())
    }

    /// Serves operations as one batch, with its records and its sweep.
    fn serve_batch(&mut self, mut ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        let wanted: Vec<u64> = ops.iter().map(|op| op.id.0).collect();
        self.grow_for(&ops)?;
        self.fill_batch(&mut ops);
        self.account.accesses += ops.len() as u64;
        self.keep_little_towards_commit();
        let mut batch = self.ledger.engine.begin_batch(ops)?;
        show(self, &mut batch)?;
        let mut answers = batch.into_outcomes();
        answers.truncate(wanted.len());
        self.note_lost(&wanted, &answers);
        self.sweep(SWEEP_BATCH)?;
        Ok(answers)
    }

    fn serve(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        if ops.iter().any(|op| op.action != Action::Read) {
            self.drain()?;
        }
        let (limit, block_bytes) = (self.batch_limit(), self.block_bytes());
        let mut answers = Vec::with_capacity(ops.len());
        let mut ops = ops.into_iter().peekable();
        while ops.peek().is_some() {
            let batch: Vec<_> = ops.by_ref().take(limit).collect();
            // Not all at the beginning: a commit in between forgets earlier notes.
            self.note(&batch);
            let reads = |op: &BlockOp| (op.action == Action::Read).then_some(op.id.0);
            let read: Vec<_> = batch.iter().map(reads).collect();
            self.answered_reads();
            for (answer, read) in self.serve_batch(batch)?.into_iter().zip(read) {
                answers.push(match read {
                    Some(id) => self.waiting.deferred.overlay(id, block_bytes, answer),
                    None => answer,
                });
            }
            // Not only at the end: the writes between two commits are bounded.
            self.commit_within()?;
        }
        Ok(answers)
    }

    fn accept(&mut self, ops: Vec<BlockOp>) -> Result<()> {
        self.take_turns(ops.into_iter())?;
        if self.account.pacer.is_some() {
            self.tick_until_synced(SYNC_BYTES / 2)?;
        }
        self.commit_within()
    }

    /// By a record in the journal, or a commit if that is too long.
    fn sync(&mut self) -> Result<()> {
        if self.account.pacer.is_some() {
            return self.tick_until_synced(0);
        }
        let bytes = self.sync_bytes();
        match self.waiting.unsynced.take() {
            Some(_) if self.commit_is_near() => self.checkpoint(Flush::Due)?,
            Some(writes) if bytes == 0 && self.waiting.synced_root() == self.ledger.root => {
                self.waiting.unsynced = Some(writes);
            }
            Some(writes) if self.progress().syncs_to_journal() => {
                self.record_sync(&writes, self.least_sync(bytes))?;
                self.forget_unsynced();
            }
            _ => self.checkpoint(Flush::Due)?,
        }
        // After the record of the removals, so that a replay has room for all its blocks.
        self.shrink_if_due()
    }

    fn close(&mut self) -> Result<()> {
        self.carry_out_all()?;
        self.pad_operation()?;
        if self.shrink_is_due() {
            // First the removals: a crash in the sweep would restore the blocks into a smaller
            // tree.
            self.checkpoint(Flush::Due)?;
        }
        self.sweep_at_end()?;
        self.checkpoint(Flush::All)?;
        self.reclaim_at_end()?;
        self.ledger.journal.clear(&*self.ledger.store)?;
        self.ledger.trust.end()
    }

    fn rest(&mut self) -> Result<Option<Duration>> {
        match self.serve_pace()? {
            Some(until) => Ok(Some(until)),
            None => Ok(self.sweep_when_idle()?.then_some(Duration::ZERO)),
        }
    }

    fn note_discards(&mut self, runs: &[(u64, u64)], asked: u64) {
        self.account.padding.discards += asked;
        self.waiting.note(runs.iter().map(|&(first, count)| WriteEntry::Discarded(first, count)));
        self.noted(asked as usize, 0);
    }

    fn grown(&mut self) -> Result<()> {
        self.fetch_map()
    }

    fn report_rule(&mut self) {
        self.report_now();
    }

    fn replay_intent(&mut self, intent: &Intent) -> Result<()> {
        let mut job = self.ledger.engine.begin_replay(intent)?;
        // A tree that does not shrink is swept by a repair only.
        let kind = match intent.ids.is_empty() {
            true if self.ledger.engine.shrink_left() == 0 => ShownKind::Repair,
            true => ShownKind::Maintenance,
            false => ShownKind::Batch,
        };
        self.run(&mut job, kind)
    }

    fn renew(&mut self, intent: &Intent) -> Result<()> {
        let mut batch = self.ledger.engine.begin_replay(intent)?;
        show(self, &mut batch)?;
        self.sweep(SWEEP_BATCH)
    }

    fn end_replay(&mut self) -> Result<()> {
        // A tree that was to shrink with a commit that failed keeps its blocks.
        self.grow_for(&[])?;
        self.checkpoint(Flush::Due)
    }

    fn room_left(&self) -> Result<Option<u64>> {
        let free = self.ledger.store.free_bytes()?;
        let is_live = |id| self.ledger.engine.is_live(BlockId(id));
        let coming = self.waiting.deferred.coming(is_live);
        Ok(free.map(|free| self.room_in(free).saturating_sub(coming)))
    }

    fn pad_to(&mut self, least: Least) -> Result<()> {
        if self.takes_turns() { self.bring_up_to(least) } else { Ok(()) }
    }

    fn pad_operation(&mut self) -> Result<()> {
        self.show_operation()
    }

    fn commit_is_near(&self) -> bool {
        let progress = self.progress();
        progress.ahead.is_some() && progress.commit() != Commit::Later
    }
}
