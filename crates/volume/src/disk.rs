//! A disk: bytes by their offset, over the blocks of a volume.
//!
//! Formatting makes the whole disk addressable, so the store never learns how far out it is
//! written. A block never written, or given back, is absent: it reads as zeros and takes no space.
//! An operation's cost follows from its offset and length alone. A read costs one access for each
//! block it touches, present or absent; a write costs as much, later. Giving whole blocks back
//! costs nothing, or on a sequential volume as much as writing them. A padded volume's cost follows
//! from the length alone: that of the offset that touches most blocks.
//!
//! The volume's root says that it holds a disk: `OBLDISK\n | version 2 | zeros 6 | size 8`.

mod reader;
mod root;
mod shape;

pub use reader::DiskReader;
pub use shape::RangeAnswer;

use crate::block::{BlockSpace, Least};
use crate::damage::{LostBytes, push};
use crate::{Error, Result};
use oblivio_engine::{Action, BlockId, BlockOp};
use root::root_of;
pub use root::size_in;
use shape::{Piece, Shape};
use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

/// Sizes are multiples of this, as every kernel expects of a disk.
pub const SECTOR: u64 = 512;
/// Bytes passed to the volume at a time; it defers about as many.
const WRITE_BYTES: u64 = 2 << 20;
/// Most blocks that one call looks at, and how many it looks at together.
const LOOK_BLOCKS: usize = 1 << 18;
const LOOK_TOGETHER: usize = 1 << 12;
/// Blocks given back at a time; bounds the list of them.
const DISCARD_BLOCKS: usize = 1 << 16;

/// A part of the disk that exists whole, or is absent whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskExtent {
    /// Its length in bytes.
    pub len: u64,
    /// Whether it takes space; an absent part reads as zeros.
    pub exists: bool,
}

/// A disk on a volume.
pub struct Disk {
    blocks: Box<dyn BlockSpace>,
    shape: Shape,
}

impl Disk {
    /// Makes a disk of `size` bytes in an empty volume.
    ///
    /// # Errors
    /// `Invalid` for an impossible size, `Full` for one beyond the volume's capacity.
    pub fn format(mut blocks: Box<dyn BlockSpace>, size: u64) -> Result<Self> {
        if size == 0 || !size.is_multiple_of(SECTOR) {
            let why = format!("a disk's size is a multiple of {SECTOR} bytes, not {size}");
            return Err(Error::Invalid(why));
        }
        let block_bytes = blocks.block_bytes() as u64;
        blocks.reserve(size.div_ceil(block_bytes))?;
        blocks.set_root(&root_of(size));
        blocks.finish()?;
        Ok(Self { blocks, shape: Shape { block_bytes, size } })
    }

    /// The bytes of a volume's disk that lie in these lost blocks.
    ///
    /// # Errors
    /// As [`size_in`].
    pub fn lost_bytes(volume: &dyn BlockSpace, lost: &[Range<u64>]) -> Result<LostBytes> {
        let (block_bytes, size) = (volume.block_bytes() as u64, size_in(volume.root())?);
        Ok(Shape { block_bytes, size: size.unwrap_or(0) }.lost(lost))
    }

    /// The disk in a volume.
    ///
    /// # Errors
    /// `HoldsFiles` or `Unsupported` when there is none.
    pub fn open(blocks: Box<dyn BlockSpace>) -> Result<Self> {
        let Some(size) = size_in(blocks.root())? else {
            return Err(match crate::fs::is_root(blocks.root()) {
                true => Error::HoldsFiles,
                false => Error::Unsupported("the volume holds no disk".into()),
            });
        };
        let block_bytes = blocks.block_bytes() as u64;
        if size.div_ceil(block_bytes) > blocks.capacity_blocks() {
            return Err(Error::Tampered("the disk is larger than its volume".into()));
        }
        Ok(Self { blocks, shape: Shape { block_bytes, size } })
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.shape.size
    }

    /// Bytes in a block: requests that begin and end at multiples of it cost least.
    pub fn block_bytes(&self) -> u64 {
        self.shape.block_bytes
    }

    /// Reads many ranges, given as offset and length. It fetches all their blocks together, each
    /// once, even if several ranges touch it.
    ///
    /// # Errors
    /// `Invalid` for a range beyond the end; those of an access.
    pub fn read_many(&mut self, ranges: &[(u64, usize)]) -> Result<Vec<Vec<u8>>> {
        self.read_each(ranges)?.into_iter().map(|answer| answer.map_err(Error::Lost)).collect()
    }

