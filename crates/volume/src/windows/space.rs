//! The volume as a block space: batches, deferred writes, durability.

use super::policy::{
    HEED_SECONDS, LEAST_SYNC, MOST_DEFERRED, MOST_RECORD_BYTES, MOST_RECORDS, SYNC_BYTES,
};
use super::volume::{Failed, WindowVolume};
use crate::block::{BlockSpace, ROOT_BYTES, refuse_misfits};
use crate::tree::runs;
use crate::{Error, Result};
use oblivio_engine::{Action, BlockAnswer, BlockId, BlockOp};
use std::time::Duration;

impl WindowVolume {
    /// Runs `work` unless an earlier failure closed this handle; a failure closes it.
    pub(super) fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        match &self.failed {
            Some(Failed::Overtaken) => return Err(Error::Overtaken),
            Some(Failed::Other(why)) => return Err(Error::Closed(why.clone())),
            None => {}
        }
        let result = work(self);
        let result = self.ledger.judged(result);
        self.failed = match &result {
            Ok(_) | Err(Error::Invalid(_)) => None,
            Err(Error::Overtaken) => Some(Failed::Overtaken),
            Err(error) => Some(Failed::Other(error.to_string())),
        };
        result
    }

    /// Accesses left to the next window.
    pub(super) fn left(&self) -> usize {
        self.ledger.engine.accesses_to_window().unwrap_or(0) as usize
    }

    /// Accepts a write. What waits fits into one batch, before the next window: its commit carries
    /// nothing over.
    fn accept(&mut self, op: BlockOp) -> Result<()> {
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
    fn read(&mut self, ids: &[BlockId], answers: &mut Vec<BlockAnswer>) -> Result<()> {
        let block_bytes = self.block_bytes();
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

    /// Makes all accepted writes, and the root, durable: by records, or by a commit if there are
    /// many.
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
        let root = self.ledger.root.clone();
        self.ledger.root.clone_from(&self.waiting.synced_root);
        while writes.bytes().len() > SYNC_BYTES {
            let front = writes.take_front(SYNC_BYTES);
            self.ledger.send_sync(&front, SYNC_BYTES)?;
        }
        self.ledger.root = root;
        let least = writes.bytes().len().max(LEAST_SYNC);
        self.ledger.send_sync(&writes, least)?;
        self.settle()?;
        self.report_sync(self.ledger.session.mark().index - before);
        self.waiting.synced(&self.ledger.root);
        Ok(())
    }
}

impl BlockSpace for WindowVolume {
    fn block_bytes(&self) -> usize {
        self.ledger.engine.block_bytes()
    }

    fn capacity_blocks(&self) -> u64 {
        self.ledger.limit()
    }

    fn addressable_blocks(&self) -> u64 {
        self.ledger.limit().max(self.ledger.engine.capacity())
    }

    fn can_resize(&self) -> bool {
        true
    }

    fn set_capacity(&mut self, blocks: u64) -> Result<()> {
        self.guarded(|volume| {
            let blocks = blocks.max(super::header::LEAST_BLOCKS);
            volume.ledger.engine.allow(blocks)?;
            volume.ledger.set_limit(blocks)
        })
    }

    fn reserve(&mut self, blocks: u64) -> Result<()> {
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
            Ok(())
        })
    }

    fn access(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockAnswer>> {
        refuse_misfits(&ops, self.ledger.engine.capacity(), self.block_bytes())?;
        self.guarded(|volume| {
            let (mut answers, mut reads) = (Vec::with_capacity(ops.len()), Vec::new());
            for op in ops {
                if op.action == Action::Read {
                    reads.push(op.id);
                    continue;
                }
                volume.read(&std::mem::take(&mut reads), &mut answers)?;
                volume.accept(op)?;
                answers.push(None);
            }
            volume.read(&reads, &mut answers)?;
            Ok(answers)
        })
    }

    fn defer(&mut self, ops: Vec<BlockOp>) -> Result<()> {
        refuse_misfits(&ops, self.ledger.engine.capacity(), self.block_bytes())?;
        self.guarded(|volume| {
            let mut writes = ops.into_iter().filter(|op| op.action != Action::Read);
            writes.try_for_each(|op| volume.accept(op))
        })
    }

    fn give_up(&mut self) {
        // Others wait for it in any case, and then take it over.
        let _ = self.ledger.give_up();
    }

    fn root(&self) -> &[u8] {
        &self.ledger.root
    }

    fn set_root(&mut self, root: &[u8]) {
        assert!(root.len() <= ROOT_BYTES, "the caller keeps to ROOT_BYTES");
        self.ledger.root = root.to_vec();
    }

    fn exists(&self, id: u64) -> bool {
        let engine = &self.ledger.engine;
        let stored = || id < engine.capacity() && engine.is_live(BlockId(id));
        self.waiting.deferred.exists(id).unwrap_or_else(stored)
    }

    /// A removed block is only forgotten.
    fn erases_cheaply(&self) -> bool {
        true
    }

    fn commit(&mut self) -> Result<()> {
        self.guarded(Self::sync)
    }

    fn finish(&mut self) -> Result<()> {
        self.guarded(|volume| {
            volume.drain()?;
            volume.commit_all()?;
            volume.ledger.release()
        })
    }

    fn discard(&mut self, ids: &[u64]) -> Result<()> {
        let (engine, deferred) = (&self.ledger.engine, &self.waiting.deferred);
        let exists = |id: u64| id < engine.capacity() && engine.is_live(BlockId(id));
        let there = ids.iter().copied().filter(|&id| exists(id) || deferred.waits(id));
        let mut there: Vec<u64> = there.collect();
        there.sort_unstable();
        there.dedup();
        let absent = ids.len() - there.len();
        let runs = runs(there.into_iter());
        self.guarded(|volume| {
            for &(first, count) in &runs {
                volume.drop_blocks(first..first + count)?;
                volume.waiting.unsynced.discard(first, count);
            }
            volume.ledger.engine.expect_discarded(absent as u64);
            volume.report_rule();
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
                volume.waiting.unsynced.discard(first, count);
            }
            volume.report_rule();
            Ok(())
        })
    }

    fn idle(&mut self) -> Result<Option<Duration>> {
        self.guarded(|volume| {
            volume.heed_others()?;
            if volume.ledger.log.unsettled > 0 {
                volume.settle()?;
            }
            if volume.ledger.engine.shrink_left() == 0 {
                return Ok(Some(Duration::from_secs(HEED_SECONDS)));
            }
            volume.window_ahead()?;
            Ok(Some(Duration::ZERO))
        })
    }

    fn cache_budget(&self) -> usize {
        self.memory_bytes / 8
    }
}
