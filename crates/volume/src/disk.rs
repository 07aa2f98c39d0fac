//! A disk: bytes by their offset, over the blocks of a volume.
//!
//! The whole disk is made addressable when it is made, so how far out it is written shows nowhere.
//! A block that was never written, or was given back, is absent: it reads as zeros and takes no
//! space. What an operation costs follows from its offset and length alone: a read costs one access
//! for each block it touches, present or absent; a write costs as much, later; giving whole blocks
//! back costs none, or on a sequential volume as much as writing them. Where the volume pads it
//! follows from the length alone: as much as at the offset where most blocks are touched.
//!
//! The volume's root says that it holds a disk: `OBLDISK\n | version 2 | zeros 6 | size 8`.

mod reader;
mod shape;

pub use reader::DiskReader;

use crate::block::{BlockSpace, Least};
use crate::{Error, Result};
use oblivio_engine::{Action, BlockId, BlockOp};
use shape::{Piece, Shape};
use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

const MAGIC: [u8; 8] = *b"OBLDISK\n";
const VERSION: u16 = 1;
const ROOT: usize = 24;
/// Sizes are multiples of this, as every kernel expects of a disk.
pub const SECTOR: u64 = 512;
/// So many bytes are handed to the volume at a time: it keeps about as many waiting.
const WRITE_BYTES: u64 = 2 << 20;
/// So many blocks are looked for at most before it is said what was found, and so many together.
const LOOK_BLOCKS: usize = 1 << 18;
const LOOK_TOGETHER: usize = 1 << 12;
/// So many blocks are given back at a time, which bounds the list of them.
const DISCARD_BLOCKS: usize = 1 << 16;

/// The size of the disk that a volume with this root holds; `None` when it holds something else.
///
/// # Errors
/// `Unsupported` for a disk of a later version, `Tampered` for one that makes no sense.
pub fn size_in(root: &[u8]) -> Result<Option<u64>> {
    if !root.starts_with(&MAGIC) {
        return Ok(None);
    }
    let Ok(root) = <&[u8; ROOT]>::try_from(root) else {
        return Err(Error::Tampered("the disk's root has the wrong length".into()));
    };
    let version = u16::from_le_bytes([root[8], root[9]]);
    if version != VERSION {
        return Err(Error::Unsupported(format!(
            "the disk has format {version}, this program knows {VERSION}; use a newer one"
        )));
    }
    let mut size = [0; 8];
    size.copy_from_slice(&root[16..]);
    Ok(Some(u64::from_le_bytes(size)))
}

fn root_of(size: u64) -> Vec<u8> {
    let mut root = Vec::with_capacity(ROOT);
    root.extend_from_slice(&MAGIC);
    root.extend_from_slice(&VERSION.to_le_bytes());
    root.extend_from_slice(&[0; 6]);
    root.extend_from_slice(&size.to_le_bytes());
    root
}

