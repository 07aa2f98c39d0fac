//! A disk in plain memory that keeps the trace of writes. For tests, simulation and benchmarks.

use super::engine::Sequential;
use super::read::ReadBatch;
use crate::{BlockId, BlockOutcome, Carrier, EngineError, Extent, Read, Result, Write, carry_out};

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

    /// Carries out the due flush, if there is one.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn flush_if_due(&mut self, engine: &mut Sequential) -> Result<()> {
        if engine.flush_due() {
            let mut flushing = engine.begin_flush()?;
            carry_out(&mut flushing, engine, self)?;
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
    ) -> Result<Vec<BlockOutcome>> {
        let mut batch: ReadBatch = engine.begin_read(blocks)?;
        carry_out(&mut batch, engine, self)?;
        Ok(batch.into_answers())
    }

    /// Rebuilds an engine's access times.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn rebuild(&mut self, engine: &mut Sequential) -> Result<()> {
        carry_out(&mut engine.begin_rebuild()?, engine, self)
    }
}

impl Carrier for MemoryDisk {
    type Error = EngineError;

    fn read(&mut self, mut read: Read<'_>) -> Result<()> {
        for (extent, part) in read.parts() {
            part.copy_from_slice(self.part(&extent));
        }
        Ok(())
    }

    fn write(&mut self, write: Write<'_>) -> Result<()> {
        for piece in write.parts() {
            self.part(&piece.extent).copy_from_slice(piece.data);
        }
        self.trace.extend(write.extents);
        Ok(())
    }
}
