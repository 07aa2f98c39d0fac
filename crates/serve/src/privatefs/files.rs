//! What the kernel's requests do with names and files.

use super::kernel::SharedKernel;
use super::locking;
use crate::fuse::{Allocation, FileAnswer, ListedName, NamePlace, O_APPEND, O_EXCL, Served, done};
use fuser::FopenFlags;
use oblivio_privatefs::{Attr, Error, Ino, NewNode, NodeAttr, Owner, Result as FsResult};

/// Names that are read for one answer to a listing.
const LISTED: usize = 256;

/// The attributes under the kernel's number.
fn numbered(node: NodeAttr, ino: Ino) -> Attr {
    Attr { ino, ..node.attr }
}

impl SharedKernel {
    pub(super) fn entry(
        &self,
        at: &NamePlace,
        work: impl FnOnce(Owner, &[u8]) -> FsResult<NodeAttr>,
    ) -> Served {
        let parent = self.id(at.parent)?;
        let found = work(parent, &at.name)?;
        let ino = self.ids.learned(&found, parent, &at.name);
        Ok(FileAnswer::Entry(Some(numbered(found, ino))))
    }

    pub(super) fn attr(&self, ino: Ino, work: impl FnOnce(Owner) -> FsResult<NodeAttr>) -> Served {
        Ok(FileAnswer::Attr(numbered(work(self.id(ino)?)?, ino)))
    }

    pub(super) fn create(&self, at: &NamePlace, node: NewNode, flags: i32) -> Served {
        let parent = self.id(at.parent)?;
        let made = self.make_file(parent, &at.name, node, flags & O_EXCL != 0)?;
        let ino = self.ids.learned(&made, parent, &at.name);
        let open = self.opened(ino, flags, &made);
        Ok(FileAnswer::Created(numbered(made, ino), self.fs.handle(), open))
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
        Ok(FileAnswer::Opened(self.fs.handle(), self.opened(ino, flags, &found)))
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

    pub(super) fn allocate(
        &self,
        id: Owner,
        (offset, len): (u64, u64),
        how: Allocation,
        keep_size: bool,
    ) -> Served {
        let end = offset.checked_add(len).ok_or(Error::TooLarge)?;
        if how != Allocation::Reserve {
            self.fs.punch(id, offset, len)?;
        }
        done(if keep_size { Ok(()) } else { self.fs.extend(id, end) })
    }

    /// Whatever fails, what the owner locked is unlocked.
    pub(super) fn flush(&self, ino: Ino, fh: u64, owner: u64) -> Served {
        let id = self.id(ino)?;
        let held = self.fs.check_handle(id, fh);
        let flushed = self.fs.flush(id);
        done(held.and(flushed).and(self.unlock(id, owner)))
    }

    pub(super) fn release(&self, ino: Ino, owner: Option<u64>) -> Served {
        let id = self.id(ino)?;
        let unlocked = owner.map_or(Ok(()), |owner| self.unlock(id, owner));
        done(self.fs.close(id).and(unlocked))
    }

    fn unlock(&self, id: Owner, owner: u64) -> FsResult<()> {
        match self.fs.has_locks(id) {
            true => self.fs.unlock_all(id, Some(locking::holder(owner))),
            false => Ok(()),
        }
    }

    pub(super) fn list(&self, ino: Ino, after: u64) -> Served {
        let id = self.id(ino)?;
        let mut listed = Vec::new();
        if after < 1 {
            listed.push(ListedName::dots(1, b".", ino));
        }
        if after < 2 {
            listed.push(ListedName::dots(2, b"..", self.ids.number(self.fs.parent(id)?)));
        }
        listed.extend(self.fs.list(id, after, LISTED)?.into_iter().map(|entry| {
            let (ino, kind) = (self.ids.number(entry.id), entry.kind);
            ListedName { cookie: entry.cookie, name: entry.name, ino, kind, attr: None }
        }));
        Ok(FileAnswer::Listing(listed))
    }
}
