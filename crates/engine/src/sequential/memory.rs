//! A driver over plain memory that keeps the trace of writes. For tests, simulation and benchmarks;
//! volumes have their own driver.

use super::engine::Sequential;
use super::layout::Extent;
use super::read::ReadBatch;
use super::step::Step;
use crate::{BlockAnswer, BlockId, Result};

/// A disk in memory, and the trace of its writes.
#[derive(Clone)]
pub struct MemoryDisk {
    /// The stored bytes.
    pub bytes: Vec<u8>,
    /// The writes, in order.
    pub trace: Vec<Extent>,
}

impl MemoryDisk {
    /// A zeroed disk for this engine.
    pub fn new(engine: &Sequential) -> Self {
        Self { bytes: vec![0; engine.layout().bytes() as usize], trace: Vec::new() }
    }

    fn part(&mut self, extent: &Extent) -> &mut [u8] {
        &mut self.bytes[extent.offset as usize..extent.end() as usize]
    }

    /// Carries out one step. False when there was nothing to do.
    pub fn carry_out(&mut self, step: Step<'_>) -> bool {
        match step {
            Step::Read { extents, mut into } => {
                for extent in extents {
                    let (part, rest) = into.split_at_mut(extent.bytes as usize);
                    part.copy_from_slice(self.part(extent));
                    into = rest;
                }
            }
            Step::Write { extents, mut from } => {
                for extent in extents {
                    let (part, rest) = from.split_at(extent.bytes as usize);
                    self.part(extent).copy_from_slice(part);
                    from = rest;
                }
                self.trace.extend(extents);
            }
            Step::Work => {}
            Step::Done => return false,
        }
        true
    }

    /// Carries out the due flush, if there is one.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn flush_if_due(&mut self, engine: &mut Sequential) -> Result<()> {
        if engine.flush_due() {
            let mut flushing = engine.begin_flush()?;
            while self.carry_out(engine.flush_step(&mut flushing)?) {}
        }
        Ok(())
    }

    /// Writes a block, or discards it.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn write(
        &mut self,
        engine: &mut Sequential,
        block: BlockId,
        content: Option<Vec<u8>>,
    ) -> Result<()> {
        match content {
            Some(content) => engine.write(block, content)?,
            None => engine.discard(block)?,
        }
        self.flush_if_due(engine)
    }

    /// Reads these blocks.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn read(
        &mut self,
        engine: &mut Sequential,
        blocks: Vec<BlockId>,
    ) -> Result<Vec<BlockAnswer>> {
        let mut batch: ReadBatch = engine.begin_read(blocks)?;
        while self.carry_out(engine.read_step(&mut batch)?) {}
        Ok(batch.into_answers())
    }

    /// Rebuilds an engine's access times.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn rebuild(&mut self, engine: &mut Sequential) -> Result<()> {
        let mut rebuild = engine.begin_rebuild()?;
        while self.carry_out(engine.rebuild_step(&mut rebuild)?) {}
        Ok(())
    }
}
