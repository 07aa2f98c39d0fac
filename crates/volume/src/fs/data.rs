//! Writing, extending and cutting off file data: one access for all blocks of a range.
//!
//! A block's bytes behind the end of its file are undefined, so every extension of a file writes
//! zeros there first.

use super::around::named;
use super::inode::Inode;
use super::ops::{patch_op, write_op};
use super::segments::Extent;
use super::state::State;
use super::tables::ORPHANS;
use super::types::{FileKind, Handle, Ino, MAX_FILE};
use crate::{Error, Result};
use oblivio_engine::BlockOp;
use std::iter::Peekable;
use std::ops::Range;

/// What a write does: block operations, and what to record afterwards.
#[derive(Default)]
pub(super) struct Plan {
    /// Segments that get a block, with its content.
    fresh: Vec<(u64, Vec<u8>)>,
    /// Operations on blocks that the file already has.
    ops: Vec<BlockOp>,
    /// Segments with blocks set aside that get their first content.
    first_writes: Vec<u64>,
    /// The tail to buffer from now on.
    tail: Option<Vec<u8>>,
    /// Whether the old tail has a block of its own from now on.
    tail_done: bool,
    /// The bytes of the file in blocks that get new content in part.
    in_part: Vec<Range<u64>>,
}

impl Plan {
    /// Adds a plan for other segments of the same file.
    pub(super) fn add(&mut self, other: Plan) {
        self.fresh.extend(other.fresh);
        self.ops.extend(other.ops);
        self.first_writes.extend(other.first_writes);
        self.tail = self.tail.take().or(other.tail);
        self.tail_done |= other.tail_done;
        self.in_part.extend(other.in_part);
    }
}

impl State {
    pub(super) fn write(&mut self, handle: Handle, offset: u64, data: &[u8]) -> Result<()> {
        let ino = self.handles.file(handle)?;
        let end = offset.checked_add(data.len() as u64);
        let end = end.filter(|&end| end <= MAX_FILE).ok_or_else(too_large)?;
        if data.is_empty() {
            return Ok(());
        }
        match self.blocks_for_write(ino, offset, end)? {
            // An overwrite, or a write to blocks set aside, must not fail for want of space.
            (0, false) => self.make_way()?,
            (0, true) => self.make_rewrite()?,
            (blocks, _) => self.make_room(blocks)?,
        }
        let mut inode = self.meta.inode(ino)?;
        if offset > inode.size {
            self.extend(ino, &mut inode, offset)?;
        }
        self.write_within(ino, &mut inode, offset, data)?;
        self.expect_write(data.len());
        self.flush_surplus()
    }

    /// The most blocks that a write may take, and whether it rewrites a shared tail, in its length.
    fn blocks_for_write(&self, ino: Ino, offset: u64, end: u64) -> Result<(u64, bool)> {
        let size = self.block_bytes as u64;
        let (first, stop) = (offset / size, end.div_ceil(size));
        let inode = self.meta.inode(ino)?;
        // A tail before the range becomes a whole segment.
        let tail = offset > inode.size && inode.size / size < first && self.floats(ino, &inode);
        let blocks = self.holes(ino, first, stop)? + u64::from(tail);
        // The tail's segment is one of those without a block.
        let rewrites =
            end <= inode.size && end > inode.size / size * size && self.floats(ino, &inode);
        Ok((blocks - u64::from(rewrites), rewrites))
    }

    /// How many segments in a range have no block.
    pub(super) fn holes(&self, ino: Ino, first: u64, stop: u64) -> Result<u64> {
        let mapped: u64 = self.meta.extents(ino, first, stop)?.iter().map(|run| run.count).sum();
        Ok(stop.saturating_sub(first) - mapped)
    }

    /// Whether a file's tail is buffered or in a shared block. Then no segment from it on has a
    /// block, so blocks set aside behind a tail stay writable when the volume is full.
    pub(super) fn floats(&self, ino: Ino, inode: &Inode) -> bool {
        self.tails.contains(ino) || inode.pack.is_some()
    }

    /// Writes a range that begins at or before the end of the file.
    fn write_within(
        &mut self,
        ino: Ino,
        inode: &mut Inode,
        offset: u64,
        data: &[u8],
    ) -> Result<()> {
        let new_size = inode.size.max(offset + data.len() as u64);
        let tail = self.tail_for_write(ino, inode, offset, data.len())?;
        let plan = self.plan(ino, inode, offset, data, tail)?;
        self.apply(ino, inode, plan)?;
        self.set_size(inode, new_size);
        inode.modified(self.now());
        self.meta.put_inode(ino, inode)
    }

