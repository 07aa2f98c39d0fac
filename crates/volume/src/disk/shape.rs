//! Which blocks a range of a disk's bytes touches.

use crate::damage::LostBytes;
use crate::{Error, Result};
use std::ops::Range;

/// What a disk holds in a range, or what is lost of it to damage.
pub type RangeAnswer = std::result::Result<Vec<u8>, LostBytes>;

/// A disk's size and its block size, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub block_bytes: u64,
    pub size: u64,
}

/// The part of one block that a range of bytes touches.
pub(super) struct Piece {
    pub block: u64,
    /// Where in the block it begins.
    pub at: usize,
    pub len: usize,
    /// Whether it covers all of the disk's bytes in this block.
    pub whole: bool,
}

impl Shape {
    pub fn expect_inside(&self, offset: u64, len: u64) -> Result<()> {
        match offset.checked_add(len) {
            Some(end) if end <= self.size => Ok(()),
            _ => Err(Error::Invalid(format!(
                "{len} bytes from {offset} on do not lie on a disk of {} bytes",
                self.size
            ))),
        }
    }

    /// The blocks that a range on the disk touches.
    pub fn pieces(&self, offset: u64, len: u64) -> impl Iterator<Item = Piece> + use<> {
        let (block_bytes, size, end) = (self.block_bytes, self.size, offset + len);
        let mut at = offset;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (block, start) = (at / block_bytes, at);
            let block_end = ((block + 1) * block_bytes).min(size);
            at = block_end.min(end);
            Some(Piece {
                block,
                at: (start % block_bytes) as usize,
                len: (at - start) as usize,
                whole: start.is_multiple_of(block_bytes) && at == block_end,
            })
        })
    }

    /// The disk's bytes in these blocks, which are lost.
    pub fn lost(&self, blocks: &[Range<u64>]) -> LostBytes {
        let bytes = |run: &Range<u64>| {
            run.start * self.block_bytes..(run.end * self.block_bytes).min(self.size)
        };
        LostBytes { what: "the disk".into(), ranges: blocks.iter().map(bytes).collect() }
    }

    /// The most blocks that `len` bytes touch, at any offset.
    pub fn most_touched(&self, len: u64) -> u64 {
        match len {
            0 => 0,
            _ => (len - 1).div_ceil(self.block_bytes) + 1,
        }
    }

    /// The blocks wholly inside a range; the disk's last one may be short.
    pub fn whole_blocks(&self, offset: u64, len: u64) -> Range<u64> {
        let first = offset.div_ceil(self.block_bytes);
        let end = offset.saturating_add(len);
        let end = match end == self.size {
            true => end.div_ceil(self.block_bytes),
            false => end / self.block_bytes,
        };
        first..end.max(first)
    }
}
