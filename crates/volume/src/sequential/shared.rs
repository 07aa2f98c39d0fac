//! What readers share with the volume: the engine behind a lock. Nobody holds it while the store is
//! at work or while blocks are opened and sealed.
//!
//! One thread writes, syncs and flushes; any number read meanwhile. A write is in the engine before
//! it is acknowledged, so a read that begins then finds it.

use super::ahead::Ahead;
use super::disk::{Disk, hands, ranges};
use super::lanes::LanePlaces;
use super::reads::DiskReads;
use crate::block::{BlockReader, TakeBlock};
use crate::latch::Latch;
use crate::{Error, Result};
use oblivio_engine::sequential::{
    DamagedExtent, ReadBatch, Sequential, SequentialConfig, Unfinished,
};
use oblivio_engine::{BlockId, Carrier, Job, advance, carry_out};
use oblivio_store::{Hint, Slots, WriteAt};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of blocks read together.
const TOGETHER: usize = 1 << 20;
/// The same for little memory.
const FEW: usize = 256 << 10;
/// How many times more blocks a prefetch looks up together: it waits for their map leaves together.
const PART: u64 = 4;
/// Buffers of batches kept for the next ones.
const BUFFERS: usize = 4;
/// The steps of a batch, many more than it needs by itself, after which flushes wait for it.
const PATIENCE: usize = 100;

/// The engine, its store, and whether they are still usable.
pub(super) struct Shared {
    pub store: Arc<dyn Slots>,
    pub reads: DiskReads,
    /// Where the engine's disk is, if it is a lane's.
    pub lane: Option<LanePlaces>,
    blocks: u64,
    block_bytes: usize,
    /// Whether the engine's map is on the disk.
    saves_memory: bool,
    engine: Mutex<Sequential>,
    /// Of the volume and all its readers.
    latch: Latch,
    buffers: Mutex<Vec<Vec<u8>>>,
    ahead: Ahead,
    /// Threads for a flush to open and seal blocks with.
    hands: usize,
}

impl Shared {
    pub fn new(
        store: Arc<dyn Slots>,
        reads: DiskReads,
        engine: Sequential,
        lane: Option<LanePlaces>,
    ) -> Self {
        let SequentialConfig { blocks, block_bytes, time_pages, .. } = *engine.config();
        let (latch, buffers) = (Latch::default(), Mutex::default());
        let saves_memory = time_pages > 0;
        let (engine, ahead) = (Mutex::new(engine), Ahead::new(blocks, block_bytes));
        let hands = hands();
        Self {
            store,
            reads,
            lane,
            blocks,
            block_bytes,
            saves_memory,
            engine,
            latch,
            buffers,
            ahead,
            hands,
        }
    }

