//! A driver over plain memory: it carries out an engine's steps on maps of buckets and keeps the
//! trace. For tests, simulation and benchmarks; volumes have their own driver.

use crate::{BlockAnswer, BlockOp, BucketId, Engine, Leaf, Result, Step, TreeId};
use std::collections::BTreeMap;

/// One event that the store saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The engine showed these paths and read these buckets.
    Read(TreeId, Vec<Leaf>, Vec<BucketId>),
    /// The engine wrote these buckets.
    Write(TreeId, Vec<BucketId>),
}

/// Buckets in memory, and the trace of accesses to them.
#[derive(Clone, Default)]
pub struct MemoryBuckets {
    /// The sealed buckets.
    pub buckets: BTreeMap<(TreeId, BucketId), Vec<u8>>,
    /// The trace, if [`Self::keep_trace`] is set.
    pub trace: Vec<Seen>,
    /// Whether to keep the trace.
    pub keep_trace: bool,
}

impl MemoryBuckets {
    /// No buckets, with a trace.
    pub fn traced() -> Self {
        Self { keep_trace: true, ..Self::default() }
    }

    /// Carries out the engine's steps until it is done.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn run(&mut self, engine: &mut dyn Engine) -> Result<()> {
        loop {
            match engine.step()? {
                Step::Done => return Ok(()),
                Step::Read { tree, shown, buckets, lens, into, .. } => {
                    let stride = into.len() / buckets.len().max(1);
                    let parts = into.chunks_mut(stride.max(1)).zip(lens);
                    let parts = parts.map(|(part, &len)| &mut part[..len as usize]);
                    for (bucket, bytes) in buckets.iter().zip(parts) {
                        match self.buckets.get(&(tree, *bucket)) {
                            Some(stored) if stored.len() == bytes.len() => {
                                bytes.copy_from_slice(stored);
                            }
                            // A dropped or cut bucket reads as zeros, which open nowhere.
                            _ => bytes.fill(0),
                        }
                    }
                    if self.keep_trace {
                        self.trace.push(Seen::Read(tree, shown.to_vec(), buckets.to_vec()));
                    }
                }
                Step::Write { tree, buckets, from } => {
                    for (bucket, bytes) in buckets.iter().zip(from) {
                        self.buckets.insert((tree, *bucket), bytes.to_vec());
                    }
                    if self.keep_trace {
                        self.trace.push(Seen::Write(tree, buckets.to_vec()));
                    }
                }
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
        self.run(engine)?;
        Ok(engine.take_answers())
    }
}
