//! Blocks for the file layer over an engine of any shape, with counters for everything.
//!
//! A volume has one shape of bucket and schedule. Here the shape is a parameter, every bucket goes
//! to the store (no cached top of the tree, no commits), and a store call is a round trip.

use crate::buckets::LabBuckets;
use anyhow::Result;
use oblivio_engine::tree::{TreeConfig, TreeKeys, TreeOram};
use oblivio_engine::{Action, BlockAnswer, BlockId, BlockOp, BlockOutcome, carry_out};
use oblivio_volume::{BlockSpace, Error};
use std::sync::{Arc, Mutex};

/// The smallest tree.
const LEAST_BLOCKS: u64 = 64;
/// Limits of a volume's batch (`MOST_BATCH`, `MOST_OPS`).
const MOST_BATCH: usize = 8 << 20;
const MOST_OPS: usize = 256;

/// A far store: seconds of latency per call, and bytes a second of its link (1 Gbit/s).
pub const LATENCY: f64 = 0.05;
pub const LINK: f64 = 125e6;

/// Seconds that a far store takes for these calls and bytes, one call after the other.
pub fn far(calls: u64, bytes: u64) -> f64 {
    calls as f64 * LATENCY + bytes as f64 / LINK
}

/// How many operations are served together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batches {
    /// This many at most.
    Most(usize),
    /// As many as in a volume.
    Volume,
}

/// The counters so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accesses to blocks.
    pub accesses: u64,
    /// Paths shown, scheduled ones too.
    pub paths: u64,
    /// Store calls that read, each a round trip.
    pub reads: u64,
    /// Store calls that write.
    pub writes: u64,
    /// Buckets read.
    pub buckets_read: u64,
    /// Buckets written.
    pub buckets_written: u64,
    /// Bytes both ways.
    pub bytes: u64,
    /// Blocks that exist.
    pub live: u64,
    /// Level of the leaves.
    pub depth: u32,
    /// The stash peak in blocks.
    pub stash: u64,
}

impl Counts {
    /// Buckets of the tree.
    pub fn buckets(&self) -> u64 {
        (2 << self.depth) - 1
    }

    /// Seconds that a far store takes for this.
    pub fn far(&self) -> f64 {
        far(self.reads + self.writes, self.bytes)
    }
}

/// A shared view of the counters while the file layer owns the space.
#[derive(Clone, Default)]
pub struct Meter(Arc<Mutex<Counts>>);

impl Meter {
    /// The counters so far.
    pub fn now(&self) -> Counts {
        self.0.lock().map_or_else(|poisoned| *poisoned.into_inner(), |counts| *counts)
    }

    fn set(&self, counts: Counts) {
        match self.0.lock() {
            Ok(mut now) => *now = counts,
            Err(poisoned) => *poisoned.into_inner() = counts,
        }
    }
}

/// The block space.
pub struct LabSpace {
    engine: TreeOram,
    store: LabBuckets,
    batches: Batches,
    root: Vec<u8>,
    counts: Counts,
    meter: Meter,
}

impl LabSpace {
    /// An empty space; the tree follows its content.
    ///
    /// # Errors
    /// `Invalid` for an impossible shape.
    pub fn new(config: TreeConfig, batches: Batches) -> Result<(Self, Meter)> {
        let config = TreeConfig { cache_bytes: 0, ..config };
        let engine = TreeOram::new(config, LEAST_BLOCKS, TreeKeys::from_seed(5))?;
        let meter = Meter::default();
        let space = Self {
            engine,
            store: LabBuckets::showing(),
            batches,
            root: Vec::new(),
            counts: Counts::default(),
            meter: meter.clone(),
        };
        Ok((space, meter))
    }

    fn batch(&self) -> usize {
        match self.batches {
            Batches::Most(most) => most.max(1),
            Batches::Volume => {
                let bucket = self.engine.config().geometry().bucket_bytes();
                let path = 2 * (self.engine.depth().0 as usize + 1) * bucket;
                (MOST_BATCH / path).clamp(1, MOST_OPS)
            }
        }
    }

    fn serve(&mut self, ops: Vec<BlockOp>) -> oblivio_engine::Result<Vec<BlockAnswer>> {
        let writes = |op: &&BlockOp| !matches!(op.action, Action::Read | Action::Remove);
        let fresh = ops.iter().filter(writes).filter(|op| !self.engine.is_live(op.id)).count();
        let live = self.engine.live_blocks() + fresh as u64;
        if live > self.engine.size_class() {
            let class = self.engine.config().size_class_after(live, self.engine.size_class());
            self.engine.set_size_class(class.min(self.engine.config().capacity))?;
        }
        self.counts.accesses += ops.len() as u64;
        self.store.shown.clear();
        let mut batch = self.engine.begin_batch(ops)?;
        carry_out(&mut batch, &mut self.engine, &mut self.store)?;
        self.counts.paths += self.store.shown.len() as u64;
        self.engine.committed();
        let (engine, store) = (&self.engine, &self.store);
        self.counts = Counts {
            reads: store.read_calls,
            writes: store.write_calls,
            buckets_read: store.reads,
            buckets_written: store.writes,
            bytes: store.bytes_read + store.bytes_written,
            live: engine.live_blocks(),
            depth: engine.depth().0,
            stash: engine.meters().stash_peak,
            ..self.counts
        };
        self.meter.set(self.counts);
        batch.into_answers()
    }
}

fn closed(error: oblivio_engine::EngineError) -> Error {
    Error::Closed(error.to_string())
}

impl BlockSpace for LabSpace {
    oblivio_volume::lacks!(resizing, absence, padding, idling, ending, readers);

    fn defer(&mut self, ops: Vec<BlockOp>) -> oblivio_volume::Result<()> {
        self.access(ops).map(drop)
    }

    fn erase(&mut self, ids: &[u64]) -> oblivio_volume::Result<()> {
        self.defer(oblivio_volume::block::removals(ids))
    }

    fn erases_cheaply(&self) -> bool {
        false
    }

    fn block_bytes(&self) -> usize {
        self.engine.config().block_bytes
    }

    fn capacity_blocks(&self) -> u64 {
        self.engine.config().capacity
    }

    fn reserve(&mut self, blocks: u64) -> oblivio_volume::Result<()> {
        if blocks <= self.engine.capacity() {
            return Ok(());
        }
        let blocks = blocks.next_power_of_two().min(self.capacity_blocks());
        self.engine.grow(blocks).map_err(closed)
    }

    fn access_each(&mut self, ops: Vec<BlockOp>) -> oblivio_volume::Result<Vec<BlockOutcome>> {
        let mut answers = Vec::with_capacity(ops.len());
        let mut ops = ops.into_iter().peekable();
        while ops.peek().is_some() {
            let most = self.batch();
            answers.extend(self.serve(ops.by_ref().take(most).collect()).map_err(closed)?);
        }
        Ok(answers.into_iter().map(Ok).collect())
    }

    fn root(&self) -> &[u8] {
        &self.root
    }

    fn set_root(&mut self, root: &[u8]) {
        self.root = root.to_vec();
    }

    fn commit(&mut self) -> oblivio_volume::Result<()> {
        Ok(())
    }

    fn discard(&mut self, ids: &[u64]) -> oblivio_volume::Result<()> {
        let ids: Vec<_> = ids.iter().map(|&id| BlockId(id)).collect();
        self.engine.discard(&ids).map_err(closed)?;
        self.counts.live = self.engine.live_blocks();
        self.meter.set(self.counts);
        Ok(())
    }

    fn cache_budget(&self) -> usize {
        1 << 20
    }
}
