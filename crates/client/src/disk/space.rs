//! The blocks of a disk, as a [`Disk`](oblivio_volume::disk::Disk) wants them.
//!
//! Changes wait in memory until a flush, or until there are many; then they are asked for together.
//! Reads go beside them, from several threads at once: a server may be far.

use super::change::{BlockChange, WaitingChanges};
use super::hold::DiskHold;
use super::names::{REGIONS, change, claim, data, said};
use super::regions::Regions;
use crate::client::Client;
use oblivio_engine::pyramid::share::{Answer, Ask};
use oblivio_engine::{Action, BlockId, BlockOp, BlockOutcome, Lost};
use oblivio_volume::disk::size_in;
use oblivio_volume::{BlockReader, BlockSpace, Error, LostBytes, Result, TakeBlock};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Asks that are in flight together.
const TOGETHER: usize = 256;
/// Threads that read. Each waits for a round trip to the server.
const READERS: usize = 16;
/// Bytes of changes that wait at most, and at least as many blocks as are asked for together.
const WAITING_BYTES: usize = 4 << 20;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the disk and its readers share.
pub struct DiskSpace {
    client: Client,
    hold: DiskHold,
    waiting: Mutex<WaitingChanges>,
    regions: Mutex<Regions>,
    /// One thread at a time sends changes: those of a block stay in order.
    sending: Mutex<()>,
    root: Vec<u8>,
    progress: Arc<AtomicU64>,
}

impl DiskSpace {
    pub fn new(
        client: Client,
        hold: DiskHold,
        root: Vec<u8>,
        progress: Arc<AtomicU64>,
    ) -> Result<Self> {
        let block_bytes = client.block_bytes();
        let blocks = size_in(&root)?.unwrap_or(0).div_ceil(block_bytes as u64);
        let regions = Mutex::new(Regions::new(blocks, block_bytes));
        let (waiting, sending) = (Mutex::default(), Mutex::default());
        Ok(Self { client, hold, waiting, regions, sending, root, progress })
    }

    /// Learns which regions were ever written.
    pub fn learn_regions(&self) -> Result<()> {
        let answers = self.carry_out(&[vec![Ask::read(REGIONS)]])?;
        match answers.into_iter().next() {
            Some(Ok(Answer { content: Some(bits), .. })) => lock(&self.regions).set(bits),
            // Then anything may have been written: each discarded block is asked for.
            Some(Err(Lost)) => lock(&self.regions).set(vec![0xff; self.client.block_bytes()]),
            _ => {}
        }
        Ok(())
    }

    pub fn close(&self) -> Result<()> {
        self.client.close()
    }

    /// Carries out single asks.
    fn carry_out(&self, all: &[Vec<Ask>]) -> Result<Vec<std::result::Result<Answer, Lost>>> {
        let carried = self.hold.carry_out(&self.client, all)?;
        self.progress.fetch_add(1, Ordering::Relaxed);
        let mut answers = Vec::with_capacity(carried.len());
        for one in carried {
            match one {
                Ok(all) => answers.extend(all.into_iter().map(Ok)),
                Err(_) => answers.push(Err(Lost)),
            }
        }
        Ok(answers)
    }

    /// Sends all changes that wait. What is answered stands in a batch, which is durable.
    fn send(&self) -> Result<()> {
        let _sending = lock(&self.sending);
        // A flush must fail once another computer has the disk.
        self.hold.expect()?;
        loop {
            let mut asks = lock(&self.waiting).leave(TOGETHER);
            if asks.is_empty() {
                return Ok(());
            }
            // Always, so that it does not show whether something new was written. It comes first,
            // and a session's asks are carried out in order: no data lies outside of the regions.
            let regions = Action::Write(lock(&self.regions).bits());
            asks.insert(0, vec![change(REGIONS, regions)]);
            let sent = self.carry_out(&asks);
            lock(&self.waiting).left(sent.is_ok());
            // A part of a lost block is not written, and does not wait any more.
            let lost = sent?.iter().position(std::result::Result::is_err);
            if let Some(ask) = lost.and_then(|at| asks.get(at)?.first()) {
                return Err(LostBytes::all(said(ask.name)).into());
            }
        }
    }

    /// Reads blocks. It sees what was changed before the call.
    fn read(&self, blocks: &[BlockId]) -> Result<Vec<BlockOutcome>> {
        // Before anything is asked: what is sent in between is then in the answer or here.
        let waiting = lock(&self.waiting);
        let changes: Vec<Vec<BlockChange>> = blocks.iter().map(|id| waiting.of(id.0)).collect();
        drop(waiting);
        let known = |changes: &[BlockChange]| changes.iter().any(BlockChange::is_whole);
        let missing = blocks.iter().zip(&changes).filter(|(_, changes)| !known(changes));
        let asks: Vec<_> = missing.map(|(id, _)| vec![Ask::read(data(id.0))]).collect();
        let mut found = Vec::with_capacity(asks.len());
        for part in asks.chunks(TOGETHER) {
            found.extend(self.carry_out(part)?);
        }
        let mut found = found.into_iter();
        let block = |changes: &Vec<BlockChange>| {
            let stored = match known(changes) {
                true => Ok(None),
                false => found.next().map_or(Ok(None), |answer| Ok(answer?.content)),
            };
            Ok(changes.iter().fold(stored?, |block, change| change.after(block)))
        };
        Ok(changes.iter().map(block).collect())
    }
}

