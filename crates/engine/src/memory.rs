//! Buckets in plain memory, with the trace of accesses to them. For tests, simulation and
//! benchmarks.

use crate::{
    BlockAnswer, BlockOp, BucketId, Carrier, EngineError, Extent, Job, Leaf, Read, Result, Write,
    carry_out,
};
use std::collections::BTreeMap;

/// One event that the store saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryEvent {
    /// The engine showed these paths and read these buckets.
    Read(Vec<Leaf>, Vec<BucketId>),
    /// The engine wrote these buckets.
    Write(Vec<BucketId>),
}

/// Buckets in memory, and the trace of accesses to them.
#[derive(Clone, Default)]
pub struct MemoryBuckets {
    /// The sealed buckets.
    pub buckets: BTreeMap<BucketId, Vec<u8>>,
    /// The trace, if [`Self::keep_trace`] is set.
    pub trace: Vec<MemoryEvent>,
    /// Whether to keep the trace.
    pub keep_trace: bool,
}

/// An engine that serves batches of reads and writes alike.
pub trait Batches: Sized {
    /// A batch under way.
    type Batch: Job<Engine = Self>;

    /// Begins a batch.
    ///
    /// # Errors
    /// `Invalid` for operations that make no sense.
    fn begin(&mut self, ops: Vec<BlockOp>) -> Result<Self::Batch>;

    /// The answers of a finished batch.
    ///
    /// # Errors
    /// `Lost` if one of the blocks is.
    fn answers(batch: Self::Batch) -> Result<Vec<BlockAnswer>>;

    /// Blocks addressable now.
    fn blocks(&self) -> u64;
}

impl MemoryBuckets {
    /// No buckets, with a trace.
    pub fn traced() -> Self {
        Self { keep_trace: true, ..Self::default() }
    }

    /// Serves one batch.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn access<E: Batches>(
        &mut self,
        engine: &mut E,
        ops: Vec<BlockOp>,
    ) -> Result<Vec<BlockAnswer>> {
        let mut batch = engine.begin(ops)?;
        carry_out(&mut batch, engine, self)?;
        E::answers(batch)
    }
}

impl Carrier for MemoryBuckets {
    type Error = EngineError;

    fn read(&mut self, mut read: Read<'_>) -> Result<()> {
        if self.keep_trace {
            self.trace.push(MemoryEvent::Read(read.shown.to_vec(), numbers(read.extents)));
        }
        for (extent, part) in read.parts() {
            match self.buckets.get(&BucketId(extent.offset)) {
                Some(stored) if stored.len() == part.len() => part.copy_from_slice(stored),
                // A dropped or cut bucket reads as zeros, which open nowhere.
                _ => part.fill(0),
            }
        }
        Ok(())
    }

    fn write(&mut self, write: Write<'_>) -> Result<()> {
        for piece in write.parts() {
            self.buckets.insert(BucketId(piece.extent.offset), piece.data.to_vec());
        }
        if self.keep_trace {
            self.trace.push(MemoryEvent::Write(numbers(write.extents)));
        }
        Ok(())
    }
}

fn numbers(extents: &[Extent]) -> Vec<BucketId> {
    extents.iter().map(|extent| BucketId(extent.offset)).collect()
}
