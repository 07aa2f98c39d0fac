//! A lane as a block space. Its writes wait in memory for acts of the volume; none of them causes
//! one.

use super::lane::{Lane, SharedLane};
use super::riding::{Content, Ride};
use crate::block::{BlockReader, BlockSpace, ROOT_BYTES, TakeBlock, refuse_misfits};
use crate::lane::{CarriesLane, LaneStatus, LaneWait};
use crate::sequential::serving::{Serves, serve};
use crate::{Error, Result};
use oblivio_engine::{BlockId, BlockOp, BlockOutcome, Lost};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// An open lane, for the one who uses it.
pub struct LaneSpace {
    lane: SharedLane,
    wait: LaneWait,
    root: Vec<u8>,
    /// Whether nothing was ever committed here: a root of what is only half there must not ride.
    /// Without one, the lane is empty.
    is_new: bool,
}

impl LaneSpace {
    /// A lane.
    pub(in crate::sequential) fn of(lane: &SharedLane, wait: LaneWait) -> Self {
        let root = lane.inner().root.clone();
        let is_new = root.is_empty();
        Self { lane: Arc::clone(lane), wait, root, is_new }
    }

    /// Waits until less than the allowed memory is taken.
    fn wait_for_room(&self) -> Result<()> {
        let most = self.wait.memory_bytes;
        match self.lane.wait_until(self.wait.time, |riding| riding.bytes() < most)? {
            true => Ok(()),
            false => Err(waits(self.lane.inner().riding.waiting())),
        }
    }
}

/// What a writer reads that waited in vain.
fn waits(waiting: usize) -> Error {
    Error::Full(format!(
        "{waiting} writes of the lane wait in memory until the volume itself is written"
    ))
}

impl CarriesLane for Lane {
    fn accepted(&self) -> u64 {
        self.inner().riding.accepted
    }

    fn wait(&self, accepted: u64, time: Duration) -> Result<()> {
        match self.wait_until(time, |riding| riding.durable >= accepted)? {
            true => Ok(()),
            false => Err(waits(self.inner().riding.waiting())),
        }
    }

    fn status(&self) -> LaneStatus {
        let (form, (waiting, waiting_bytes, grace)) = (&self.form, self.left());
        let (block, flush) = (form.quantum.block_bytes as u64, form.flush_bytes);
        let own = form.layout.schedule().writes_per_flush();
        LaneStatus {
            bytes: form.layout.schedule().blocks() * block,
            waiting,
            waiting_bytes,
            carried_by_bytes: waiting.div_ceil(own) * flush,
            grace_left_bytes: grace * flush,
            grace_bytes: form.layout.grace() * flush,
        }
    }
}

impl Lane {
    /// Reads blocks: those that wait in memory, and the others from the lane.
    fn read_blocks(&self, blocks: &[BlockId], take: &mut TakeBlock<'_>) -> Result<()> {
        let waiting: Vec<Option<Content>> =
            blocks.iter().map(|block| self.waiting(*block)).collect();
        let stored: Vec<BlockId> =
            blocks.iter().zip(&waiting).filter(|it| it.1.is_none()).map(|it| *it.0).collect();
        let mut found: Vec<BlockOutcome> = Vec::with_capacity(stored.len());
        let mut note = |_: usize, block: std::result::Result<Option<&[u8]>, Lost>| {
            found.push(block.map(|block| block.map(<[u8]>::to_vec)));
        };
        self.shared.expect_open()?;
        self.judged(self.shared.read_blocks(&stored, &mut note))?;
        let mut found = found.into_iter();
        for (at, waiting) in waiting.iter().enumerate() {
            match waiting {
                Some(content) => take(at, Ok(content.as_deref())),
                None => match found.next().unwrap_or(Err(Lost)) {
                    Ok(content) => take(at, Ok(content.as_deref())),
                    Err(lost) => take(at, Err(lost)),
                },
            }
        }
        Ok(())
    }
}

