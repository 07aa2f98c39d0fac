//! A sequential engine, its disk, its volume's log, and its expected contents.

pub mod model;

use oblivio_engine::sequential::memory::MemoryDisk;
use oblivio_engine::sequential::{Flush, Sequential, SequentialConfig, SequentialKeys};
use oblivio_engine::{BlockId, BlockOutcome};
use oblivio_testkit::Dice;
use std::collections::BTreeMap;

pub const BYTES: usize = 16;
pub const SEED: u64 = 3;

pub type Write = Option<(BlockId, Option<Vec<u8>>)>;

pub fn config(
    blocks: u64,
    bucket: u64,
    queue: u64,
    fan_out: u64,
    last_ratio: u64,
) -> SequentialConfig {
    SequentialConfig {
        block_bytes: BYTES,
        blocks,
        bucket_blocks: bucket,
        queue_buckets: queue,
        fan_out,
        last_ratio,
        time_pages: 0,
        sector_bytes: 128,
        cached_nodes: 4,
        cached_leaves: 2,
    }
}

/// The same with the access times in the ORAM; each flush writes `time_pages` pages of them.
pub fn paged(config: SequentialConfig, time_pages: u64) -> SequentialConfig {
    SequentialConfig { time_pages, ..config }
}

/// Puts a write into an engine's queue, and notes what is expected from then on.
pub fn enqueue(engine: &mut Sequential, newest: &mut BTreeMap<BlockId, Vec<u8>>, write: &Write) {
    match write {
        None => engine.pad().expect("no flush is due"),
        Some((block, Some(content))) => {
            engine.write(*block, content.clone()).expect("no flush is due");
            newest.insert(*block, content.clone());
        }
        Some((block, None)) => {
            engine.discard(*block).expect("no flush is due");
            newest.remove(block);
        }
    }
}

/// An engine, its disk, and its expected contents.
pub struct Run {
    pub engine: Sequential,
    pub disk: MemoryDisk,
    pub newest: BTreeMap<BlockId, Vec<u8>>,
    /// All writes so far: the volume's log, never cut.
    pub log: Vec<Write>,
    pub sessions: u64,
}

impl Run {
    pub fn new(config: SequentialConfig) -> Self {
        let engine = Sequential::new(config, SequentialKeys::from_seed(SEED, 0));
        let engine = engine.expect("sound parameters");
        let (disk, newest) = (MemoryDisk::new(&engine), BTreeMap::new());
        Self { engine, disk, newest, log: Vec::new(), sessions: 0 }
    }

    /// A content that no other write has.
    pub fn content(&self) -> Vec<u8> {
        let mut content = vec![0xa5; self.engine.config().block_bytes];
        content[..8].copy_from_slice(&(self.log.len() as u64 + 1).to_le_bytes());
        content
    }

    /// Puts it into the queue and the log.
    pub fn enqueue(&mut self, write: Write) {
        enqueue(&mut self.engine, &mut self.newest, &write);
        self.log.push(write);
    }

    pub fn apply(&mut self, write: Write) {
        self.enqueue(write);
        self.disk.flush_if_due(&mut self.engine).expect("nothing was tampered with");
    }

    pub fn write(&mut self, block: u64) {
        let content = self.content();
        self.apply(Some((BlockId(block), Some(content))));
    }

    pub fn blocks(&self) -> Vec<BlockId> {
        (0..self.engine.config().blocks).map(BlockId).collect()
    }

    pub fn expected(&self, blocks: &[BlockId]) -> Vec<BlockOutcome> {
        blocks.iter().map(|block| Ok(self.newest.get(block).cloned())).collect()
    }

    pub fn check(&mut self, blocks: Vec<BlockId>) {
        let expected = self.expected(&blocks);
        let read = self.disk.read(&mut self.engine, blocks.clone());
        assert_eq!(read.expect("nothing was tampered with"), expected, "{blocks:?}");
    }

    pub fn check_all(&mut self) {
        self.check(self.blocks());
    }

    /// Opens the state in a new session and replays the log's lost writes.
    pub fn restore(&mut self, state: &[u8], times: Option<&[u8]>) {
        self.sessions += 1;
        let keys = SequentialKeys::from_seed(SEED, self.sessions);
        let config = *self.engine.config();
        let rebuild = times.is_none();
        self.engine = Sequential::restore(config, keys, state, times).expect("its own state");
        if rebuild && self.engine.flushes() > Flush(0) {
            self.disk.rebuild(&mut self.engine).expect("nothing was tampered with");
        }
        for number in self.engine.lost_writes() {
            let write = self.log[number as usize].clone();
            self.engine.write_again(write).expect("it was lost");
        }
        for write in self.log.split_off(self.engine.writes() as usize) {
            self.apply(write);
        }
    }

    /// A write to any block. Some writes delete it, and some are no write at all.
    pub fn any_write(&self, dice: &mut Dice) -> Write {
        let block = BlockId(dice.below(self.engine.config().blocks));
        match dice.below(10) {
            0 => None,
            1 => Some((block, None)),
            _ => Some((block, Some(self.content()))),
        }
    }
}