    /// The old tail's content, if a write touches it and it has no block of its own: from the
    /// buffer or the shared block, or zeros if the write covers it all.
    pub(super) fn tail_for_write(
        &mut self,
        ino: Ino,
        inode: &Inode,
        offset: u64,
        len: usize,
    ) -> Result<Option<(u64, Vec<u8>)>> {
        let size = self.block_bytes as u64;
        let tail_len = (inode.size % size) as usize;
        let segment = inode.size / size;
        let end = offset + len as u64;
        if tail_len == 0 || end <= segment * size {
            return Ok(None);
        }
        let covered = offset <= segment * size && end >= inode.size;
        let content = match (self.tails.get(ino), inode.pack) {
            (None, None) => return Ok(None),
            _ if covered => vec![0; tail_len],
            (Some(tail), _) => tail.to_vec(),
            (None, Some(pack)) => self.pack_read(ino, inode, pack)?,
        };
        Ok(Some((segment, content)))
    }

    pub(super) fn plan(
        &self,
        ino: Ino,
        inode: &Inode,
        offset: u64,
        data: &[u8],
        mut tail: Option<(u64, Vec<u8>)>,
    ) -> Result<Plan> {
        let size = self.block_bytes as u64;
        let end = offset + data.len() as u64;
        let new_size = inode.size.max(end);
        let runs = self.meta.extents(ino, offset / size, end.div_ceil(size))?;
        let mut runs = runs.into_iter().peekable();
        let mut plan = Plan::default();
        for segment in offset / size..end.div_ceil(size) {
            let start = segment * size;
            let (from, to) = (start.max(offset), (start + size).min(end));
            let bytes = &data[(from - offset) as usize..(to - offset) as usize];
            let at = (from - start) as usize;
            let valid = (new_size - start).min(size) as usize;
            let place = place_of(&mut runs, segment);
            let old_tail = tail.take_if(|(tail_segment, _)| *tail_segment == segment);
            if let (None, Some((block, false))) = (&old_tail, place) {
                if at == 0 && bytes.len() == valid {
                    plan.ops.push(write_op(block, bytes.to_vec()));
                } else {
                    plan.ops.push(patch_op(block, at, bytes.to_vec()));
                    plan.in_part.push(start..start + valid as u64);
                }
                continue;
            }
            let had_tail = old_tail.is_some();
            let mut content = old_tail.map(|(_, content)| content).unwrap_or_default();
            content.resize(valid, 0);
            content[at..at + bytes.len()].copy_from_slice(bytes);
            if let Some((block, unwritten)) = place {
                plan.ops.push(write_op(block, content));
                plan.first_writes.extend(unwritten.then_some(segment));
            } else if valid < self.block_bytes && !self.meta.maps_from(ino, segment)? {
                plan.tail = Some(content);
                continue;
            } else {
                plan.fresh.push((segment, content));
            }
            plan.tail_done |= had_tail;
        }
        Ok(plan)
    }

    /// Carries a plan out; if the blocks cannot be written, the file keeps those that it has.
    ///
    /// # Errors
    /// `Lost` names the blocks that were to be written in part, of which one is lost.
    pub(super) fn apply(&mut self, ino: Ino, inode: &mut Inode, plan: Plan) -> Result<()> {
        let Plan { fresh, mut ops, first_writes, tail, tail_done, in_part } = plan;
        for op in &ops {
            self.cache.remove(op.id.0);
        }
        let ids = self.pool.lock().take_many(fresh.len())?;
        let mut placed = Vec::with_capacity(ids.len());
        for ((segment, content), &id) in fresh.into_iter().zip(&ids) {
            placed.push((segment, id));
            ops.push(write_op(id, content));
        }
        let written = self.pool.lock().access(ops);
        if let Err(error) = written {
            self.pool.lock().release_all(&ids);
            return Err(named(error, || in_part));
        }
        inode.blocks += placed.len() as u64;
        self.meta.map_segments(ino, &placed, false)?;
        // A write covers its range without gaps, so there are few runs.
        for run in first_writes.chunk_by(|a, b| a + 1 == *b) {
            let written = self.meta.mark(ino, run[0], run[0] + run.len() as u64, false)?;
            self.wrote(written.iter().map(|run| run.count).sum());
        }
        if tail_done {
            self.forget_tail(ino, inode)?;
        }
        if let Some(tail) = tail {
            self.tails.insert(ino, tail);
        }
        Ok(())
    }

    /// Counts `blocks` as no longer unwritten. A check finds a wrong count. Here it must not wrap
    /// around, or everything would be reserved for it.
    fn wrote(&mut self, blocks: u64) {
        self.counters.unwritten = self.counters.unwritten.saturating_sub(blocks);
    }