impl BlockReader for DiskSpace {
    fn read(&self, blocks: &[BlockId], take: &mut TakeBlock<'_>) -> Result<()> {
        let found = DiskSpace::read(self, blocks)?;
        for (at, block) in found.iter().enumerate() {
            take(at, block.as_ref().map(Option::as_deref).map_err(|lost| *lost));
        }
        Ok(())
    }

    fn threads(&self) -> Option<usize> {
        Some(READERS)
    }
}

/// The space for the one that changes it.
pub struct Blocks {
    space: Arc<DiskSpace>,
    root: Vec<u8>,
}

impl Blocks {
    pub fn new(space: Arc<DiskSpace>) -> Self {
        let root = space.root.clone();
        Self { space, root }
    }

    fn most_waiting(&self) -> usize {
        (WAITING_BYTES / self.block_bytes()).max(TOGETHER)
    }
}

impl BlockSpace for Blocks {
    oblivio_volume::lacks!(resizing, padding, idling, ending);

    fn block_bytes(&self) -> usize {
        self.space.client.block_bytes()
    }

    fn capacity_blocks(&self) -> u64 {
        self.space.client.blocks().1
    }

    fn reserve(&mut self, blocks: u64) -> Result<()> {
        match blocks <= self.capacity_blocks() {
            true => Ok(()),
            false => Err(Error::Full("the disk is larger than its volume".into())),
        }
    }

    fn access_each(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        if ops.iter().all(|op| op.action == Action::Read) {
            let ids: Vec<BlockId> = ops.iter().map(|op| op.id).collect();
            return self.space.read(&ids);
        }
        let mut one = |op: BlockOp| match op.action {
            Action::Read => {
                self.space.read(&[op.id]).map(|mut found| found.pop().unwrap_or(Ok(None)))
            }
            _ => self.defer(vec![op]).map(|()| Ok(None)),
        };
        ops.into_iter().map(&mut one).collect()
    }

    fn defer(&mut self, ops: Vec<BlockOp>) -> Result<()> {
        let (blocks, block_bytes) = (self.capacity_blocks(), self.block_bytes());
        if ops.iter().any(|op| op.id.0 >= blocks || op.action.end() > block_bytes) {
            return Err(Error::Invalid("a block that the volume does not have".into()));
        }
        for BlockOp { id: BlockId(block), action } in ops {
            let Some(change) = BlockChange::of(action, block_bytes) else { continue };
            let waiting = lock(&self.space.waiting);
            let full = waiting.len() >= self.most_waiting() && !waiting.has(block);
            drop(waiting);
            // First: a change that was refused must not be made later.
            if full {
                self.space.send()?;
            }
            if change != BlockChange::Remove {
                lock(&self.space.regions).note(block);
            }
            lock(&self.space.waiting).add(block, change);
        }
        Ok(())
    }

    fn discard(&mut self, _: &[u64]) -> Result<()> {
        Ok(())
    }

    fn erases_cheaply(&self) -> bool {
        false
    }

    fn erase(&mut self, ids: &[u64]) -> Result<()> {
        let regions = lock(&self.space.regions);
        let written: Vec<u64> = ids.iter().copied().filter(|id| regions.has(*id)).collect();
        drop(regions);
        let op = |id| BlockOp { id: BlockId(id), action: Action::Remove };
        self.defer(written.into_iter().map(op).collect())
    }

    fn root(&self) -> &[u8] {
        &self.root
    }

    fn set_root(&mut self, root: &[u8]) {
        self.root = root.to_vec();
    }

    fn commit(&mut self) -> Result<()> {
        // Only a disk that is being made has another root than the stored one.
        if self.root != self.space.root {
            return claim(&self.space.client, &self.root);
        }
        self.space.send()
    }

    fn exists(&self, id: u64) -> bool {
        lock(&self.space.regions).has(id)
    }

    fn present(&self, ids: Range<u64>) -> Result<Vec<bool>> {
        let regions = lock(&self.space.regions);
        Ok(ids.map(|id| regions.has(id)).collect())
    }

    fn cache_budget(&self) -> usize {
        0
    }

    fn reader(&self) -> Option<Arc<dyn BlockReader>> {
        Some(Arc::clone(&self.space) as _)
    }
}