    /// As [`Self::read_many`], and of each range says what is lost of it, if anything is.
    ///
    /// # Errors
    /// `Invalid` for a range beyond the end; those of an access.
    pub fn read_each(&mut self, ranges: &[(u64, usize)]) -> Result<Vec<RangeAnswer>> {
        let mut wanted = Vec::new();
        let mut places = HashMap::new();
        for &(offset, len) in ranges {
            self.shape.expect_inside(offset, len as u64)?;
            for piece in self.shape.pieces(offset, len as u64) {
                places.entry(piece.block).or_insert_with(|| {
                    wanted.push(BlockOp { id: BlockId(piece.block), action: Action::Read });
                    wanted.len() - 1
                });
            }
        }
        if wanted.is_empty() {
            return Ok(ranges.iter().map(|_| Ok(Vec::new())).collect());
        }
        let touched: u64 = ranges.iter().map(|range| self.shape.most_touched(range.1 as u64)).sum();
        let reads = touched.div_ceil(Least::BATCH as u64);
        let blocks = self.blocks.access_each(wanted)?;
        self.blocks.bring_up(Least { reads, ..Least::default() })?;
        let answer = |&(offset, len): &(u64, usize)| {
            let (mut bytes, mut lost) = (Vec::with_capacity(len), Vec::new());
            for piece in self.shape.pieces(offset, len as u64) {
                match &blocks[places[&piece.block]] {
                    Ok(Some(block)) => {
                        bytes.extend_from_slice(&block[piece.at..piece.at + piece.len]);
                    }
                    Ok(None) => bytes.resize(bytes.len() + piece.len, 0),
                    Err(_) => push(&mut lost, piece.block),
                }
            }
            if lost.is_empty() { Ok(bytes) } else { Err(self.shape.lost(&lost)) }
        };
        Ok(ranges.iter().map(answer).collect())
    }

    /// A reader for other threads, beside all work here; `None` if a read takes its turn like
    /// everything else.
    pub fn reader(&self) -> Option<DiskReader> {
        self.blocks.reader().map(|blocks| DiskReader::new(blocks, self.shape))
    }

