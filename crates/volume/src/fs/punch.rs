//! Making holes: gives whole blocks back and overwrites the edges with zeros.

use super::data::Plan;
use super::inode::Inode;
use super::preallocate::range_end;
use super::state::State;
use super::types::{Handle, Ino};
use crate::Result;

impl State {
    pub(super) fn punch(&mut self, handle: Handle, offset: u64, len: u64) -> Result<()> {
        let ino = self.handles.file(handle)?;
        let end = range_end(offset, len)?;
        match self.rewrites_tail(ino, offset, end)? {
            true => self.make_rewrite()?,
            false => self.make_way()?,
        }
        let mut inode = self.meta.inode(ino)?;
        self.zero_edges(ino, &mut inode, offset, end)?;
        let (first, stop) = self.whole_segments(&inode, offset, end);
        let freed = self.meta.unmap(ino, first, stop)?;
        self.release_runs(&mut inode, &freed);
        inode.modified(self.now());
        self.meta.put_inode(ino, &inode)?;
        self.expect_edges();
        self.flush_surplus()
    }

    /// Whether a range covers a part, but not all, of a tail without a block of its own.
    fn rewrites_tail(&self, ino: Ino, offset: u64, end: u64) -> Result<bool> {
        let inode = self.meta.inode(ino)?;
        let start = inode.size - inode.size % self.block_bytes as u64;
        let touched = offset < inode.size && end > start;
        let covered = offset <= start && end >= inode.size;
        Ok(touched && !covered && self.floats(ino, &inode))
    }

    /// The segments that a range covers whole; bytes behind the end of the file do not count.
    pub(super) fn whole_segments(&self, inode: &Inode, offset: u64, end: u64) -> (u64, u64) {
        let size = self.block_bytes as u64;
        let stop = match end >= inode.size {
            true => (end / size).max(inode.size.div_ceil(size)),
            false => end / size,
        };
        let first = offset.div_ceil(size);
        (first, stop.max(first))
    }

    /// Zeros a range's parts of segments that it does not cover whole, with one access, and forgets
    /// a tail that it does.
    pub(super) fn zero_edges(
        &mut self,
        ino: Ino,
        inode: &mut Inode,
        offset: u64,
        end: u64,
    ) -> Result<()> {
        let size = self.block_bytes as u64;
        let (first, stop) = self.whole_segments(inode, offset, end);
        let tail_segment = inode.size / size;
        let end = end.min(inode.size);
        let mut edges = vec![(offset, end.min(first * size))];
        edges.push((offset.max(stop * size), end));
        let mut plan = Plan::default();
        for (from, to) in edges.into_iter().filter(|(from, to)| from < to) {
            if self.stored(ino, inode, from / size)? {
                let zeros = vec![0; (to - from) as usize];
                let tail = self.tail_for_write(ino, inode, from, zeros.len())?;
                plan.add(self.plan(ino, inode, from, &zeros, tail)?);
            }
        }
        self.apply(ino, inode, plan)?;
        if (first..stop).contains(&tail_segment) {
            self.forget_tail(ino, inode)?;
        }
        self.meta.put_inode(ino, inode)
    }
}
