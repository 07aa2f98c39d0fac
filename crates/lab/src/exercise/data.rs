//! Operations on the content of files.

use super::model::{clear, compare, put, same};
use super::state::Exercise;
use crate::mapped;
use anyhow::{Result, ensure};
use rustix::fs::{Advice, FallocateFlags, SeekFrom};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

impl Exercise {
    pub(super) fn write(&mut self) -> Result<()> {
        let slot = self.slot();
        let (offset, len) = self.range(self.size);
        let data = self.noise(len);
        self.tell(format!("[{slot}] write {offset} +{len}"));
        self.open[slot].file.write_all_at(&data, offset)?;
        put(&mut self.node(slot), offset, &data);
        Ok(())
    }

    pub(super) fn append(&mut self) -> Result<()> {
        let Some(name) = self.some_name() else { return Ok(()) };
        let node = Rc::clone(&self.names[&name]);
        let (at, most) = (node.borrow().len() as u64, 1 << self.rng.below(14));
        let len = (self.rng.below(most) + 1).min(self.size.saturating_sub(at));
        let data = self.noise(len);
        self.tell(format!("{name} append +{len}"));
        let mut file = File::options().append(true).open(self.path(&name))?;
        file.write_all(&data)?;
        node.borrow_mut().extend_from_slice(&data);
        Ok(())
    }

    pub(super) fn read(&mut self) -> Result<()> {
        let slot = self.slot();
        let (offset, len) = self.range(self.size);
        self.tell(format!("[{slot}] read {offset} +{len}"));
        let open = &self.open[slot];
        compare(&open.file, &open.node.borrow(), offset, len)
    }

    pub(super) fn mapped_write(&mut self) -> Result<()> {
        let slot = self.slot();
        let (offset, len) = self.range(self.len(slot));
        if len == 0 {
            return Ok(());
        }
        let data = self.noise(len);
        let flush = self.rng.below(4) == 0;
        self.tell(format!("[{slot}] mapped write {offset} +{len}, flushed: {flush}"));
        mapped::write(&self.open[slot].file, offset, &data, flush)?;
        put(&mut self.node(slot), offset, &data);
        Ok(())
    }

    pub(super) fn mapped_read(&mut self) -> Result<()> {
        let slot = self.slot();
        let (offset, len) = self.range(self.len(slot));
        if len == 0 {
            return Ok(());
        }
        self.tell(format!("[{slot}] mapped read {offset} +{len}"));
        let open = &self.open[slot];
        let read = mapped::read(&open.file, offset, len as usize)?;
        same(&read, &open.node.borrow()[offset as usize..][..len as usize], offset)
    }

    pub(super) fn truncate(&mut self) -> Result<()> {
        let (slot, to) = (self.slot(), self.offset(self.size));
        self.tell(format!("[{slot}] truncate {} to {to}", self.len(slot)));
        self.open[slot].file.set_len(to)?;
        self.node(slot).resize(to as usize, 0);
        Ok(())
    }

    pub(super) fn truncate_by_name(&mut self) -> Result<()> {
        let Some(name) = self.some_name() else { return Ok(()) };
        let to = self.offset(self.size);
        self.tell(format!("{name} truncate to {to}"));
        File::options().write(true).open(self.path(&name))?.set_len(to)?;
        self.names[&name].borrow_mut().resize(to as usize, 0);
        Ok(())
    }

    pub(super) fn punch(&mut self) -> Result<()> {
        let slot = self.slot();
        let (offset, len) = self.range(self.size);
        self.tell(format!("[{slot}] punch {offset} +{len}"));
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if fallocate(&self.open[slot].file, flags, offset, len)? {
            clear(&mut self.node(slot), offset, len);
        }
        Ok(())
    }

    pub(super) fn zero_range(&mut self) -> Result<()> {
        let slot = self.slot();
        let (offset, len) = self.range(self.size);
        let keep = self.keep_size();
        self.tell(format!("[{slot}] zero range {offset} +{len} {keep:?}"));
        let flags = FallocateFlags::ZERO_RANGE | keep;
        if fallocate(&self.open[slot].file, flags, offset, len)? {
            clear(&mut self.node(slot), offset, len);
            self.grow(slot, offset + len, keep);
        }
        Ok(())
    }

