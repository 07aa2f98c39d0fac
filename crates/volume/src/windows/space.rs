//! When operations are carried out in windows: batches, deferred writes, durability.

use super::policy::{HEED_SECONDS, MOST_DEFERRED, MOST_RECORD_BYTES, MOST_RECORDS, batch_limit};
use super::volume::WindowVolume;
use crate::Result;
use crate::core::{LEAST_SYNC, Ledger as _, Policy, SYNC_BYTES};
use crate::records::writes::WriteEntry;
use oblivio_engine::tree::Intent;
use oblivio_engine::{Action, BlockId, BlockOp, BlockOutcome, Lost};
use std::time::Duration;

impl WindowVolume {
    /// Accesses left to the next window.
    pub(super) fn left(&self) -> usize {
        self.ledger.engine.accesses_to_window().unwrap_or(0) as usize
    }

    /// Accepts a write. What waits fits into one batch, before the next window: its commit carries
    /// nothing over.
    fn take(&mut self, op: BlockOp) -> Result<()> {
        let known = self.waiting.deferred.waits(op.id.0);
        let most_bytes = MOST_DEFERRED.min(self.memory_bytes / 16);
        let most = self.left().min(self.batch_limit());
        let full = self.waiting.deferred.len() >= most && !known;
        if full || self.waiting.deferred.bytes() > most_bytes {
            self.drain()?;
        }
        self.waiting.accept(op);
        Ok(())
    }

    /// Reads blocks, as they are after all accepted writes.
    fn read(&mut self, ids: &[BlockId], answers: &mut Vec<BlockOutcome>) -> Result<()> {
        let block_bytes = self.ledger.engine.block_bytes();
        let mut rest = ids;
        while !rest.is_empty() {
            let room = self.left().saturating_sub(self.waiting.deferred.len());
            if room == 0 {
                self.drain()?;
                continue;
            }
            let count = rest.len().min(room).min(self.batch_limit());
            let (now, later) = rest.split_at(count);
            let ops = now.iter().map(|&id| BlockOp { id, action: Action::Read }).collect();
            // A window at the end of the batch carries out what waits, after these were read.
            let overlay: Vec<_> = now.iter().map(|id| self.waiting.deferred.waits(id.0)).collect();
            let before = overlay.contains(&true).then(|| self.waiting.deferred.clone());
            let found = self.serve_batch(ops)?;
            for (id, found) in now.iter().zip(found) {
                answers.push(match &before {
                    Some(deferred) => deferred.overlay(id.0, block_bytes, found),
                    None => found,
                });
            }
            rest = later;
        }
        Ok(())
    }

    /// Whether there is anything that the last checkpoint has not.
    pub(super) fn has_news(&self) -> bool {
        self.ledger.has_records() || self.waiting.is_ahead(&self.ledger.root)
    }
}

impl Policy for WindowVolume {
    fn addressable(&self) -> u64 {
        self.ledger.limit().max(self.ledger.engine.capacity())
    }

    fn batch_limit(&self) -> usize {
        let engine = &self.ledger.engine;
        let path = engine.config().uncached_path_bytes(engine.shape(), engine.cached_buckets());
        batch_limit(self.memory_bytes, path)
    }

    fn serve_batch(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        self.grow_for(&ops)?;
        self.settle_in_time()?;
        let wanted: Vec<u64> = ops.iter().map(|op| op.id.0).collect();
        let mut batch = self.ledger.engine.begin_batch(ops)?;
        if self.ledger.log.unsettled == 0 {
            self.account.sent = self.now();
        }
        self.ledger.note_intent(batch.intent());
        self.ledger.run(&mut batch)?;
        self.report_batch(false);
        let mut answers = batch.into_outcomes();
        answers.truncate(wanted.len());
        self.note_lost(&wanted, &answers);
        self.windows_due()?;
        Ok(answers)
    }

    fn serve(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        let (mut answers, mut reads) = (Vec::with_capacity(ops.len()), Vec::new());
        for op in ops {
            if op.action == Action::Read {
                reads.push(op.id);
                continue;
            }
            self.read(&std::mem::take(&mut reads), &mut answers)?;
            let lost = self.written_in_part(std::slice::from_ref(&op));
            self.take(op)?;
            answers.push(lost.map_or(Ok(None), |_| Err(Lost)));
        }
        self.read(&reads, &mut answers)?;
        Ok(answers)
    }

    fn accept(&mut self, ops: Vec<BlockOp>) -> Result<()> {
        let mut writes = ops.into_iter().filter(|op| op.action != Action::Read);
        writes.try_for_each(|op| self.take(op))
    }

    /// By records, or by a commit if there are many.
    fn sync(&mut self) -> Result<()> {
        if !self.waiting.has_news(&self.ledger.root) {
            return if self.ledger.log.unsettled > 0 { self.settle() } else { Ok(()) };
        }
        let many = self.ledger.records() >= MOST_RECORDS
            || self.ledger.record_bytes() >= MOST_RECORD_BYTES;
        if many {
            self.drain()?;
            return self.commit_all();
        }
        let before = self.ledger.session.mark().index;
        let mut writes = self.waiting.take_unsynced();
        // The root comes with the last one: before it, what they hold is of no effect.
        let synced = self.waiting.synced_root().to_vec();
        let root = std::mem::replace(&mut self.ledger.root, synced);
        while writes.len() > SYNC_BYTES {
            let front = writes.take_front(SYNC_BYTES);
            self.ledger.send_sync(&front, SYNC_BYTES)?;
        }
        self.ledger.root = root;
        self.ledger.send_sync(&writes, writes.len().max(LEAST_SYNC))?;
        self.settle()?;
        self.report_sync(self.ledger.session.mark().index - before);
        self.waiting.synced(&self.ledger.root);
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        self.drain()?;
        self.finish_all()
    }

    fn rest(&mut self) -> Result<Option<Duration>> {
        self.heed_others()?;
        if self.ledger.log.unsettled > 0 {
            self.settle()?;
        }
        if self.ledger.engine.shrink_left() == 0 {
            return Ok(Some(Duration::from_secs(HEED_SECONDS)));
        }
        self.window_ahead()?;
        Ok(Some(Duration::ZERO))
    }

    fn note_discards(&mut self, runs: &[(u64, u64)], _asked: u64) {
        self.waiting.note(runs.iter().map(|&(first, count)| WriteEntry::Discarded(first, count)));
        self.report_now();
    }

    fn report_rule(&mut self) {
        self.report_now();
    }

    fn replay_intent(&mut self, intent: &Intent) -> Result<()> {
        let mut job = self.ledger.engine.begin_replay(intent)?;
        if intent.ids.is_empty() {
            self.ledger.run_window(&mut job)?;
            self.report_window(true);
        } else {
            self.ledger.run(&mut job)?;
            self.report_batch(true);
        }
        self.windows_due()
    }

    fn end_replay(&mut self) -> Result<()> {
        while !self.waiting.deferred.is_empty() {
            // They may be more than fit before a window.
            let ops = self.waiting.deferred.drain(self.batch_limit().min(self.left()).max(1));
            self.serve_batch(ops)?;
        }
        self.account.replaying = false;
        // At once, or sessions that are lost soon would leave more and more behind.
        self.checkpoint(true)?;
        self.flush()
    }
}
