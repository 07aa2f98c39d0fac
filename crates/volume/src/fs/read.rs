//! Reading file data: one access for all blocks of all ranges requested together.
//!
//! What is lost is known only after that access. So the store sees the same as if all were whole.

use super::around::ReadAround;
use super::inode::Inode;
use super::ops::read_op;
use super::state::State;
use super::types::{Handle, Ino};
use crate::damage::joined;
use crate::{Error, Result};
use oblivio_engine::BlockOutcome;
use oblivio_store::StoreError;
use std::ops::Range;

/// A wanted range of a file.
type Request = (Handle, u64, usize);

/// A copy from one block, at `source`, to an answer, at `target`.
struct Part {
    /// The answer's number.
    request: usize,
    block: u64,
    source: usize,
    target: usize,
    len: usize,
    /// Its first byte in the file.
    from: u64,
    /// Whether a later read may want the rest of the block.
    edge: bool,
}

/// The range of one request, within the file.
#[derive(Clone, Copy)]
struct Span {
    request: usize,
    offset: u64,
    end: u64,
}

impl Part {
    /// Its bytes in the file.
    fn range(&self) -> Range<u64> {
        self.from..self.from + self.len as u64
    }
}

/// The answers so far, with zeros for parts not yet copied.
#[derive(Default)]
struct Answers {
    out: Vec<Result<ReadAround>>,
    parts: Vec<Part>,
}

impl Answers {
    /// Copies a part, unless its request has failed.
    fn copy(&mut self, part: &Part, content: &[u8]) {
        if let Some(Ok(out)) = self.out.get_mut(part.request) {
            out.bytes[part.target..part.target + part.len]
                .copy_from_slice(&content[part.source..part.source + part.len]);
        }
    }

    /// Notes that a part is lost.
    fn lose(&mut self, part: &Part) {
        if let Some(Ok(out)) = self.out.get_mut(part.request) {
            out.lost.push(part.range());
        }
    }

    /// The finished answers.
    fn into_out(mut self) -> Vec<Result<ReadAround>> {
        for out in self.out.iter_mut().flatten() {
            out.lost = joined(std::mem::take(&mut out.lost));
        }
        self.out
    }
}

impl State {
    pub(super) fn read(&mut self, handle: Handle, offset: u64, len: usize) -> Result<ReadAround> {
        let mut answers = Answers::default();
        self.plan_read((handle, offset, len), &mut answers)?;
        self.expect_answers(&answers);
        self.fetch(&mut answers)?;
        answers.into_out().pop().unwrap_or_else(|| Ok(ReadAround::default()))
    }

    /// Answers each request. Only an error of the metadata, which closes the file system, fails
    /// them all.
    pub(super) fn read_many(&mut self, requests: &[Request]) -> Result<Vec<Result<ReadAround>>> {
        let mut answers = Answers::default();
        answers.out.reserve(requests.len());
        for (index, &request) in requests.iter().enumerate() {
            let planned = self.plan_read(request, &mut answers);
            if let Err(error) = planned {
                if matches!(error, Error::Closed(_)) {
                    return Err(error);
                }
                answers.parts.retain(|part| part.request != index);
                answers.out.truncate(index);
                answers.out.push(Err(error));
            }
        }
        self.expect_answers(&answers);
        if let Err(error) = self.fetch(&mut answers) {
            self.read_apart(requests, &mut answers, &error);
        }
        Ok(answers.into_out())
    }

    /// If the space pads, every answered byte counts as a read.
    fn expect_answers(&mut self, answers: &Answers) {
        self.expect_read(answers.out.iter().flatten().map(|out| out.bytes.len()));
    }

    /// Handles a failed common access. If some block's content was to blame, it serves the requests
    /// one by one, and only those that want that block fail. It does not retry an outage.
    fn read_apart(&mut self, requests: &[Request], answers: &mut Answers, error: &Error) {
        let mut failed: Vec<usize> = answers.parts.iter().map(|part| part.request).collect();
        failed.sort_unstable();
        failed.dedup();
        let apart = matches!(error, Error::Tampered(_)) && failed.len() > 1;
        for index in failed {
            let (handle, offset, len) = requests[index];
            answers.out[index] = match apart {
                true => self.read(handle, offset, len),
                false => Err(same_error(error)),
            };
        }
    }

    /// Locates a range, and copies at once what is in memory.
    fn plan_read(&mut self, request: Request, answers: &mut Answers) -> Result<()> {
        let (handle, offset, len) = request;
        let ino = self.handles.file(handle)?;
        let inode = self.meta.inode(ino)?;
        let end = offset.saturating_add(len as u64).min(inode.size);
        let span = Span { request: answers.out.len(), offset, end };
        let bytes = vec![0; end.saturating_sub(offset) as usize];
        answers.out.push(Ok(ReadAround { offset, bytes, lost: Vec::new() }));
        if offset >= end {
            return Ok(());
        }
        self.segment_parts(ino, &inode, span, answers)?;
        self.tail_part(ino, &inode, span, answers)
    }

