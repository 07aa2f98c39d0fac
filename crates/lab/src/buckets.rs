//! Buckets in plain memory, found by index: cheap.

use anyhow::Result;
use oblivio_engine::memory::Batches;
use oblivio_engine::{
    BlockAnswer, BlockOp, BucketId, Carrier, EngineError, Extent, Leaf, Read, Write, carry_out,
};
use std::collections::HashMap;

/// Heap indices below this are looked up in a table, others in a map.
const DENSE: u64 = 1 << 26;
const NOWHERE: u32 = u32::MAX;

/// Buckets by their index.
#[derive(Default)]
struct Table {
    dense: Vec<u32>,
    sparse: HashMap<u64, u32>,
    stored: Vec<Vec<u8>>,
}

impl Table {
    fn find(&self, bucket: u64) -> Option<u32> {
        if bucket < DENSE {
            self.dense.get(bucket as usize).copied().filter(|&slot| slot != NOWHERE)
        } else {
            self.sparse.get(&bucket).copied()
        }
    }

    fn slot_for(&mut self, bucket: u64) -> u32 {
        if let Some(slot) = self.find(bucket) {
            return slot;
        }
        let slot = self.stored.len() as u32;
        self.stored.push(Vec::new());
        if bucket < DENSE {
            let at = bucket as usize;
            if at >= self.dense.len() {
                self.dense.resize((at + 1).next_power_of_two(), NOWHERE);
            }
            self.dense[at] = slot;
        } else {
            self.sparse.insert(bucket, slot);
        }
        slot
    }
}

/// Buckets in memory, and traffic counters.
#[derive(Default)]
pub struct LabBuckets {
    table: Table,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Buckets read.
    pub reads: u64,
    /// Buckets written.
    pub writes: u64,
    /// Steps that read anything.
    pub read_calls: u64,
    /// Steps that wrote anything.
    pub write_calls: u64,
    /// The leaves shown, of [`Self::showing`] ones.
    pub shown: Vec<Leaf>,
    keep_shown: bool,
    steps: Option<Steps>,
}

/// Steps of a run: what they touched, and whether they wrote.
pub type Steps = Vec<(Vec<Extent>, bool)>;

impl LabBuckets {
    /// No buckets.
    pub fn new() -> Self {
        Self::default()
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
        Ok(E::answers(batch)?)
    }

    /// The stored bytes of a bucket, to tamper with.
    pub fn bucket_mut(&mut self, bucket: BucketId) -> Option<&mut [u8]> {
        let slot = self.table.find(bucket.0)?;
        Some(&mut self.table.stored[slot as usize])
    }

    /// Bytes of all buckets that were ever stored.
    pub fn bytes_stored(&self) -> u64 {
        self.table.stored.iter().map(|bytes| bytes.len() as u64).sum()
    }

    /// No buckets, with the leaves shown.
    pub fn showing() -> Self {
        Self { keep_shown: true, ..Self::default() }
    }

    /// From now on keeps the buckets of each step.
    pub fn keep_steps(&mut self) {
        self.steps = Some(Vec::new());
    }

    /// The steps kept.
    pub fn take_steps(&mut self) -> Steps {
        self.steps.take().unwrap_or_default()
    }

    /// Starts counting again.
    pub fn reset_counts(&mut self) {
        (self.bytes_read, self.bytes_written, self.reads, self.writes) = (0, 0, 0, 0);
    }
}

impl Carrier for LabBuckets {
    type Error = EngineError;

    fn read(&mut self, mut read: Read<'_>) -> Result<(), EngineError> {
        if self.keep_shown {
            self.shown.extend_from_slice(read.shown);
        }
        // Memory may serve a whole round, and unstored buckets are not read.
        if read.extents.is_empty() {
            return Ok(());
        }
        self.bytes_read += read.extents.iter().map(|extent| extent.bytes).sum::<u64>();
        self.reads += read.extents.len() as u64;
        self.read_calls += 1;
        if let Some(steps) = &mut self.steps {
            steps.push((read.extents.to_vec(), false));
        }
        let table = &mut self.table;
        for (extent, part) in read.parts() {
            match table.find(extent.offset) {
                Some(slot) => part.copy_from_slice(&table.stored[slot as usize][..part.len()]),
                // Zeros fail to open at every place.
                None => part.fill(0),
            }
        }
        Ok(())
    }

    fn write(&mut self, write: Write<'_>) -> Result<(), EngineError> {
        if write.extents.is_empty() {
            return Ok(());
        }
        self.bytes_written += write.extents.iter().map(|extent| extent.bytes).sum::<u64>();
        self.writes += write.extents.len() as u64;
        self.write_calls += 1;
        if let Some(steps) = &mut self.steps {
            steps.push((write.extents.to_vec(), true));
        }
        let table = &mut self.table;
        for piece in write.parts() {
            let slot = table.slot_for(piece.extent.offset) as usize;
            table.stored[slot].clear();
            table.stored[slot].extend_from_slice(piece.data);
        }
        Ok(())
    }
}
