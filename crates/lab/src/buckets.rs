//! A cheap driver: buckets in plain memory, found by index.

use anyhow::Result;
use oblivio_engine::{BlockAnswer, BlockOp, BucketId, Engine, Leaf, SealedBucket, Step, TreeId};
use std::collections::HashMap;

/// Heap indices below this are looked up in a table, others in a map.
const DENSE: u64 = 1 << 26;
const NOWHERE: u32 = u32::MAX;

/// The buckets of one tree.
#[derive(Default)]
struct TreeBuckets {
    dense: Vec<u32>,
    sparse: HashMap<u64, u32>,
    stored: Vec<Vec<u8>>,
}

impl TreeBuckets {
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
    trees: Vec<TreeBuckets>,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Buckets read.
    pub reads: u64,
    /// Buckets written.
    pub writes: u64,
    steps: Option<Vec<(Vec<BucketId>, bool)>>,
}

impl LabBuckets {
    /// No buckets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Carries out all steps of the engine; `see` gets the leaves of every read.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn run(
        &mut self,
        engine: &mut dyn Engine,
        mut see: impl FnMut(TreeId, &[Leaf]),
    ) -> Result<()> {
        loop {
            match engine.step()? {
                Step::Done => return Ok(()),
                Step::Read { tree, shown, buckets, lens, into, .. } => {
                    see(tree, shown);
                    self.read(tree, buckets, lens, into);
                }
                Step::Write { tree, buckets, from } => self.write(tree, buckets, from),
            }
        }
    }

    /// Serves one batch.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn access(
        &mut self,
        engine: &mut dyn Engine,
        ops: Vec<BlockOp>,
    ) -> Result<Vec<BlockAnswer>> {
        engine.submit(ops)?;
        self.run(engine, |_, _| {})?;
        Ok(engine.take_answers())
    }

    /// The stored bytes of a bucket, to tamper with.
    pub fn bucket_mut(&mut self, tree: TreeId, bucket: BucketId) -> Option<&mut [u8]> {
        let tree = self.trees.get_mut(tree.0 as usize)?;
        let slot = tree.find(bucket.0)?;
        Some(&mut tree.stored[slot as usize])
    }

    /// Bytes of all buckets that were ever stored.
    pub fn bytes_stored(&self) -> u64 {
        self.trees.iter().flat_map(|tree| &tree.stored).map(|bytes| bytes.len() as u64).sum()
    }

    /// From now on keeps the buckets of each step.
    pub fn keep_steps(&mut self) {
        self.steps = Some(Vec::new());
    }

    /// The steps kept: their buckets, and whether they were written.
    pub fn take_steps(&mut self) -> Vec<(Vec<BucketId>, bool)> {
        self.steps.take().unwrap_or_default()
    }

    /// Starts counting again.
    pub fn reset_counts(&mut self) {
        (self.bytes_read, self.bytes_written, self.reads, self.writes) = (0, 0, 0, 0);
    }

    fn tree(&mut self, tree: TreeId) -> &mut TreeBuckets {
        let at = tree.0 as usize;
        if at >= self.trees.len() {
            self.trees.resize_with(at + 1, TreeBuckets::default);
        }
        &mut self.trees[at]
    }

    /// Reads buckets of these lengths into equal parts of `into`.
    pub fn read(&mut self, tree: TreeId, buckets: &[BucketId], lens: &[u32], into: &mut [u8]) {
        // Memory may serve a whole round, and unstored buckets are not read.
        if buckets.is_empty() {
            return;
        }
        self.bytes_read += lens.iter().map(|&len| u64::from(len)).sum::<u64>();
        self.reads += buckets.len() as u64;
        if let Some(steps) = &mut self.steps {
            steps.push((buckets.to_vec(), false));
        }
        let stride = into.len() / buckets.len();
        let tree = self.tree(tree);
        let parts = into.chunks_mut(stride).zip(lens).map(|(part, &len)| &mut part[..len as usize]);
        for (bucket, bytes) in buckets.iter().zip(parts) {
            match tree.find(bucket.0) {
                Some(slot) => bytes.copy_from_slice(&tree.stored[slot as usize][..bytes.len()]),
                // Zeros fail to open at every place.
                None => bytes.fill(0),
            }
        }
    }

    /// Writes buckets.
    pub fn write(&mut self, tree: TreeId, buckets: &[BucketId], from: &[SealedBucket]) {
        if buckets.is_empty() {
            return;
        }
        self.bytes_written += from.iter().map(|bytes| bytes.len() as u64).sum::<u64>();
        self.writes += buckets.len() as u64;
        if let Some(steps) = &mut self.steps {
            steps.push((buckets.to_vec(), true));
        }
        let tree = self.tree(tree);
        for (bucket, bytes) in buckets.iter().zip(from) {
            let slot = tree.slot_for(bucket.0) as usize;
            tree.stored[slot].clear();
            tree.stored[slot].extend_from_slice(bytes);
        }
    }
}
