//! The volume as a block space: reads, writes that wait, durability.

use super::policy::{MOST_OPS, most_bytes};
use super::volume::PyramidVolume;
use crate::block::{BlockSpace, ROOT_BYTES, refuse_misfits};
use crate::{Error, Result};
use oblivio_engine::{Action, BlockAnswer, BlockId, BlockOp};

impl PyramidVolume {
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

    /// Accepts a write. What waits then stays within its bounds.
    fn accept(&mut self, op: BlockOp) -> Result<()> {
        self.waiting.accept(op);
        if self.waiting.wants_record(self.memory_bytes) {
            self.record()?;
        }
        while self.waiting.wants_round(self.memory_bytes) {
            self.carry_out()?;
            self.commit_if_due()?;
        }
        Ok(())
    }

    /// Reads blocks, and adds what they are after all accepted writes.
    fn read(&mut self, ids: Vec<BlockId>, answers: &mut Vec<BlockAnswer>) -> Result<()> {
        let block_bytes = self.block_bytes();
        for ids in ids.chunks(MOST_OPS) {
            let ops = ids.iter().map(|&id| BlockOp { id, action: Action::Read }).collect();
            let found = self.serve(ops, false)?;
            let overlaid = ids.iter().zip(found);
            answers
                .extend(overlaid.map(|(id, found)| self.waiting.overlay(id.0, block_bytes, found)));
            self.commit_if_due()?;
        }
        Ok(())
    }
}

impl BlockSpace for PyramidVolume {
    fn block_bytes(&self) -> usize {
        self.ledger.engine.config().block_bytes
    }

    fn capacity_blocks(&self) -> u64 {
        super::header::capacity_blocks(&self.ledger.header.parameters())
    }

    fn reserve(&mut self, blocks: u64) -> Result<()> {
        if blocks <= self.capacity_blocks() {
            return Ok(());
        }
        Err(Error::Full(format!(
            "the volume's limit of {} blocks of {} bytes is used up",
            self.capacity_blocks(),
            self.block_bytes()
        )))
    }

    fn access(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockAnswer>> {
        refuse_misfits(&ops, self.capacity_blocks(), self.block_bytes())?;
        self.guarded(|volume| {
            let (mut answers, mut reads) = (Vec::with_capacity(ops.len()), Vec::new());
            for op in ops {
                if op.action == Action::Read {
                    reads.push(op.id);
                    continue;
                }
                volume.read(std::mem::take(&mut reads), &mut answers)?;
                volume.accept(op)?;
                answers.push(None);
            }
            volume.read(reads, &mut answers)?;
            Ok(answers)
        })
    }

    fn defer(&mut self, ops: Vec<BlockOp>) -> Result<()> {
        refuse_misfits(&ops, self.capacity_blocks(), self.block_bytes())?;
        self.guarded(|volume| {
            let mut writes = ops.into_iter().filter(|op| op.action != Action::Read);
            writes.try_for_each(|op| volume.accept(op))
        })
    }

    fn root(&self) -> &[u8] {
        &self.ledger.root
    }

    fn set_root(&mut self, root: &[u8]) {
        assert!(root.len() <= ROOT_BYTES, "the caller keeps to ROOT_BYTES");
        self.waiting.root_changed |= self.ledger.root != root;
        self.ledger.root = root.to_vec();
    }

    /// Tables take their space whatever is in them, so a store that has not enough for all has
    /// room for nothing.
    fn room(&self) -> Result<Option<u64>> {
        let most = most_bytes(self.ledger.engine.config());
        let missing = most.saturating_sub(self.ledger.table_bytes());
        let left = self.capacity_blocks().saturating_sub(self.ledger.engine.live_blocks());
        let free = self.ledger.store.free_bytes()?;
        Ok(free.map(|free| if free < missing { 0 } else { left }))
    }

    /// By a record in the journal, or a commit if that is too long.
    fn commit(&mut self) -> Result<()> {
        self.guarded(|volume| {
            volume.record()?;
            volume.commit_if_due()
        })
    }

    fn finish(&mut self) -> Result<()> {
        self.guarded(|volume| {
            volume.record()?;
            if volume.ledger.journal_bytes() > 0 {
                volume.checkpoint()?;
            }
            volume.ledger.end()
        })
    }

    fn exists(&self, id: u64) -> bool {
        let stored = || self.ledger.engine.exists(BlockId(id));
        self.waiting.exists(id).unwrap_or_else(stored)
    }

    fn cache_budget(&self) -> usize {
        self.memory_bytes / 8
    }
}
