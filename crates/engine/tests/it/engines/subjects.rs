//! The engines, each with a store in memory that keeps what it saw.

use super::{BLOCKS, Subject};
use crate::plain::BYTES;
use crate::pyramid::{self, SLOT, Tables};
use crate::sequential_run::{self, Run};
use oblivio_crypto::{SealRoot, Sealer, SeededEntropy, VolumeId};
use oblivio_engine::linear::Linear;
use oblivio_engine::memory::{MemoryBuckets, MemoryEvent};
use oblivio_engine::pyramid::{PyramidConfig, PyramidKeys, PyramidOram};
use oblivio_engine::sequential::SequentialConfig;
use oblivio_engine::tree::{Eviction, TreeConfig, TreeKeys, TreeOram};
use oblivio_engine::{Action, BlockAnswer, BlockOp, EngineError, Result, carry_out};

/// What a store of buckets saw: how many paths, and the buckets of scheduled ones, which are those
/// that are written.
fn buckets_seen(store: &MemoryBuckets) -> Vec<u64> {
    let numbers = |seen: &MemoryEvent| match seen {
        MemoryEvent::Read(leaves, _) => vec![0, leaves.len() as u64],
        MemoryEvent::Write(buckets) => buckets.iter().map(|bucket| bucket.0).collect(),
    };
    store.trace.iter().flat_map(numbers).collect()
}

/// Every block in a bucket of its own; all are read and written each time.
pub struct LinearOfTests {
    engine: Linear,
    store: MemoryBuckets,
}

fn linear() -> Linear {
    let sealer = Sealer::new(SealRoot::from_seed(1), Box::new(SeededEntropy::new(1)));
    Linear::new(BYTES, BLOCKS, VolumeId([1; 16]), sealer)
}

impl Subject for LinearOfTests {
    fn new() -> Self {
        Self { engine: linear(), store: MemoryBuckets::traced() }
    }

    fn serve(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockAnswer>> {
        self.store.access(&mut self.engine, ops)
    }

    fn again(&mut self) -> usize {
        let state = self.engine.state();
        self.engine = linear();
        self.engine.restore(&state);
        state.len()
    }

    fn seen(&self) -> Vec<u64> {
        buckets_seen(&self.store)
    }

    fn stored(&mut self) -> Vec<&mut [u8]> {
        self.store.buckets.values_mut().map(Vec::as_mut_slice).collect()
    }
}

pub struct TreeOfTests {
    engine: TreeOram,
    store: MemoryBuckets,
}

fn tree() -> TreeOram {
    let eviction = Eviction::Scheduled { every: 3 };
    let config = TreeConfig { eviction, cache_bytes: 0, ..TreeConfig::new(BYTES, BLOCKS) };
    TreeOram::new(config, BLOCKS, TreeKeys::from_seed(5)).expect("a sound config")
}

impl Subject for TreeOfTests {
    fn new() -> Self {
        Self { engine: tree(), store: MemoryBuckets::traced() }
    }

    fn serve(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockAnswer>> {
        self.store.access(&mut self.engine, ops)
    }

    fn again(&mut self) -> usize {
        let mut flush = self.engine.begin_flush().expect("idle");
        carry_out(&mut flush, &mut self.engine, &mut self.store).expect("nothing was changed");
        let mut state = Vec::new();
        self.engine.checkpoint(&mut state);
        self.engine = tree();
        self.engine.restore(&state).expect("what was written");
        state.len()
    }

    fn seen(&self) -> Vec<u64> {
        buckets_seen(&self.store)
    }

    fn stored(&mut self) -> Vec<&mut [u8]> {
        self.store.buckets.values_mut().map(Vec::as_mut_slice).collect()
    }
}

pub struct PyramidOfTests {
    engine: PyramidOram,
    store: Tables,
    sessions: u64,
}

fn pyramid(session: u64) -> PyramidOram {
    let config = PyramidConfig::new(BYTES, BLOCKS, BYTES << 4);
    // The keys are the volume's. Randomness differs from session to session.
    PyramidOram::new(config, PyramidKeys::from_seed(1).with_entropy(session)).expect("sound")
}

impl Subject for PyramidOfTests {
    fn new() -> Self {
        Self { engine: pyramid(0), store: Tables::default(), sessions: 0 }
    }

    fn serve(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockAnswer>> {
        self.engine.access(&mut self.store, ops)
    }

    fn again(&mut self) -> usize {
        let mut state = Vec::new();
        self.engine.checkpoint(&mut state).expect("no round is under way");
        self.sessions += 1;
        self.engine = pyramid(self.sessions);
        self.engine.restore(&state).expect("what was written");
        state.len()
    }

    fn seen(&self) -> Vec<u64> {
        let (events, merges) = pyramid::sizes(&self.store.trace);
        let merges = merges.into_iter().flat_map(|(slots, read)| [slots, read as u64]);
        [events as u64].into_iter().chain(merges).collect()
    }

    fn stored(&mut self) -> Vec<&mut [u8]> {
        self.store.stored.values_mut().flat_map(|table| table.chunks_mut(SLOT as usize)).collect()
    }
}

/// Who sees it sees writes only, so a read comes with a write of nothing.
pub struct SequentialOfTests(Run);

impl SequentialOfTests {
    fn write(&mut self, op: &BlockOp, content: Option<Vec<u8>>) -> Result<()> {
        self.0.log.push(Some((op.id, content.clone())));
        self.0.disk.write(&mut self.0.engine, op.id, content)
    }

    fn one(&mut self, op: &BlockOp) -> Result<BlockAnswer> {
        let run = &mut self.0;
        match &op.action {
            Action::Remove => self.write(op, None)?,
            Action::Read => {
                run.log.push(None);
                run.engine.pad()?;
                run.disk.flush_if_due(&mut run.engine)?;
                let outcome = run.disk.read(&mut run.engine, vec![op.id])?.remove(0);
                return outcome.map_err(|_| EngineError::Lost(op.id));
            }
            action => {
                let before = run.disk.read(&mut run.engine, vec![op.id])?.remove(0);
                let before = before.map_err(|_| EngineError::Lost(op.id))?;
                let mut content = before.unwrap_or_else(|| vec![0; BYTES]);
                action.write_to(&mut content);
                self.write(op, Some(content))?;
            }
        }
        Ok(None)
    }
}

impl Subject for SequentialOfTests {
    fn new() -> Self {
        let config = sequential_run::config(BLOCKS, 3, 2, 3, 120);
        let config = SequentialConfig { cached_nodes: 0, cached_leaves: 0, ..config };
        Self(Run::new(SequentialConfig { block_bytes: BYTES, ..config }))
    }

    fn serve(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockAnswer>> {
        ops.iter().map(|op| self.one(op)).collect()
    }

    fn again(&mut self) -> usize {
        let state = self.0.engine.state().expect("idle");
        self.0.restore(&state, None);
        state.len()
    }

    fn seen(&self) -> Vec<u64> {
        self.0.disk.trace.iter().flat_map(|extent| [extent.offset, extent.bytes]).collect()
    }

    fn stored(&mut self) -> Vec<&mut [u8]> {
        // Its sectors.
        self.0.disk.bytes.chunks_mut(128).collect()
    }
}