    /// Fetches what is missing, each block once, and copies it. On failure it keeps the parts.
    fn fetch(&mut self, answers: &mut Answers) -> Result<()> {
        answers.parts.sort_by_key(|part| part.block);
        let groups = answers.parts.chunk_by(|a, b| a.block == b.block);
        let ops = groups.map(|group| read_op(group[0].block)).collect();
        let contents = self.pool.lock().access_each(ops)?;
        let parts = std::mem::take(&mut answers.parts);
        for (group, content) in parts.chunk_by(|a, b| a.block == b.block).zip(contents) {
            self.deliver(group, content, answers);
        }
        self.evict_data()
    }

    /// Copies a block to all requests for a part of it.
    fn deliver(&mut self, group: &[Part], content: BlockOutcome, answers: &mut Answers) {
        let block = group[0].block;
        let edge = group.iter().any(|part| part.edge);
        let Ok(content) = content else {
            group.iter().for_each(|part| answers.lose(part));
            if edge {
                self.cache.insert_lost(block);
            }
            return;
        };
        let Some(content) = content.filter(|content| content.len() == self.block_bytes) else {
            for part in group {
                let missing = format!("data block {block} is missing");
                answers.out[part.request] = Err(Error::Tampered(missing));
            }
            return;
        };
        group.iter().for_each(|part| answers.copy(part, &content));
        if edge {
            self.cache.insert(block, content, false);
        }
    }

    /// Copies a part if its block is in the cache, else keeps it for the access.
    fn want(&mut self, part: Part, answers: &mut Answers) {
        match self.cache.get(part.block) {
            Some(Some(content)) => answers.copy(&part, content),
            Some(None) => answers.lose(&part),
            None => answers.parts.push(part),
        }
    }

    /// The blocks of whole segments in a range, except a buffered tail.
    fn segment_parts(
        &mut self,
        ino: Ino,
        inode: &Inode,
        span: Span,
        answers: &mut Answers,
    ) -> Result<()> {
        let size = self.block_bytes as u64;
        let Span { request, offset, end } = span;
        let stop = match self.tails.contains(ino) {
            true => (inode.size / size).min(end.div_ceil(size)),
            false => end.div_ceil(size),
        };
        for run in self.meta.extents(ino, offset / size, stop)? {
            if run.unwritten {
                continue;
            }
            for (segment, block) in (run.segment..run.end()).zip(run.blocks()) {
                let start = segment * size;
                let (from, to) = (start.max(offset), (start + size).min(end));
                let part = Part {
                    request,
                    block,
                    source: (from - start) as usize,
                    target: (from - offset) as usize,
                    len: (to - from) as usize,
                    from,
                    edge: to - from < size,
                };
                self.want(part, answers);
            }
        }
        Ok(())
    }

    /// The part of a range in the tail: copied at once if buffered, else read from its piece.
    fn tail_part(
        &mut self,
        ino: Ino,
        inode: &Inode,
        span: Span,
        answers: &mut Answers,
    ) -> Result<()> {
        let Span { request, offset, end } = span;
        let start = inode.size - inode.size % self.block_bytes as u64;
        let from = start.max(offset);
        if from >= end {
            return Ok(());
        }
        let (source, len) = ((from - start) as usize, (end - from) as usize);
        let target = (from - offset) as usize;
        let mut part = Part { request, block: 0, source, target, len, from, edge: true };
        if let Some(tail) = self.tails.get(ino) {
            answers.copy(&part, tail);
            return Ok(());
        }
        let Some(id) = inode.pack else {
            return Ok(());
        };
        let pack = self.meta.pack(id)?;
        let piece = pack
            .piece(ino)
            .filter(|piece| piece.len as usize >= source + len)
            .filter(|piece| piece.offset as usize + piece.len as usize <= self.block_bytes)
            .ok_or_else(|| Error::Tampered(format!("the tail of inode {ino} is missing")))?;
        (part.block, part.source) = (pack.block, piece.offset as usize + source);
        self.want(part, answers);
        Ok(())
    }
}

/// The same error for another request that it hit.
pub(super) fn same_error(error: &Error) -> Error {
    match error {
        Error::Tampered(text) => Error::Tampered(text.clone()),
        Error::Full(text) => Error::Full(text.clone()),
        Error::Closed(text) => Error::Closed(text.clone()),
        Error::Busy => Error::Busy,
        Error::Overtaken => Error::Overtaken,
        Error::Lost(lost) => Error::Lost(lost.clone()),
        other => {
            let source = std::io::Error::other(other.to_string());
            Error::Store(StoreError::Io { object: "data".into(), source })
        }
    }
}
