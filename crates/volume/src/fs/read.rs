//! Reading file data: one access for all blocks of a range.

use super::pool::read_op;
use super::state::State;
use super::tables::Inode;
use super::types::{Handle, Ino};
use crate::{Error, Result};

/// Where the bytes of one block go: `source` in the block to `target` in the answer.
struct Part {
    block: u64,
    source: usize,
    target: usize,
    len: usize,
    /// Whether the rest of the block may be wanted next.
    edge: bool,
}

impl State {
    pub(super) fn read(&mut self, handle: Handle, offset: u64, len: usize) -> Result<Vec<u8>> {
        let ino = self.handle_ino(handle)?;
        let inode = self.meta.inode(ino)?;
        let end = offset.saturating_add(len as u64).min(inode.size);
        if offset >= end {
            return Ok(Vec::new());
        }
        let mut out = vec![0; (end - offset) as usize];
        let mut parts = self.segment_parts(ino, &inode, offset, end)?;
        parts.extend(self.tail_part(ino, &inode, offset, end, &mut out)?);
        let missing: Vec<Part> =
            parts.into_iter().filter(|part| !self.copy_cached(part, &mut out)).collect();
        let ops = missing.iter().map(|part| read_op(part.block)).collect();
        let answers = self.pool.lock().access(ops)?;
        for (part, answer) in missing.into_iter().zip(answers) {
            let content = answer
                .filter(|content| content.len() == self.block_bytes)
                .ok_or_else(|| Error::Tampered(format!("data block {} is missing", part.block)))?;
            copy(&part, &content, &mut out);
            if part.edge {
                self.cache.insert(part.block, content, false);
            }
        }
        self.evict_data()?;
        Ok(out)
    }

    fn copy_cached(&mut self, part: &Part, out: &mut [u8]) -> bool {
        match self.cache.get(part.block) {
            Some(content) => {
                copy(part, content, out);
                true
            }
            None => false,
        }
    }

    /// The blocks of whole segments in a range, but for a tail that is buffered.
    fn segment_parts(&self, ino: Ino, inode: &Inode, offset: u64, end: u64) -> Result<Vec<Part>> {
        let size = self.block_bytes as u64;
        let stop = match self.tails.contains(ino) {
            true => (inode.size / size).min(end.div_ceil(size)),
            false => end.div_ceil(size),
        };
        let mut parts = Vec::new();
        for run in self.meta.extents(ino, offset / size, stop)? {
            for step in 0..run.count {
                let start = (run.segment + step) * size;
                let (from, to) = (start.max(offset), (start + size).min(end));
                parts.push(Part {
                    block: run.block + step,
                    source: (from - start) as usize,
                    target: (from - offset) as usize,
                    len: (to - from) as usize,
                    edge: to - from < size,
                });
            }
        }
        Ok(parts)
    }

    /// The part of a range in the tail: copied at once when it is buffered, else where its piece
    /// lies.
    fn tail_part(
        &self,
        ino: Ino,
        inode: &Inode,
        offset: u64,
        end: u64,
        out: &mut [u8],
    ) -> Result<Option<Part>> {
        let start = inode.size - inode.size % self.block_bytes as u64;
        let from = start.max(offset);
        if from >= end {
            return Ok(None);
        }
        let (skip, len) = ((from - start) as usize, (end - from) as usize);
        let target = (from - offset) as usize;
        if let Some(tail) = self.tails.get(ino) {
            out[target..target + len].copy_from_slice(&tail[skip..skip + len]);
            return Ok(None);
        }
        let Some(id) = inode.pack else {
            return Ok(None);
        };
        let pack = self.meta.pack(id)?;
        let piece = pack
            .piece(ino)
            .filter(|piece| piece.len as usize >= skip + len)
            .filter(|piece| piece.offset as usize + piece.len as usize <= self.block_bytes)
            .ok_or_else(|| Error::Tampered(format!("the tail of inode {ino} is missing")))?;
        Ok(Some(Part {
            block: pack.block,
            source: piece.offset as usize + skip,
            target,
            len,
            edge: true,
        }))
    }
}

fn copy(part: &Part, content: &[u8], out: &mut [u8]) {
    out[part.target..part.target + part.len]
        .copy_from_slice(&content[part.source..part.source + part.len]);
}
