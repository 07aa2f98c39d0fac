//! The volume as a block space. Nobody observes its reads, so each costs only what it needs. Its
//! writes follow from their number.

use super::serving::{Serves, serve};
use super::{SequentialVolume, cover};
use crate::block::{BlockReader, BlockSpace, ROOT_BYTES, refuse_misfits};
use crate::{Error, Result};
use oblivio_engine::{BlockId, BlockOp, BlockOutcome};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

impl Serves for SequentialVolume {
    fn block_len(&self) -> usize {
        self.header.engine.block_bytes
    }
    fn read(&mut self, blocks: &[BlockId]) -> Result<Vec<BlockOutcome>> {
        self.read_blocks(blocks)
    }
    fn write(&mut self, block: BlockId, content: Option<Vec<u8>>) -> Result<()> {
        self.write_block(block, content)
    }
    fn write_nothing(&mut self) -> Result<()> {
        self.write_empty(1)?;
        self.pad_if_long()
    }
}

impl BlockSpace for SequentialVolume {
    crate::lacks!(resizing, deferring, padding);

    fn give_up(&mut self) {}

    fn block_bytes(&self) -> usize {
        self.block_len()
    }

    fn capacity_blocks(&self) -> u64 {
        self.header.engine.blocks
    }

    /// All blocks are addressable from the beginning.
    fn reserve(&mut self, blocks: u64) -> Result<()> {
        if blocks > self.capacity_blocks() {
            return Err(Error::Full(format!(
                "the volume was made with {} blocks of {} bytes",
                self.capacity_blocks(),
                self.block_bytes()
            )));
        }
        Ok(())
    }

    fn access_each(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        refuse_misfits(&ops, self.capacity_blocks(), self.block_bytes())?;
        self.guarded(|volume| serve(volume, ops))
    }

    /// A lane makes a commit a little longer, used or not; whether it is used must not show.
    fn commits_evenly(&self) -> bool {
        self.lanes.is_some()
    }

    fn wants_commit(&self) -> bool {
        false
    }

    fn idle(&mut self) -> Result<Option<Duration>> {
        cover::serve(self)
    }

    fn root(&self) -> &[u8] {
        &self.root
    }

    fn set_root(&mut self, root: &[u8]) {
        assert!(root.len() <= ROOT_BYTES, "the caller keeps to ROOT_BYTES");
        if self.root != root {
            self.root = root.to_vec();
            // Into the log at once: later writes must not become durable without it.
            let number = self.engine().writes();
            self.log.set_root(number, root);
        }
    }

    fn commit(&mut self) -> Result<()> {
        self.guarded(Self::sync)
    }

    fn finish(&mut self) -> Result<()> {
        self.guarded(Self::rest)
    }

    fn exists(&self, id: u64) -> bool {
        id < self.capacity_blocks() && self.engine().may_exist(BlockId(id))
    }

    /// Looks on the disk: nobody observes reads.
    fn present(&self, ids: Range<u64>) -> Result<Vec<bool>> {
        self.shared.expect_open()?;
        self.shared.judged(self.shared.present(ids))
    }

    fn cache_budget(&self) -> usize {
        self.memory_bytes() / 8
    }

    fn reader(&self) -> Option<Arc<dyn BlockReader>> {
        Some(Arc::clone(&self.shared) as Arc<dyn BlockReader>)
    }
}
