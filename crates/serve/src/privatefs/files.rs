//! What the kernel's requests do with names and files.

use super::errno::Fail;
use super::kernel::{Kernel, Served};
use super::locking;
use crate::fuse::convert::now;
use crate::fuse::{Allocation, Answer, Caller, Listed, O_APPEND, O_EXCL, Op, Place};
use fuser::{Errno, FopenFlags};
use oblivio_privatefs::{Attr, Error, FileKind, Ino, NewNode, NodeAttr, Owner, Result as FsResult};

/// Names that are read for one answer to a listing.
const LISTED: usize = 256;

fn node(mode: u32, caller: Caller) -> NewNode {
    NewNode { mode, uid: caller.uid, gid: caller.gid, mtime: now() }
}

/// The attributes under the kernel's number.
fn numbered(node: NodeAttr, ino: Ino) -> Attr {
    Attr { ino, ..node.attr }
}

impl Kernel {
    pub(super) fn entry(
        &self,
        at: &Place,
        work: impl FnOnce(Owner, &[u8]) -> FsResult<NodeAttr>,
    ) -> Served {
        let parent = self.id(at.parent)?;
        let found = work(parent, &at.name)?;
        let ino = self.ids.learned(&found, parent, &at.name);
        Ok(Answer::Entry(Some(numbered(found, ino))))
    }

    pub(super) fn attr(&self, ino: Ino, work: impl FnOnce(Owner) -> FsResult<NodeAttr>) -> Served {
        Ok(Answer::Attr(numbered(work(self.id(ino)?)?, ino)))
    }

    /// New names of new files.
    pub(super) fn make(&self, op: Op<&[u8]>) -> Served {
        let fs = &self.fs;
        match op {
            Op::MkNod { at, kind, mode, rdev, caller } => {
                let node = node(mode, caller);
                self.entry(&at, |parent, name| fs.mknod(parent, name, kind, rdev, node))
            }
            Op::MkDir { at, mode, caller } => {
                self.entry(&at, |parent, name| fs.mkdir(parent, name, node(mode, caller)))
            }
            Op::SymLink { at, target, caller } => {
                let node = node(0o777, caller);
                self.entry(&at, |parent, name| fs.symlink(parent, name, &target, node))
            }
            Op::Create { at, mode, flags, caller } => {
                let parent = self.id(at.parent)?;
                let exclusive = flags & O_EXCL != 0;
                let made = self.make_file(parent, &at.name, node(mode, caller), exclusive)?;
                let ino = self.ids.learned(&made, parent, &at.name);
                let open = self.opened(ino, flags, &made);
                Ok(Answer::Created(numbered(made, ino), fs.handle(), open))
            }
            _ => Err(Errno::ENOSYS.into()),
        }
    }

    /// Names of what is there.
    pub(super) fn rename(&self, op: Op<&[u8]>) -> Served {
        let fs = &self.fs;
        match op {
            Op::Link { ino, at } => {
                let id = self.id(ino)?;
                return self.entry(&at, |parent, name| fs.link(id, parent, name));
            }
            Op::Unlink(at) => fs.unlink(self.id(at.parent)?, &at.name)?,
            Op::RmDir(at) => fs.rmdir(self.id(at.parent)?, &at.name)?,
            Op::Rename { from, to, mode, whiteout: None } => {
                let to = (self.id(to.parent)?, &to.name[..]);
                fs.rename((self.id(from.parent)?, &from.name), to, mode)?;
            }
            _ => return Err(Errno::EINVAL.into()),
        }
        Ok(Answer::Done)
    }

    fn make_file(
        &self,
        parent: Owner,
        name: &[u8],
        node: NewNode,
        exclusive: bool,
    ) -> FsResult<NodeAttr> {
        loop {
            match self.fs.create(parent, name, node) {
                Err(Error::Exists) if !exclusive => {}
                made => return made,
            }
            // Another client was faster. It may also be faster at removing it.
            match self.fs.lookup(parent, name).and_then(|found| self.fs.open(found.id)) {
                Err(Error::NotFound | Error::Stale) => {}
                opened => return opened,
            }
        }
    }

    pub(super) fn open(&self, ino: Ino, flags: i32) -> Served {
        let found = self.fs.open(self.id(ino)?)?;
        Ok(Answer::Opened(self.fs.handle(), self.opened(ino, flags, &found)))
    }

    /// Appends go to the true end, which the kernel does not know: none of its pages.
    fn opened(&self, ino: Ino, flags: i32, found: &NodeAttr) -> FopenFlags {
        if self.strict || flags & O_APPEND != 0 {
            return FopenFlags::FOPEN_DIRECT_IO;
        }
        match self.ids.keeps_pages(ino, found) {
            true => FopenFlags::FOPEN_KEEP_CACHE,
            false => FopenFlags::empty(),
        }
    }

    /// Data, and room for it.
    pub(super) fn write(&self, op: Op<&[u8]>) -> Served {
        match op {
            Op::Write { ino, fh, offset, data, cached, flags, .. } => {
                let id = self.held(ino, fh)?;
                // What comes from the kernel's pages has a place of its own.
                match flags & O_APPEND != 0 && !cached {
                    true => self.fs.append(id, data).map(drop)?,
                    false => self.fs.write(id, offset, data)?,
                }
                Ok(Answer::Written(data.len() as u32))
            }
            Op::Allocate { ino, fh, offset, len, how, keep_size, .. } => {
                let id = self.held(ino, fh)?;
                let end = offset.checked_add(len).ok_or(Error::TooLarge)?;
                if how != Allocation::Reserve {
                    self.fs.punch(id, offset, len)?;
                }
                if !keep_size {
                    self.fs.extend(id, end)?;
                }
                Ok(Answer::Done)
            }
            _ => Err(Errno::ENOSYS.into()),
        }
    }

    /// Whatever fails, what the owner locked is unlocked.
    pub(super) fn flush(&self, ino: Ino, fh: u64, owner: u64) -> Served {
        let id = self.id(ino)?;
        let held = self.fs.check_handle(id, fh);
        let flushed = self.fs.flush(id);
        held.and(flushed).and(self.unlock(id, owner))?;
        Ok(Answer::Done)
    }

    pub(super) fn release(&self, ino: Ino, owner: Option<u64>) -> Served {
        let id = self.id(ino)?;
        let unlocked = owner.map_or(Ok(()), |owner| self.unlock(id, owner));
        self.fs.close(id).and(unlocked)?;
        Ok(Answer::Done)
    }

    fn unlock(&self, id: Owner, owner: u64) -> FsResult<()> {
        match self.fs.has_locks(id) {
            true => self.fs.unlock_all(id, Some(locking::holder(owner))),
            false => Ok(()),
        }
    }

    pub(super) fn list(&self, ino: Ino, after: u64) -> Result<Answer, Fail> {
        let id = self.id(ino)?;
        let dots = |cookie, name: &[u8], ino| {
            let (name, kind) = (name.to_vec(), FileKind::Directory);
            Listed { cookie, name, ino, kind, attr: None }
        };
        let mut listed = Vec::new();
        if after < 1 {
            listed.push(dots(1, b".", ino));
        }
        if after < 2 {
            listed.push(dots(2, b"..", self.ids.number(self.fs.parent(id)?)));
        }
        listed.extend(self.fs.list(id, after, LISTED)?.into_iter().map(|entry| {
            let (ino, kind) = (self.ids.number(entry.id), entry.kind);
            Listed { cookie: entry.cookie, name: entry.name, ino, kind, attr: None }
        }));
        Ok(Answer::Listing(listed))
    }
}
