//! Writing, extending and cutting off file data: one access for all blocks of a range.
//!
//! What a block holds behind the end of its file is undefined; so whatever makes a file longer
//! writes zeros there first.

use super::pool::{patch_op, write_op};
use super::state::State;
use super::tables::{Inode, ORPHANS};
use super::types::{FileKind, Handle, Ino};
use crate::{Error, Result};
use oblivio_engine::BlockOp;
use std::collections::HashMap;

const MAX_FILE: u64 = i64::MAX as u64;

/// What a write does: block operations, and what is recorded once they are done.
#[derive(Default)]
struct Plan {
    /// Segments that get a block, with its content.
    fresh: Vec<(u64, Vec<u8>)>,
    /// Operations on blocks that the file has already.
    ops: Vec<BlockOp>,
    /// The tail to be buffered from now on.
    tail: Option<Vec<u8>>,
    /// The old tail became a whole segment.
    tail_done: bool,
}

impl State {
    pub(super) fn write(&mut self, handle: Handle, offset: u64, data: &[u8]) -> Result<()> {
        let ino = self.handle_ino(handle)?;
        let end = offset.checked_add(data.len() as u64);
        let end = end.filter(|&end| end <= MAX_FILE).ok_or_else(too_large)?;
        if data.is_empty() {
            return Ok(());
        }
        let size = self.block_bytes as u64;
        let (first, stop) = (offset / size, end.div_ceil(size));
        let mapped: u64 = self.meta.extents(ino, first, stop)?.iter().map(|run| run.count).sum();
        // One more for a tail before the range that becomes a whole segment.
        self.make_room(stop - first - mapped + 1)?;
        let mut inode = self.meta.inode(ino)?;
        if offset > inode.size {
            self.extend(ino, &mut inode, offset)?;
        }
        self.write_within(ino, &mut inode, offset, data)?;
        self.flush_surplus()
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
        if let Some(now) = self.now() {
            (inode.mtime, inode.ctime) = (now, now);
        }
        self.meta.put_inode(ino, inode)
    }

    /// The old tail's content when a write touches it and it is not in a block of its own: from
    /// the buffer or the shared block, or zeros when it is all overwritten anyway.
    fn tail_for_write(
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
            (None, Some(pack)) => self.pack_read(ino, pack)?,
        };
        Ok(Some((segment, content)))
    }

    fn plan(
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
        let blocks = self.blocks_of(ino, offset / size, end.div_ceil(size))?;
        let mut plan = Plan::default();
        for segment in offset / size..end.div_ceil(size) {
            let start = segment * size;
            let (from, to) = (start.max(offset), (start + size).min(end));
            let bytes = &data[(from - offset) as usize..(to - offset) as usize];
            let at = (from - start) as usize;
            let valid = (new_size - start).min(size) as usize;
            let block = blocks.get(&segment).copied();
            let old_tail = tail.take_if(|(tail_segment, _)| *tail_segment == segment);
            plan.tail_done |= old_tail.is_some() && valid == self.block_bytes;
            if let (None, Some(block)) = (&old_tail, block) {
                plan.ops.push(match at == 0 && bytes.len() == valid {
                    true => write_op(block, bytes.to_vec()),
                    false => patch_op(block, at, bytes.to_vec()),
                });
                continue;
            }
            let mut content = old_tail.map(|(_, content)| content).unwrap_or_default();
            content.resize(valid, 0);
            content[at..at + bytes.len()].copy_from_slice(bytes);
            match block {
                _ if valid < self.block_bytes => plan.tail = Some(content),
                Some(block) => plan.ops.push(write_op(block, content)),
                None => plan.fresh.push((segment, content)),
            }
        }
        Ok(plan)
    }

    fn blocks_of(&self, ino: Ino, first: u64, stop: u64) -> Result<HashMap<u64, u64>> {
        let mut blocks = HashMap::new();
        for run in self.meta.extents(ino, first, stop)? {
            blocks.extend((0..run.count).map(|step| (run.segment + step, run.block + step)));
        }
        Ok(blocks)
    }

    /// Carries a plan out; when the blocks cannot be written, nothing has changed.
    fn apply(&mut self, ino: Ino, inode: &mut Inode, plan: Plan) -> Result<()> {
        let Plan { fresh, mut ops, tail, tail_done } = plan;
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
            return Err(error);
        }
        inode.blocks += placed.len() as u64;
        self.meta.map_segments(ino, &placed)?;
        if tail_done {
            self.forget_tail(ino, inode)?;
        }
        if let Some(tail) = tail {
            self.tails.insert(ino, tail);
        }
        Ok(())
    }

    /// The old tail is a whole segment now, or cut off: its buffer and its piece go.
    fn forget_tail(&mut self, ino: Ino, inode: &mut Inode) -> Result<()> {
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

    /// Makes a file longer with zeros. Only its old last segment is written, segments behind it
    /// take no block.
    fn extend(&mut self, ino: Ino, inode: &mut Inode, to: u64) -> Result<()> {
        let size = self.block_bytes as u64;
        let stop = inode.size.next_multiple_of(size).min(to);
        let zeros = vec![0; (stop - inode.size) as usize];
        let segment = inode.size / size;
        let stored = self.tails.contains(ino)
            || inode.pack.is_some()
            || !self.meta.extents(ino, segment, segment + 1)?.is_empty();
        if !zeros.is_empty() && stored {
            let offset = inode.size;
            let tail = self.tail_for_write(ino, inode, offset, zeros.len())?;
            let plan = self.plan(ino, inode, offset, &zeros, tail)?;
            self.apply(ino, inode, plan)?;
        }
        self.set_size(inode, to);
        self.meta.put_inode(ino, inode)
    }

    /// Cuts a file off.
    fn cut(&mut self, ino: Ino, inode: &mut Inode, to: u64) -> Result<()> {
        let size = self.block_bytes as u64;
        let freed = self.meta.unmap_from(ino, to.div_ceil(size))?;
        inode.blocks -= freed.len() as u64;
        self.release(&freed);
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

    /// Removes an inode and all its data.
    pub(super) fn remove_inode(&mut self, ino: Ino) -> Result<()> {
        let mut inode = self.meta.inode(ino)?;
        match inode.kind {
            FileKind::Directory => self.counters.directories -= 1,
            FileKind::File => {
                self.cut(ino, &mut inode, 0)?;
                self.counters.files -= 1;
            }
            FileKind::Symlink => self.counters.files -= 1,
        }
        self.meta.open(ORPHANS)?.remove(ino)?;
        self.meta.remove_inode(ino)
    }
}

fn too_large() -> Error {
    Error::Invalid("the file would be too large".into())
}