impl BlockReader for Lane {
    fn read(&self, blocks: &[BlockId], take: &mut TakeBlock<'_>) -> Result<()> {
        let all = self.form.layout.schedule().blocks();
        if let Some(block) = blocks.iter().find(|block| block.0 >= all) {
            return Err(Error::Invalid(format!("block {} of {all}", block.0)));
        }
        self.read_blocks(blocks, take)
    }
}

impl Serves for LaneSpace {
    fn block_len(&self) -> usize {
        self.lane.form.quantum.block_bytes
    }

    fn read(&mut self, blocks: &[BlockId]) -> Result<Vec<BlockOutcome>> {
        let mut outcomes = Vec::with_capacity(blocks.len());
        self.lane.read_blocks(blocks, &mut |_, block| {
            outcomes.push(block.map(|block| block.map(<[u8]>::to_vec)));
        })?;
        Ok(outcomes)
    }

    fn write(&mut self, block: BlockId, content: Option<Vec<u8>>) -> Result<()> {
        self.wait_for_room()?;
        self.lane.inner().riding.accept(Ride::Write(block, content.map(Arc::from)));
        Ok(())
    }

    /// Nobody sees what rides.
    fn write_nothing(&mut self) -> Result<()> {
        Ok(())
    }
}

impl BlockSpace for LaneSpace {
    crate::lacks!(resizing, deferring, padding, idling);

    fn give_up(&mut self) {}

    fn block_bytes(&self) -> usize {
        self.block_len()
    }

    fn capacity_blocks(&self) -> u64 {
        self.lane.form.layout.schedule().blocks()
    }

    fn reserve(&mut self, blocks: u64) -> Result<()> {
        if blocks > self.capacity_blocks() {
            return Err(Error::Full(format!("the lane has {} blocks", self.capacity_blocks())));
        }
        Ok(())
    }

    fn access_each(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        refuse_misfits(&ops, self.capacity_blocks(), self.block_len())?;
        self.lane.shared.expect_open()?;
        serve(self, ops)
    }

    fn root(&self) -> &[u8] {
        &self.root
    }

    fn set_root(&mut self, root: &[u8]) {
        assert!(root.len() <= ROOT_BYTES, "the caller keeps to ROOT_BYTES");
        if self.root != root {
            self.root = root.to_vec();
            if !self.is_new {
                self.lane.inner().riding.accept(Ride::Root(root.to_vec()));
            }
        }
    }

    /// All of it is accepted, in order. [`LaneSync`] tells when it is durable.
    fn commit(&mut self) -> Result<()> {
        if self.is_new && !self.root.is_empty() {
            self.is_new = false;
            self.lane.inner().riding.accept(Ride::Root(self.root.clone()));
        }
        self.lane.shared.expect_open()
    }

    fn finish(&mut self) -> Result<()> {
        self.commit()
    }

    fn exists(&self, id: u64) -> bool {
        let block = BlockId(id);
        id < self.capacity_blocks()
            && match self.lane.waiting(block) {
                Some(content) => content.is_some(),
                None => self.lane.shared.engine().may_exist(block),
            }
    }

    fn present(&self, ids: Range<u64>) -> Result<Vec<bool>> {
        let waiting: Vec<_> = ids.clone().map(|id| self.lane.waiting(BlockId(id))).collect();
        self.lane.shared.expect_open()?;
        let stored = self.lane.judged(self.lane.shared.present(ids))?;
        let is_there = |(waiting, stored): (Option<Content>, bool)| {
            waiting.map_or(stored, |content| content.is_some())
        };
        Ok(waiting.into_iter().zip(stored).map(is_there).collect())
    }

    fn cache_budget(&self) -> usize {
        self.wait.memory_bytes / 8
    }

    fn reader(&self) -> Option<Arc<dyn BlockReader>> {
        Some(Arc::clone(&self.lane) as Arc<dyn BlockReader>)
    }
}