/// A part of the disk that is all there, or all absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its length in bytes.
    pub len: u64,
    /// Whether it takes space; what does not reads as zeros.
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
    /// `Invalid` for a size that no disk has, `Full` for one that the volume has not.
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

    /// Reads many ranges, given as offset and length. All their blocks are asked for together, and
    /// each once, however many ranges touch it.
    ///
    /// # Errors
    /// `Invalid` for a range beyond the end; those of an access.
    pub fn read_many(&mut self, ranges: &[(u64, usize)]) -> Result<Vec<Vec<u8>>> {
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
            return Ok(ranges.iter().map(|_| Vec::new()).collect());
        }
        let touched: u64 = ranges.iter().map(|range| self.shape.most_touched(range.1 as u64)).sum();
        let reads = touched.div_ceil(Least::BATCH as u64);
        let blocks = self.blocks.access(wanted)?;
        self.blocks.bring_up(Least { reads, ..Least::default() })?;
        let answer = |&(offset, len): &(u64, usize)| {
            let mut bytes = Vec::with_capacity(len);
            for piece in self.shape.pieces(offset, len as u64) {
                match &blocks[places[&piece.block]] {
                    Some(block) => bytes.extend_from_slice(&block[piece.at..piece.at + piece.len]),
                    None => bytes.resize(bytes.len() + piece.len, 0),
                }
            }
            bytes
        };
        Ok(ranges.iter().map(answer).collect())
    }

    /// What other threads may read the disk with, beside all that goes on here; `None` where a read
    /// has its turn like everything else.
    pub fn reader(&self) -> Option<DiskReader> {
        self.blocks.reader().map(|blocks| DiskReader::new(blocks, self.shape))
    }

    /// Writes bytes. Blocks of which only a part is written are not read first.
    ///
    /// # Errors
    /// `Invalid` beyond the end, `Full` when the store has no space for blocks that are new; those
    /// of an access.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let len = data.len() as u64;
        self.write_with(offset, len, |from, len| data[from..from + len].to_vec())?;
        self.brought_up(self.shape.most_touched(len), 0)
    }

    /// What an operation shows follows from its kind and length, where the volume pads.
    fn brought_up(&mut self, writes: u64, discards: u64) -> Result<()> {
        self.blocks.bring_up(Least { writes, discards, ..Least::default() })
    }

    /// Makes a range read as zeros. Its whole blocks are given back, unless the caller wants them
    /// to `stay`: then they take the space that a write takes.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_zeroes(&mut self, offset: u64, len: u64, stay: bool) -> Result<()> {
        let whole = self.shape.whole_blocks(offset, len);
        if stay || whole.is_empty() {
            self.write_with(offset, len, |_, len| vec![0; len])?;
            let touched = self.shape.most_touched(len);
            // Those that are not to stay may be two edges elsewhere, with a block between them.
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
        // Both edges first: they may be refused, and then nothing has been changed.
        let edges = [(offset, first - offset), (last, end - last)];
        self.expect_room(edges.iter().map(|&(at, len)| self.absent(at, len)).sum())?;
        for (at, len) in edges {
            self.write_with(at, len, |_, len| vec![0; len])?;
        }
        self.discard(whole)?;
        self.brought_up(self.shape.most_touched(len).min(2), 1)
    }

    /// The content of a range is no longer wanted; its whole blocks are given back and read as
    /// zeros.
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

    /// What exists of a range, in at most `most` extents that differ from their neighbours; when
    /// there are more, or it takes long to look, of a range that ends earlier. Costs no access.
    ///
    /// # Errors
    /// `Invalid` beyond the end; those of a read.
    pub fn extents(&self, offset: u64, len: u64, most: usize) -> Result<Vec<Extent>> {
        self.shape.expect_inside(offset, len)?;
        let mut extents: Vec<Extent> = Vec::new();
        let mut pieces = self.shape.pieces(offset, len).take(LOOK_BLOCKS).peekable();
        while let Some(first) = pieces.peek().map(|piece| piece.block) {
            let together: Vec<_> = pieces.by_ref().take(LOOK_TOGETHER).collect();
            let present = self.blocks.present(first..first + together.len() as u64)?;
            for (piece, exists) in together.into_iter().zip(present) {
                let (full, len) = (extents.len() == most, piece.len as u64);
                match extents.last_mut() {
                    Some(last) if last.exists == exists => last.len += len,
                    _ if full => return Ok(extents),
                    _ => extents.push(Extent { len, exists }),
                }
            }
        }
        Ok(extents)
    }

    /// Whether zeros over this range cost less than writing them: some of its blocks are whole, and
    /// giving those back costs less.
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

    /// Commits, leaves nothing to be done again, and gives the volume back.
    ///
    /// # Errors
    /// Those of a commit.
    pub fn into_blocks(mut self) -> Result<Box<dyn BlockSpace>> {
        self.blocks.finish()?;
        Ok(self.blocks)
    }

    /// Blocks of a range that do not exist.
    fn absent(&self, offset: u64, len: u64) -> u64 {
        let absent = |piece: &Piece| !self.blocks.exists(piece.block);
        self.shape.pieces(offset, len).filter(absent).count() as u64
    }

    /// Refuses what the store has no space for while it can still be refused: what was accepted
    /// must be stored. The store is asked whether anything is new or not: it may see that it is.
    fn expect_room(&self, new: u64) -> Result<()> {
        match self.blocks.room()? {
            Some(room) if room < new => Err(Error::Full("the store has no space left".into())),
            _ => Ok(()),
        }
    }

    /// Writes what `bytes` gives for a part of the range, counted from its beginning.
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
            // Parts end where blocks do, so that no block is written twice.
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