    /// Writes bytes, without first reading the blocks that it writes in part.
    ///
    /// # Errors
    /// `Invalid` beyond the end, `Full` when the store has no space for new blocks; those of an
    /// access.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let len = data.len() as u64;
        self.write_with(offset, len, |from, len| data[from..from + len].to_vec())?;
        self.brought_up(self.shape.most_touched(len), 0)
    }

    /// Pads an operation, so that its trace follows from its kind and length.
    fn brought_up(&mut self, writes: u64, discards: u64) -> Result<()> {
        self.blocks.bring_up(Least { writes, discards, ..Least::default() })
    }

    /// Makes a range read as zeros. It gives whole blocks back, unless the caller wants them to
    /// `stay`: then they take the space of a write.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_zeroes(&mut self, offset: u64, len: u64, stay: bool) -> Result<()> {
        let whole = self.shape.whole_blocks(offset, len);
        if stay || whole.is_empty() {
            self.write_with(offset, len, |_, len| vec![0; len])?;
            let touched = self.shape.most_touched(len);
            // Without `stay`, the same length elsewhere may be two edges with a block between them.
            return if stay {
                self.brought_up(touched, 0)
            } else {
                self.brought_up(touched.min(2), 1)
            };
        }
        self.shape.expect_inside(offset, len)?;
        let (first, last) =
            (whole.start * self.shape.block_bytes, whole.end * self.shape.block_bytes);
        let (end, last) = (offset + len, last.min(self.shape.size));
        // Both edges first: a refusal then has changed nothing.
        let edges = [(offset, first - offset), (last, end - last)];
        self.expect_room(edges.iter().map(|&(at, len)| self.absent(at, len)).sum())?;
        for (at, len) in edges {
            self.write_with(at, len, |_, len| vec![0; len])?;
        }
        self.discard(whole)?;
        self.brought_up(self.shape.most_touched(len).min(2), 1)
    }

    /// Discards a range: its whole blocks are given back and read as zeros.
    ///
    /// # Errors
    /// `Invalid` beyond the end; those of an access.
    pub fn trim(&mut self, offset: u64, len: u64) -> Result<()> {
        self.shape.expect_inside(offset, len)?;
        self.discard(self.shape.whole_blocks(offset, len))?;
        self.brought_up(0, 1)
    }

    /// Makes everything accepted so far durable.
    ///
    /// # Errors
    /// Those of a commit.
    pub fn flush(&mut self) -> Result<()> {
        self.blocks.commit()
    }

    /// What exists of a range, in at most `most` extents that differ from their neighbours. They
    /// end earlier when there are more, or when looking takes long. Costs no access.
    ///
    /// # Errors
    /// `Invalid` beyond the end; those of a read.
    pub fn extents(&self, offset: u64, len: u64, most: usize) -> Result<Vec<DiskExtent>> {
        self.shape.expect_inside(offset, len)?;
        let mut extents: Vec<DiskExtent> = Vec::new();
        let mut pieces = self.shape.pieces(offset, len).take(LOOK_BLOCKS).peekable();
        while let Some(first) = pieces.peek().map(|piece| piece.block) {
            let together: Vec<_> = pieces.by_ref().take(LOOK_TOGETHER).collect();
            let present = self.blocks.present(first..first + together.len() as u64)?;
            for (piece, exists) in together.into_iter().zip(present) {
                let (full, len) = (extents.len() == most, piece.len as u64);
                match extents.last_mut() {
                    Some(last) if last.exists == exists => last.len += len,
                    _ if full => return Ok(extents),
                    _ => extents.push(DiskExtent { len, exists }),
                }
            }
        }
        Ok(extents)
    }

    /// Whether zeros over this range cost less than a write: it contains whole blocks, and giving
    /// those back is cheaper.
    pub fn zeroes_fast(&self, offset: u64, len: u64) -> bool {
        self.blocks.erases_cheaply()
            && self.shape.expect_inside(offset, len).is_ok()
            && !self.shape.whole_blocks(offset, len).is_empty()
    }

    /// As [`BlockSpace::end_operation`].
    ///
    /// # Errors
    /// Those of an access.
    pub fn end_operation(&mut self) -> Result<()> {
        self.blocks.end_operation()
    }

    /// As [`BlockSpace::wants_commit`].
    pub fn wants_commit(&self) -> bool {
        self.blocks.wants_commit()
    }

    /// As [`BlockSpace::idle`].
    ///
    /// # Errors
    /// Those of an access.
    pub fn idle(&mut self) -> Result<Option<Duration>> {
        self.blocks.idle()
    }

    /// Commits, leaves nothing to replay, and gives the volume back.
    ///
    /// # Errors
    /// Those of a commit.
    pub fn into_blocks(mut self) -> Result<Box<dyn BlockSpace>> {
        self.blocks.end()?;
        Ok(self.blocks)
    }

    /// Ends after a failure of the volume ([`BlockSpace::give_up`]).
    pub fn give_up(mut self) {
        self.blocks.give_up();
    }

    /// Blocks of a range that do not exist.
    fn absent(&self, offset: u64, len: u64) -> u64 {
        let absent = |piece: &Piece| !self.blocks.exists(piece.block);
        self.shape.pieces(offset, len).filter(absent).count() as u64
    }

    /// Refuses what the store has no space for before accepting it: accepted data must be stored.
    /// It asks for the store's room even if no block is new, because the store may see the
    /// question.
    fn expect_room(&self, new: u64) -> Result<()> {
        match self.blocks.room()? {
            Some(room) if room < new => Err(Error::Full("the store has no space left".into())),
            _ => Ok(()),
        }
    }

    /// Writes what `bytes` gives for each part of the range, counted from its beginning.
    fn write_with(
        &mut self,
        offset: u64,
        len: u64,
        bytes: impl Fn(usize, usize) -> Vec<u8>,
    ) -> Result<()> {
        self.shape.expect_inside(offset, len)?;
        self.expect_room(self.absent(offset, len))?;
        let part = WRITE_BYTES.max(self.shape.block_bytes);
        let end = offset + len;
        let mut at = offset;
        while at < end {
            // Parts end at block boundaries, so no block is written twice.
            let next = (at + part - at % self.shape.block_bytes).min(end);
            let ops = self.shape.pieces(at, next - at).map(|piece| {
                let from = piece.block * self.shape.block_bytes + piece.at as u64 - offset;
                let bytes = bytes(from as usize, piece.len);
                let action = match piece.whole {
                    true => Action::Write(bytes),
                    false => Action::Patch { offset: piece.at, bytes },
                };
                BlockOp { id: BlockId(piece.block), action }
            });
            let ops = ops.collect();
            self.blocks.defer(ops)?;
            at = next;
        }
        Ok(())
    }

    fn discard(&mut self, blocks: Range<u64>) -> Result<()> {
        let mut next = blocks.start;
        while next < blocks.end {
            let end = blocks.end.min(next + DISCARD_BLOCKS as u64);
            self.blocks.erase(&(next..end).collect::<Vec<_>>())?;
            next = end;
        }
        Ok(())
    }
}