    /// Drops the old tail's buffer and piece: it is a whole segment now, or cut off.
    pub(super) fn forget_tail(&mut self, ino: Ino, inode: &mut Inode) -> Result<()> {
        self.tails.remove(ino);
        match inode.pack.take() {
            Some(pack) => self.pack_remove(ino, pack),
            None => Ok(()),
        }
    }

    fn set_size(&mut self, inode: &mut Inode, size: u64) {
        self.counters.logical_bytes = self.counters.logical_bytes - inode.size + size;
        inode.size = size;
    }

    /// Changes a file's size; the caller stores the inode.
    pub(super) fn resize(&mut self, ino: Ino, inode: &mut Inode, size: u64) -> Result<()> {
        if size > MAX_FILE {
            return Err(too_large());
        }
        match size.cmp(&inode.size) {
            std::cmp::Ordering::Less => self.cut(ino, inode, size),
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => self.extend(ino, inode, size),
        }
    }

    /// Extends a file with zeros. Only its old last segment is written; segments behind it take no
    /// block.
    pub(super) fn extend(&mut self, ino: Ino, inode: &mut Inode, to: u64) -> Result<()> {
        let size = self.block_bytes as u64;
        let stop = inode.size.next_multiple_of(size).min(to);
        let zeros = vec![0; (stop - inode.size) as usize];
        if !zeros.is_empty() && self.stored(ino, inode, inode.size / size)? {
            let offset = inode.size;
            let tail = self.tail_for_write(ino, inode, offset, zeros.len())?;
            let plan = self.plan(ino, inode, offset, &zeros, tail)?;
            self.apply(ino, inode, plan)?;
        }
        self.set_size(inode, to);
        self.meta.put_inode(ino, inode)
    }

    /// Whether a segment has content; without it, it reads as zeros.
    pub(super) fn stored(&self, ino: Ino, inode: &Inode, segment: u64) -> Result<bool> {
        let tail = segment == inode.size / self.block_bytes as u64 && self.floats(ino, inode);
        Ok(tail || self.meta.extent_at(ino, segment)?.is_some_and(|run| !run.unwritten))
    }

    /// Cuts a file off.
    fn cut(&mut self, ino: Ino, inode: &mut Inode, to: u64) -> Result<()> {
        let size = self.block_bytes as u64;
        let freed = self.meta.unmap(ino, to.div_ceil(size), u64::MAX)?;
        self.release_runs(inode, &freed);
        let tail_len = (to % size) as usize;
        if tail_len == 0 || to / size != inode.size / size {
            self.forget_tail(ino, inode)?;
        } else if let Some(mut tail) = self.tails.remove(ino) {
            tail.truncate(tail_len);
            self.tails.insert(ino, tail);
        } else if let Some(pack) = inode.pack {
            self.pack_shorten(ino, pack, tail_len)?;
        }
        self.set_size(inode, to);
        self.meta.put_inode(ino, inode)
    }

    /// Gives back the blocks of runs that a file no longer maps.
    pub(super) fn release_runs(&mut self, inode: &mut Inode, runs: &[Extent]) {
        for run in runs {
            inode.blocks -= run.count;
            self.freed(run.count);
            self.wrote(if run.unwritten { run.count } else { 0 });
            let blocks: Vec<u64> = run.blocks().collect();
            self.release(&blocks);
        }
    }

    /// Removes an inode with all its data and attributes.
    pub(super) fn remove_inode(&mut self, ino: Ino) -> Result<()> {
        let mut inode = self.meta.inode(ino)?;
        self.forget_xattrs(ino, &inode)?;
        match inode.kind {
            FileKind::Directory => self.counters.directories -= 1,
            FileKind::File => {
                self.cut(ino, &mut inode, 0)?;
                self.counters.files -= 1;
            }
            _ => self.counters.files -= 1,
        }
        self.meta.open(ORPHANS)?.remove(ino)?;
        self.meta.remove_inode(ino)
    }
}

/// A segment's block, and whether it is unwritten; call it for segments in order.
fn place_of(
    runs: &mut Peekable<impl Iterator<Item = Extent>>,
    segment: u64,
) -> Option<(u64, bool)> {
    while runs.next_if(|run| run.end() <= segment).is_some() {}
    let run = runs.peek().filter(|run| run.segment <= segment)?;
    Some((run.block + (segment - run.segment), run.unwritten))
}

pub(super) fn too_large() -> Error {
    Error::TooLarge(format!("a file has at most {MAX_FILE} bytes"))
}