    /// The engine, briefly: never over a read, a write or a decryption.
    pub fn engine(&self) -> MutexGuard<'_, Sequential> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine's disk, for jobs on one thread.
    pub fn disk(&self) -> Disk<'_> {
        Disk::new(&*self.store, &self.reads, self.lane.as_ref(), 1)
    }

    /// The same, for a flush on all threads.
    pub fn flush_disk(&self) -> Disk<'_> {
        Disk::new(&*self.store, &self.reads, self.lane.as_ref(), self.hands)
    }

    /// Carries out one step of a job; false if there was nothing left to do.
    pub fn advance<C: Carrier<Error = Error>>(
        &self,
        job: &mut impl Job<Engine = Sequential>,
        carrier: &mut C,
    ) -> Result<bool> {
        advance(job, &self.engine, carrier)
    }

    /// Carries out a flush on all threads, and these writes with its own. The engine is free
    /// for readers while the store is at work, and while the threads are.
    pub fn carry_out(
        &self,
        job: &mut impl Job<Engine = Sequential>,
        beside: Vec<WriteAt<'_>>,
    ) -> Result<()> {
        let mut disk = self.flush_disk().with(beside);
        while advance(job, &self.engine, &mut disk)? {}
        Ok(())
    }

    /// Looks at what the engine is still writing, which no block is read from yet. Only the thread
    /// that flushes may.
    pub fn unfinished(&self) -> Result<Unfinished> {
        let mut unfinished = self.engine().begin_unfinished()?;
        self.carry_out(&mut unfinished, Vec::new())?;
        Ok(unfinished)
    }

    /// Refuses everything after a failure.
    pub fn expect_open(&self) -> Result<()> {
        self.latch.expect_open()
    }

    /// Closes all handles.
    pub fn close(&self, error: &Error) {
        self.latch.close(error);
    }

    /// Passes a result on; a failure closes all handles.
    pub fn judged<T>(&self, result: Result<T>) -> Result<T> {
        self.latch.judged(result)
    }

    /// Reads many blocks; `take` gets each with its number in the list. A lost one fails by itself.
    pub fn read_blocks(&self, blocks: &[BlockId], take: &mut TakeBlock<'_>) -> Result<()> {
        let together = self.together();
        // A failed prefetch is ignored: the read itself reports it.
        let _ = self.fetch_ahead(self.ahead.expect(blocks));
        for (chunk, blocks) in blocks.chunks(together).enumerate() {
            let batch = self.read_batch(blocks)?;
            for (at, answer) in batch.answers().enumerate() {
                take(chunk * together + at, answer);
            }
            let mut buffers = self.buffers();
            if buffers.len() < BUFFERS {
                buffers.push(batch.into_buffer());
            }
        }
        Ok(())
    }

    /// Reads blocks to see whether they can be read: how many exist, those that are lost, and the
    /// damaged parts of the disk, with repeats.
    pub fn inspect(&self, blocks: &[BlockId]) -> Result<(u64, Vec<BlockId>, Vec<DamagedExtent>)> {
        let batch = self.read_batch(blocks)?;
        let (mut there, mut lost) = (0, Vec::new());
        for (block, outcome) in blocks.iter().zip(batch.answers()) {
            there += u64::from(!matches!(outcome, Ok(None)));
            lost.extend(outcome.is_err().then_some(*block));
        }
        let found = (there, lost, batch.damage().to_vec());
        self.buffers().push(batch.into_buffer());
        Ok(found)
    }

    /// Which of these blocks exist, from the map alone: it does not read the blocks.
    pub fn present(&self, blocks: Range<u64>) -> Result<Vec<bool>> {
        let batch = self.engine().begin_read(blocks.map(BlockId).collect())?;
        Ok(self.carried_out(batch.only_places())?.present().to_vec())
    }

    fn read_batch(&self, blocks: &[BlockId]) -> Result<ReadBatch> {
        let buffer = self.buffers().pop().unwrap_or_default();
        let batch = self.engine().begin_read(blocks.to_vec())?;
        self.carried_out(batch.with_buffer(buffer))
    }

    fn carried_out(&self, mut batch: ReadBatch) -> Result<ReadBatch> {
        for _ in 0..PATIENCE {
            if batch.is_done() {
                return Ok(batch);
            }
            advance(&mut batch, &self.engine, &mut self.disk())?;
        }
        // Flush after flush moved what it was about to read. Under the lock none does.
        carry_out(&mut batch, &mut *self.engine(), &mut self.disk())?;
        Ok(batch)
    }

    /// Lets the store prefetch blocks, after the map leaves that list them.
    fn fetch_ahead(&self, blocks: Range<u64>) -> Result<()> {
        let mut places = Vec::new();
        let mut left = blocks;
        // A part at a time, because others wait for the engine meanwhile.
        while !left.is_empty() {
            let end = left.end.min(left.start + PART * self.together() as u64);
            let batch = self.engine().begin_read((left.start..end).map(BlockId).collect());
            let mut batch = batch?.only_places();
            for _ in 0..PATIENCE {
                if !advance(&mut batch, &self.engine, &mut self.disk())? {
                    break;
                }
            }
            places.extend(ranges(self.lane.as_ref(), batch.places()));
            left.start = end;
        }
        // Adjacent places are fetched together, across parts.
        places.sort_unstable();
        self.store.hint(Hint::Reads(&places));
        Ok(())
    }

    /// How many blocks are read together.
    pub fn together(&self) -> usize {
        let bytes = if self.saves_memory { FEW } else { TOGETHER };
        (bytes / self.block_bytes).max(1)
    }

    fn buffers(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BlockReader for Shared {
    fn read(&self, blocks: &[BlockId], take: &mut TakeBlock<'_>) -> Result<()> {
        if let Some(block) = blocks.iter().find(|block| block.0 >= self.blocks) {
            return Err(Error::Invalid(format!("block {} of {}", block.0, self.blocks)));
        }
        self.expect_open()?;
        self.judged(self.read_blocks(blocks, take))
    }

    fn saves_memory(&self) -> bool {
        self.saves_memory
    }
}