    pub(super) fn allocate(&mut self) -> Result<()> {
        let slot = self.slot();
        let (offset, len) = self.range(self.size);
        let keep = self.keep_size();
        self.tell(format!("[{slot}] allocate {offset} +{len} {keep:?}"));
        if fallocate(&self.open[slot].file, keep, offset, len)? {
            self.grow(slot, offset + len, keep);
        }
        Ok(())
    }

    pub(super) fn keep_size(&mut self) -> FallocateFlags {
        match self.rng.below(2) {
            0 => FallocateFlags::empty(),
            _ => FallocateFlags::KEEP_SIZE,
        }
    }

    pub(super) fn grow(&self, slot: usize, end: u64, keep: FallocateFlags) {
        if keep.is_empty() && end > self.len(slot) {
            self.node(slot).resize(end as usize, 0);
        }
    }

    pub(super) fn copy_range(&mut self) -> Result<()> {
        let (from, to) = (self.slot(), self.slot());
        let (mut source, len) = self.range(self.len(from));
        if len == 0 {
            return Ok(());
        }
        let mut target = self.offset(self.size - len);
        if Rc::ptr_eq(&self.open[from].node, &self.open[to].node) && source.abs_diff(target) < len {
            return Ok(());
        }
        self.tell(format!("[{from}] copy {source} +{len} to [{to}] {target}"));
        let data = self.node(from)[source as usize..][..len as usize].to_vec();
        let (reader, writer) = (&self.open[from].file, &self.open[to].file);
        let start = target;
        let mut left = len as usize;
        while left > 0 {
            let asked = (Some(&mut source), Some(&mut target));
            let copied = rustix::fs::copy_file_range(reader, asked.0, writer, asked.1, left)?;
            ensure!(copied > 0, "nothing was copied, though {left} bytes are left");
            left -= copied;
        }
        put(&mut self.node(to), start, &data);
        Ok(())
    }

    /// Checks that only zeros lie between a place and the next data, or where a hole begins.
    pub(super) fn seek(&mut self) -> Result<()> {
        let slot = self.slot();
        let at = self.offset(self.len(slot));
        self.tell(format!("[{slot}] seek from {at}"));
        let open = &self.open[slot];
        let node = open.node.borrow();
        let found = |from| match rustix::fs::seek(&open.file, from) {
            Err(Errno::NXIO) => Ok(node.len()),
            found => found.map(|found| found as usize),
        };
        let data = found(SeekFrom::Data(at))?;
        ensure!(data <= node.len(), "data at {data}, behind the end");
        let between = node.get(at as usize..data).unwrap_or_default();
        ensure!(between.iter().all(|&byte| byte == 0), "data before {data} was not found");
        let hole = found(SeekFrom::Hole(at))?;
        ensure!(hole <= node.len(), "a hole at {hole}, behind the end");
        ensure!(node.get(hole).is_none_or(|&byte| byte == 0), "the hole at {hole} has data");
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<()> {
        let (slot, all) = (self.slot(), self.rng.below(4) == 0);
        self.tell(format!("[{slot}] sync, all files: {all}"));
        match all {
            true => rustix::fs::syncfs(&self.open[slot].file)?,
            false => self.open[slot].file.sync_data()?,
        }
        Ok(())
    }

    /// Makes the next reads come from the file system.
    pub(super) fn drop_cache(&mut self) -> Result<()> {
        let slot = self.slot();
        self.tell(format!("[{slot}] drop the cache"));
        let open = &self.open[slot];
        open.file.sync_all()?;
        rustix::fs::fadvise(&open.file, 0, None, Advice::DontNeed)?;
        let node = open.node.borrow();
        compare(&open.file, &node, 0, node.len() as u64 + 1)
    }
}

/// `false` where the file system does not support it.
fn fallocate(file: &File, flags: FallocateFlags, offset: u64, len: u64) -> Result<bool> {
    match rustix::fs::fallocate(file, flags, offset, len) {
        Err(Errno::OPNOTSUPP) => Ok(false),
        done => Ok(done.map(|()| true)?),
    }
}
