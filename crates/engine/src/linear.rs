//! The linear-scan ORAM: every access reads and writes every block. It is slow, but plainly
//! oblivious and plainly right. It is the oracle for the other engines and their base case.

use crate::{
    Action, BlockAnswer, BlockOp, BucketId, Engine, EngineError, Leaf, Result, SealedBucket, Step,
    TreeId,
};
use oblivio_crypto::{Kind, Place, SEAL_HEADER, SEAL_OVERHEAD, Sealer, Tag, VolumeId, tag_of};

enum Phase {
    Idle,
    Start,
    Reading,
    Writing,
    Closed,
}

/// One sealed bucket per block: a presence byte and the content.
pub struct Linear {
    block_bytes: usize,
    volume: VolumeId,
    sealer: Sealer,
    buckets: Vec<BucketId>,
    descending: Vec<BucketId>,
    tags: Vec<Tag>,
    lens: Vec<u32>,
    stored: bool,
    buf: Vec<u8>,
    written: Vec<SealedBucket>,
    ops: Vec<BlockOp>,
    answers: Vec<BlockAnswer>,
    phase: Phase,
}

impl Linear {
    /// An empty engine of `blocks` blocks of `block_bytes`.
    pub fn new(block_bytes: usize, blocks: u64, volume: VolumeId, sealer: Sealer) -> Self {
        let stride = block_bytes + 1 + SEAL_OVERHEAD;
        let buckets: Vec<BucketId> = (1..=blocks).map(BucketId).collect();
        Self {
            block_bytes,
            volume,
            sealer,
            descending: buckets.iter().rev().copied().collect(),
            tags: vec![Tag::default(); buckets.len()],
            lens: vec![stride as u32; buckets.len()],
            buf: vec![0; stride * buckets.len()],
            buckets,
            written: Vec::new(),
            stored: false,
            ops: Vec::new(),
            answers: Vec::new(),
            phase: Phase::Idle,
        }
    }

    /// Bytes of a sealed block.
    pub fn bucket_bytes(&self) -> usize {
        self.block_bytes + 1 + SEAL_OVERHEAD
    }

    fn place(&self, index: usize) -> Place {
        let bucket = self.buckets[index].0;
        Place { volume: self.volume, kind: Kind::Bucket, index: bucket, version: 0 }
    }

    fn open_all(&mut self) -> Result<()> {
        let stride = self.bucket_bytes();
        for index in 0..self.buckets.len() {
            let place = self.place(index);
            let bytes = &mut self.buf[index * stride..(index + 1) * stride];
            let current = tag_of(bytes) == Some(self.tags[index]);
            if !current || self.sealer.open(&place, bytes).is_err() {
                let bucket = self.buckets[index];
                let reason = "it is not the version written last";
                return Err(EngineError::Tampered { tree: TreeId::DATA, bucket, reason });
            }
        }
        Ok(())
    }

    fn serve(&mut self, op: BlockOp) -> BlockAnswer {
        let at = op.id.0 as usize * self.bucket_bytes() + SEAL_HEADER;
        let (presence, content) = self.buf[at..at + 1 + self.block_bytes].split_at_mut(1);
        let presence = &mut presence[0];
        match op.action {
            Action::Read => return (*presence == 1).then(|| content.to_vec()),
            Action::Remove => {
                *presence = 0;
                content.fill(0);
            }
            writes => {
                *presence = 1;
                writes.write_to(content);
            }
        }
        None
    }

    fn finish(&mut self) -> Result<()> {
        if self.stored {
            self.open_all()?;
        } else {
            self.buf.fill(0);
        }
        for op in std::mem::take(&mut self.ops) {
            let answer = self.serve(op);
            self.answers.push(answer);
        }
        let stride = self.bucket_bytes();
        for index in 0..self.buckets.len() {
            let place = self.place(index);
            self.tags[index] =
                self.sealer.seal(&place, &mut self.buf[index * stride..(index + 1) * stride])?;
        }
        let descending = self.buf.chunks(stride).rev();
        self.written = descending.map(|bytes| SealedBucket::new(bytes.to_vec())).collect();
        self.stored = true;
        Ok(())
    }
}

impl Engine for Linear {
    fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    fn capacity(&self) -> u64 {
        self.buckets.len() as u64
    }

    fn submit(&mut self, ops: Vec<BlockOp>) -> Result<()> {
        if !matches!(self.phase, Phase::Idle) {
            return Err(EngineError::Closed);
        }
        for op in &ops {
            let end = op.action.end();
            if op.id.0 >= self.capacity() || end > self.block_bytes {
                return Err(EngineError::Invalid("no such block or too many bytes".into()));
            }
        }
        self.ops = ops;
        self.answers.clear();
        self.phase = Phase::Start;
        Ok(())
    }

    fn begin_flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn step(&mut self) -> Result<Step<'_>> {
        const NO_LEAVES: &[Leaf] = &[];
        if matches!(self.phase, Phase::Start) {
            self.phase = Phase::Reading;
            if self.stored {
                let (buckets, into) = (&self.buckets[..], &mut self.buf[..]);
                return Ok(Step::Read {
                    tree: TreeId::DATA,
                    shown: NO_LEAVES,
                    scheduled: 0,
                    buckets,
                    lens: &self.lens,
                    into,
                });
            }
        }
        match self.phase {
            Phase::Reading => {
                let result = self.finish();
                self.phase = if result.is_ok() { Phase::Writing } else { Phase::Closed };
                result?;
                let (buckets, from) = (&self.descending[..], &self.written[..]);
                Ok(Step::Write { tree: TreeId::DATA, buckets, from })
            }
            Phase::Closed => Err(EngineError::Closed),
            _ => {
                self.phase = Phase::Idle;
                Ok(Step::Done)
            }
        }
    }

    fn take_answers(&mut self) -> Vec<BlockAnswer> {
        std::mem::take(&mut self.answers)
    }
}
