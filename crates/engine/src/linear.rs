//! The linear-scan ORAM: every access reads and writes every block. It is slow, but plainly
//! oblivious and plainly right. It is the oracle for the other engines and their base case.

use crate::memory::Batches;
use crate::{
    Action, BlockAnswer, BlockOp, BucketId, Data, EngineError, Extent, Job, Read, Result, Step,
    Write,
};
use oblivio_crypto::{
    Kind, Place, SEAL_HEADER, SEAL_OVERHEAD, Sealer, TAG_BYTES, Tag, VolumeId, tag_of,
};

/// One sealed bucket per block: a presence byte and the content.
pub struct Linear {
    block_bytes: usize,
    volume: VolumeId,
    sealer: Sealer,
    tags: Vec<Tag>,
    stored: bool,
}

/// A batch: reads everything, serves its operations, writes everything.
pub struct LinearBatch {
    ops: Vec<BlockOp>,
    answers: Vec<BlockAnswer>,
    extents: Vec<Extent>,
    /// All buckets.
    buf: Vec<u8>,
    phase: Phase,
}

enum Phase {
    Start,
    Reading,
    Writing,
}

impl Linear {
    /// An empty engine of `blocks` blocks of `block_bytes`.
    pub fn new(block_bytes: usize, blocks: u64, volume: VolumeId, sealer: Sealer) -> Self {
        Self {
            block_bytes,
            volume,
            sealer,
            tags: vec![Tag::default(); blocks as usize],
            stored: false,
        }
    }

    /// Bytes of a sealed block.
    pub fn bucket_bytes(&self) -> usize {
        self.block_bytes + 1 + SEAL_OVERHEAD
    }

    /// What is only in memory: the tags of the stored buckets; nothing before the first batch.
    pub fn state(&self) -> Vec<u8> {
        let tags = if self.stored { &self.tags[..] } else { &[] };
        tags.iter().flat_map(|tag| tag.0).collect()
    }

    /// The engine of a state.
    pub fn restore(&mut self, state: &[u8]) {
        self.stored = !state.is_empty();
        for (tag, bytes) in self.tags.iter_mut().zip(state.chunks_exact(TAG_BYTES)) {
            tag.0.copy_from_slice(bytes);
        }
    }

    fn place(&self, index: usize) -> Place {
        Place { volume: self.volume, kind: Kind::Bucket, index: index as u64 + 1, version: 0 }
    }

    fn open_all(&mut self, buf: &mut [u8]) -> Result<()> {
        for (index, bytes) in buf.chunks_mut(self.bucket_bytes()).enumerate() {
            let place = self.place(index);
            let current = tag_of(bytes) == Some(self.tags[index]);
            if !current || self.sealer.open(&place, bytes).is_err() {
                let bucket = BucketId(place.index);
                let reason = "it is not the version written last";
                return Err(EngineError::Tampered { bucket, reason });
            }
        }
        Ok(())
    }

    fn seal_all(&mut self, buf: &mut [u8]) -> Result<()> {
        for (index, bytes) in buf.chunks_mut(self.bucket_bytes()).enumerate() {
            let place = self.place(index);
            self.tags[index] = self.sealer.seal(&place, bytes)?;
        }
        self.stored = true;
        Ok(())
    }
}

impl LinearBatch {
    fn serve(&mut self, op: BlockOp, stride: usize) -> BlockAnswer {
        let at = op.id.0 as usize * stride;
        let plain = &mut self.buf[at + SEAL_HEADER..at + stride - (SEAL_OVERHEAD - SEAL_HEADER)];
        let (presence, content) = plain.split_at_mut(1);
        match op.action {
            Action::Read => return (presence[0] == 1).then(|| content.to_vec()),
            Action::Remove => {
                presence[0] = 0;
                content.fill(0);
            }
            writes => {
                presence[0] = 1;
                writes.write_to(content);
            }
        }
        None
    }
}

impl Job for LinearBatch {
    type Engine = Linear;

    fn step<'j>(&'j mut self, engine: &mut Linear) -> Result<Step<'j>> {
        if matches!(self.phase, Phase::Start) {
            self.phase = Phase::Reading;
            if engine.stored {
                let (extents, into) = (&self.extents[..], &mut self.buf[..]);
                let read = Read { extents, into, shown: &[], scheduled: 0 };
                return Ok(Step::Read(read));
            }
        } else if matches!(self.phase, Phase::Writing) {
            return Ok(Step::Done);
        }
        if engine.stored {
            engine.open_all(&mut self.buf)?;
        }
        for op in std::mem::take(&mut self.ops) {
            let answer = self.serve(op, engine.bucket_bytes());
            self.answers.push(answer);
        }
        engine.seal_all(&mut self.buf)?;
        self.phase = Phase::Writing;
        let (extents, data) = (&self.extents[..], Data::Together(&self.buf));
        Ok(Step::Write(Write { extents, data }))
    }
}

impl Batches for Linear {
    type Batch = LinearBatch;

    fn begin(&mut self, ops: Vec<BlockOp>) -> Result<LinearBatch> {
        let fits = |op: &BlockOp| op.id.0 < self.blocks() && op.action.end() <= self.block_bytes;
        if !ops.iter().all(fits) {
            return Err(EngineError::Invalid("no such block or too many bytes".into()));
        }
        let bytes = self.bucket_bytes() as u64;
        let extents: Vec<_> =
            (1..=self.blocks()).map(|bucket| Extent { offset: bucket, bytes }).collect();
        let buf = vec![0; self.bucket_bytes() * extents.len()];
        Ok(LinearBatch { ops, answers: Vec::new(), extents, buf, phase: Phase::Start })
    }

    fn answers(batch: LinearBatch) -> Result<Vec<BlockAnswer>> {
        Ok(batch.answers)
    }

    fn blocks(&self) -> u64 {
        self.tags.len() as u64
    }
}
