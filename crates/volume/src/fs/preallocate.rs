//! Setting blocks aside for a file before they are written.
//!
//! The blocks are mapped as unwritten (see `segments`). Setting them aside accesses nothing, and
//! they read as zeros. A write to them takes nothing that could run out: the block exists, a tail
//! has one of its own, and room for the metadata is reserved (`State::make_room`).

use super::data::too_large;
use super::inode::Inode;
use super::ops::write_op;
use super::state::State;
use super::types::{Handle, Ino, MAX_FILE};
use crate::{Error, Result};

impl State {
    pub(super) fn allocate(
        &mut self,
        handle: Handle,
        offset: u64,
        len: u64,
        keep_size: bool,
    ) -> Result<()> {
        let ino = self.handles.file(handle)?;
        let end = range_end(offset, len)?;
        let size = self.block_bytes as u64;
        let holes = self.holes(ino, offset / size, end.div_ceil(size))?;
        self.make_room(holes.saturating_add(self.unwritten_reserve(holes) + 1))?;
        let mut inode = self.meta.inode(ino)?;
        self.set_aside(ino, &mut inode, offset, end)?;
        inode.changed(self.now());
        self.grow_to(ino, &mut inode, end, keep_size)
    }

    /// Zeros a range and sets its blocks aside. Whole segments keep their blocks, which become
    /// unwritten, so only the edges are accessed.
    pub(super) fn zero_range(
        &mut self,
        handle: Handle,
        offset: u64,
        len: u64,
        keep_size: bool,
    ) -> Result<()> {
        let ino = self.handles.file(handle)?;
        let end = range_end(offset, len)?;
        let size = self.block_bytes as u64;
        let (first, stop) = (offset / size, end.div_ceil(size));
        let holes = self.holes(ino, first, stop)?;
        self.make_room(holes.saturating_add(self.unwritten_reserve(stop - first) + 1))?;
        let mut inode = self.meta.inode(ino)?;
        self.zero_edges(ino, &mut inode, offset, end)?;
        let (first, stop) = self.whole_segments(&inode, offset, end);
        for run in self.meta.mark(ino, first, stop, true)? {
            self.counters.unwritten += run.count;
            run.blocks().for_each(|block| self.cache.remove(block));
        }
        self.set_aside(ino, &mut inode, offset, end)?;
        inode.modified(self.now());
        self.grow_to(ino, &mut inode, end, keep_size)
    }

    /// Gives every segment of a range a block, and the tail before or in it too.
    fn set_aside(&mut self, ino: Ino, inode: &mut Inode, offset: u64, end: u64) -> Result<()> {
        let size = self.block_bytes as u64;
        let (first, stop) = (offset / size, end.div_ceil(size));
        if inode.size / size < stop && self.floats(ino, inode) {
            self.settle_tail(ino, inode)?;
        }
        let mut missing = Vec::new();
        let mut at = first;
        for run in self.meta.extents(ino, first, stop)? {
            missing.extend(at..run.segment);
            at = run.end();
        }
        missing.extend(at..stop);
        let blocks = self.pool.lock().take_many(missing.len())?;
        let placed: Vec<(u64, u64)> = missing.into_iter().zip(blocks).collect();
        self.meta.map_segments(ino, &placed, true)?;
        inode.blocks += placed.len() as u64;
        self.counters.unwritten += placed.len() as u64;
        self.meta.put_inode(ino, inode)
    }

    /// Gives a buffered or packed tail a block of its own.
    fn settle_tail(&mut self, ino: Ino, inode: &mut Inode) -> Result<()> {
        let content = match (self.tails.get(ino), inode.pack) {
            (Some(tail), _) => tail.to_vec(),
            (None, Some(pack)) => self.pack_read(ino, inode, pack)?,
            (None, None) => return Ok(()),
        };
        let block = self.pool.lock().take_many(1)?;
        let written = self.pool.lock().access(vec![write_op(block[0], content)]);
        if let Err(error) = written {
            self.pool.lock().release_all(&block);
            return Err(error);
        }
        let segment = inode.size / self.block_bytes as u64;
        self.meta.map_segments(ino, &[(segment, block[0])], false)?;
        inode.blocks += 1;
        self.forget_tail(ino, inode)?;
        self.meta.put_inode(ino, inode)
    }

    /// Ends an operation that may lengthen a file.
    fn grow_to(&mut self, ino: Ino, inode: &mut Inode, end: u64, keep_size: bool) -> Result<()> {
        if !keep_size && end > inode.size {
            self.extend(ino, inode, end)?;
            inode.modified(self.now());
        }
        self.meta.put_inode(ino, inode)?;
        // The edges of zeros, the tail, and the old end.
        self.expect_edges();
        self.expect_edges();
        self.flush_surplus()
    }
}

/// The end of a range, which must have bytes and fit in a file.
pub(super) fn range_end(offset: u64, len: u64) -> Result<u64> {
    if len == 0 {
        return Err(Error::Invalid("a range of no bytes".into()));
    }
    offset.checked_add(len).filter(|&end| end <= MAX_FILE).ok_or_else(too_large)
}
