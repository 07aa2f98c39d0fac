//! Files cut, extended and punched.

use crate::attempt::Attempted;
use crate::client::PrivateFs;
use crate::dirty::{Dirty, pieces};
use crate::error::{Error, Result};
use crate::inode::{DataForm, Inode};
use crate::layout;
use crate::node::NodeAttr;
use crate::transactions::{Action, Ask, Compare, Owner, Session, TOGETHER};
use crate::types::{FileKind, MAX_FILE, MODE_BITS, SetAttr};

/// Moves inline data to a block. The caller asks for the inode.
pub fn plan_blocks(attempt: &mut Attempted<'_>, inode: &mut Inode) {
    let first = u64::from(!inode.inline.is_empty());
    if first > 0 {
        let action = Action::Write(std::mem::take(&mut inode.inline));
        attempt.ask(Ask::change(layout::data(inode.id, 0), action, Compare::Always));
    }
    // A client that died may have left pages there.
    forget(attempt, inode.id, first);
    (inode.form, inode.guard) = (DataForm::Blocks, attempt.fs.random());
}

/// Gives a file another length: at most three asks, that for the inode among them.
pub fn plan_resize(attempt: &mut Attempted<'_>, inode: &mut Inode, size: u64) {
    let (fs, stamp) = (attempt.fs, inode.stamp);
    plan_pages(attempt, inode, size);
    inode.modified(fs.random(), fs.now());
    attempt.ask(inode.replace(stamp, fs.block_bytes));
}

fn plan_pages(attempt: &mut Attempted<'_>, inode: &mut Inode, size: u64) {
    let fs = attempt.fs;
    let block_bytes = fs.block_bytes as u64;
    match inode.form {
        _ if size == inode.size => {}
        DataForm::Inline if inode.fits_inline(size, fs.block_bytes) => {
            inode.inline.resize(size as usize, 0);
            inode.guard = fs.random();
        }
        DataForm::Inline => plan_blocks(attempt, inode),
        DataForm::Blocks if size == 0 => {
            forget(attempt, inode.id, 0);
            (inode.form, inode.guard) = (DataForm::Inline, fs.random());
        }
        DataForm::Blocks => {
            let end = size.min(inode.size);
            forget(attempt, inode.id, end.div_ceil(block_bytes));
            let within = (end % block_bytes) as usize;
            if within > 0 {
                zero(attempt, inode.id, end / block_bytes, within..fs.block_bytes);
            }
            inode.guard = fs.random();
        }
    }
    inode.size = size;
}

fn forget(attempt: &mut Attempted<'_>, id: Owner, from: u64) {
    attempt.ask(Ask::forget(layout::data(id, from)));
}

fn zero(attempt: &mut Attempted<'_>, id: Owner, page: u64, part: std::ops::Range<usize>) {
    let action = Action::Patch { offset: part.start, bytes: vec![0; part.len()] };
    attempt.ask(Ask::change(layout::data(id, page), action, Compare::Always));
}

impl PrivateFs {
    /// Changes attributes.
    ///
    /// # Errors
    /// `IsADirectory`, `Invalid` or `TooLarge` for a size; `Stale` if it was removed.
    pub fn set_attr(&self, id: Owner, set: SetAttr) -> Result<NodeAttr> {
        if set.size.is_some_and(|size| size > MAX_FILE) {
            return Err(Error::TooLarge);
        }
        let asks_for_times = set.mtime.is_some() || set.size.is_some();
        if self.open_file(id).is_none() {
            return self.set_attr_now(id, None, set);
        }
        self.with_file(id, |file| {
            match set.size {
                Some(0) => {
                    self.keep_locks(id, file)?;
                    file.dirty = Dirty::default();
                }
                // What waits has times of its own.
                _ if asks_for_times => self.flush_file(id, file)?,
                _ => {}
            }
            self.set_attr_now(id, file.locks.filter(|_| set.size.is_some()), set)
        })
        .map(|attr| self.with_waiting(attr))
    }

