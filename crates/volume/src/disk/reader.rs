//! Reading a disk from any thread.

use super::shape::{RangeAnswer, Shape};
use crate::block::BlockReader;
use crate::damage::push;
use crate::{Error, Result};
use oblivio_engine::BlockId;
use std::ops::Range;
use std::sync::Arc;

/// Reads a disk beside its owner; a clone for each thread.
#[derive(Clone)]
pub struct DiskReader {
    blocks: Arc<dyn BlockReader>,
    shape: Shape,
}

/// A wanted part of a block.
struct Part {
    block: u64,
    /// Where in the block it begins.
    at: usize,
    len: usize,
    /// The range it belongs to; parts of a range come in order.
    range: usize,
}

impl DiskReader {
    pub(super) fn new(blocks: Arc<dyn BlockReader>, shape: Shape) -> Self {
        Self { blocks, shape }
    }

    /// The disk's size in bytes.
    pub fn size(&self) -> u64 {
        self.shape.size
    }

    /// Whether the disk saves memory: each reading thread takes some MiB.
    pub fn saves_memory(&self) -> bool {
        self.blocks.saves_memory()
    }

    /// As [`BlockReader::threads`].
    pub fn threads(&self) -> Option<usize> {
        self.blocks.threads()
    }

    /// Reads many ranges, given as offset and length, each block once.
    ///
    /// It sees what was written before the call. It sees a concurrent write, or not, block by
    /// block.
    ///
    /// # Errors
    /// `Invalid` for a range beyond the end; those of [`BlockReader::read`].
    pub fn read_many(&self, ranges: &[(u64, usize)]) -> Result<Vec<Vec<u8>>> {
        self.read_each(ranges)?.into_iter().map(|answer| answer.map_err(Error::Lost)).collect()
    }

    /// As [`Self::read_many`], and of each range says what is lost of it, if anything is.
    ///
    /// # Errors
    /// `Invalid` for a range beyond the end; those of [`BlockReader::read`].
    pub fn read_each(&self, ranges: &[(u64, usize)]) -> Result<Vec<RangeAnswer>> {
        let mut parts = Vec::new();
        for (range, &(offset, len)) in ranges.iter().enumerate() {
            self.shape.expect_inside(offset, len as u64)?;
            for piece in self.shape.pieces(offset, len as u64) {
                parts.push(Part { block: piece.block, at: piece.at, len: piece.len, range });
            }
        }
        // By address, so that adjacent blocks are read in one piece.
        parts.sort_by_key(|part| part.block);
        let mut wanted: Vec<BlockId> = parts.iter().map(|part| BlockId(part.block)).collect();
        wanted.dedup();
        let empty = |&(_, len): &_| Vec::with_capacity(len);
        let mut answers: Vec<Vec<u8>> = ranges.iter().map(empty).collect();
        let mut lost: Vec<Vec<Range<u64>>> = vec![Vec::new(); ranges.len()];
        let mut left = &parts[..];
        self.blocks.read(&wanted, &mut |at, block| {
            let same = left.partition_point(|part| part.block <= wanted[at].0);
            let (parts, rest) = left.split_at(same);
            left = rest;
            for part in parts {
                let answer = &mut answers[part.range];
                match block {
                    Ok(Some(block)) => {
                        answer.extend_from_slice(&block[part.at..part.at + part.len]);
                    }
                    Ok(None) => answer.resize(answer.len() + part.len, 0),
                    Err(_) => push(&mut lost[part.range], part.block),
                }
            }
        })?;
        let each = answers.into_iter().zip(lost);
        Ok(each
            .map(|(bytes, lost)| match lost.is_empty() {
                true => Ok(bytes),
                false => Err(self.shape.lost(&lost)),
            })
            .collect())
    }
}