    fn set_attr_now(&self, id: Owner, only: Option<Session>, set: SetAttr) -> Result<NodeAttr> {
        self.change_in(only, |attempt| {
            let mut inode = attempt.inode(id)?;
            let stamp = inode.stamp;
            match (set.size, inode.kind) {
                (Some(_), FileKind::Directory) => return Err(Error::IsADirectory),
                (Some(_), FileKind::File) | (None, _) => {}
                (Some(_), _) => return Err(Error::Invalid("no file with a size")),
            }
            let now = self.now();
            inode.changed(self.random(), set.ctime.unwrap_or(now));
            if let Some(size) = set.size {
                plan_pages(attempt, &mut inode, size);
                inode.mtime = now;
            }
            apply(&mut inode, set);
            attempt.ask(inode.replace(stamp, self.block_bytes));
            Ok(inode.attr())
        })
    }

    /// Makes a stretch of a file zeros, as far as the file goes. Whole pages take no room then.
    ///
    /// # Errors
    /// `Invalid` for anything but a file; those of the transactions.
    pub fn punch(&self, id: Owner, offset: u64, len: u64) -> Result<()> {
        self.with_file(id, |file| {
            self.flush_file(id, file)?;
            let inode = self.look_again(|attempt| attempt.inode(id))?;
            let end = offset.saturating_add(len).min(inode.size);
            if inode.kind != FileKind::File {
                return Err(Error::Invalid("no file"));
            }
            if offset >= end {
                return Ok(());
            }
            if inode.form == DataForm::Blocks {
                self.remove_pages(id, file.locks, (offset, end))?;
            }
            self.change_in(file.locks, |attempt| {
                let mut inode = attempt.inode(id)?;
                let stamp = inode.stamp;
                let end = (end as usize).min(inode.inline.len());
                if inode.form == DataForm::Inline && (offset as usize) < end {
                    inode.inline[offset as usize..end].fill(0);
                }
                inode.modified(self.random(), self.now());
                attempt.ask(inode.replace(stamp, self.block_bytes));
                Ok(())
            })
        })
    }

    fn remove_pages(
        &self,
        id: Owner,
        only: Option<Session>,
        (offset, end): (u64, u64),
    ) -> Result<()> {
        let len = usize::try_from(end - offset).map_err(|_| Error::TooLarge)?;
        let mut asks = Vec::new();
        for (page, part, _) in pieces(offset, len, self.block_bytes) {
            let name = layout::data(id, page);
            let action = match part.len() == self.block_bytes {
                true => Action::Remove,
                false => Action::Patch { offset: part.start, bytes: vec![0; part.len()] },
            };
            asks.push(vec![Ask::change(name, action, Compare::Always)]);
            if asks.len() == TOGETHER {
                self.carry_out(only, &asks)?;
                asks.clear();
            }
        }
        if !asks.is_empty() {
            self.carry_out(only, &asks)?;
        }
        Ok(())
    }

    /// Makes a file at least so long. It sets no room aside.
    ///
    /// # Errors
    /// As [`Self::set_attr`].
    pub fn extend(&self, id: Owner, size: u64) -> Result<()> {
        if size > MAX_FILE {
            return Err(Error::TooLarge);
        }
        self.with_file(id, |file| {
            self.flush_file(id, file)?;
            self.change_in(file.locks, |attempt| {
                let mut inode = attempt.inode(id)?;
                if inode.kind != FileKind::File {
                    return Err(Error::Invalid("no file"));
                }
                if inode.size < size {
                    plan_resize(attempt, &mut inode, size);
                }
                Ok(())
            })
        })
    }
}

fn apply(inode: &mut Inode, set: SetAttr) {
    inode.mode = set.mode.map_or(inode.mode, |mode| mode & MODE_BITS);
    inode.uid = set.uid.unwrap_or(inode.uid);
    inode.gid = set.gid.unwrap_or(inode.gid);
    inode.atime = set.atime.unwrap_or(inode.atime);
    inode.mtime = set.mtime.unwrap_or(inode.mtime);
}
