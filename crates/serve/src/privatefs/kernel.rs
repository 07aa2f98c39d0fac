//! The connection to the kernel: what its requests have in common.

use super::convert::{self, errno};
use super::ids::Ids;
use super::notify::Pages;
use super::options::Options;
use fuser::{
    Errno, FopenFlags, INodeNo, ReplyAttr, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyXattr,
    Request,
};
use oblivio_privatefs::{Attr, Error, LockOwner as Holder, NewNode, Owner, PrivateFs};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

pub const O_APPEND: i32 = 0o2000;
const KEEP_SIZE: i32 = 1;
const PUNCH_HOLE: i32 = 2;
const ZERO_RANGE: i32 = 16;
/// Names that are read for one answer to a listing.
const LISTED: usize = 256;
const RELAXED_TTL: Duration = Duration::from_secs(1);

/// The connection to the kernel.
pub struct Kernel {
    pub fs: Arc<PrivateFs>,
    pub ids: Arc<Ids>,
    pub pages: Arc<Pages>,
    pub block_bytes: u32,
    pub ttl: Duration,
    strict: bool,
    pub local_locks: bool,
}

pub fn node(request: &Request, mode: u32) -> NewNode {
    NewNode { mode, uid: request.uid(), gid: request.gid() }
}

impl Kernel {
    pub fn new(fs: Arc<PrivateFs>, pages: Arc<Pages>, options: &Options) -> Self {
        let ids = Arc::clone(&pages.ids);
        let block_bytes = u32::try_from(fs.block_bytes()).unwrap_or(u32::MAX);
        let ttl = if options.strict { Duration::ZERO } else { RELAXED_TTL };
        let (strict, local_locks) = (options.strict, options.local_locks);
        Self { fs, ids, pages, block_bytes, ttl, strict, local_locks }
    }

    pub fn id(&self, ino: INodeNo) -> Result<Owner, Errno> {
        self.ids.id(ino.0)
    }

    pub fn entry(
        &self,
        parent: INodeNo,
        name: &OsStr,
        work: impl FnOnce(Owner, &[u8]) -> Result<Attr, Error>,
        reply: ReplyEntry,
    ) {
        let name = name.as_bytes();
        let made = self.id(parent).and_then(|parent| {
            let attr = work(parent, name).map_err(|error| errno(&error))?;
            Ok((self.ids.learned(&attr, parent, name), attr))
        });
        match made {
            Ok((ino, attr)) => {
                let attr = convert::attr(&attr, ino, self.block_bytes);
                reply.entry(&self.ttl, &attr, crate::mount::reply::GENERATION);
            }
            Err(errno) => reply.error(errno),
        }
    }

    pub fn empty(
        &self,
        ino: INodeNo,
        work: impl FnOnce(Owner) -> Result<(), Error>,
        reply: ReplyEmpty,
    ) {
        match self.id(ino).and_then(|id| work(id).map_err(|error| errno(&error))) {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    pub fn attr(
        &self,
        ino: INodeNo,
        work: impl FnOnce(Owner) -> Result<Attr, Error>,
        reply: ReplyAttr,
    ) {
        match self.id(ino).and_then(|id| work(id).map_err(|error| errno(&error))) {
            Ok(attr) => {
                reply.attr(&self.ttl, &convert::attr(&attr, ino.0, self.block_bytes));
            }
            Err(errno) => reply.error(errno),
        }
    }

    /// Appends go to the true end, which the kernel does not know: none of its pages.
    pub fn opened(&self, ino: u64, flags: i32, attr: &Attr) -> FopenFlags {
        if self.strict || flags & O_APPEND != 0 {
            return FopenFlags::FOPEN_DIRECT_IO;
        }
        match self.ids.keeps_pages(ino, attr) {
            true => FopenFlags::FOPEN_KEEP_CACHE,
            false => FopenFlags::empty(),
        }
    }

    pub fn make_file(
        &self,
        parent: Owner,
        name: &[u8],
        node: NewNode,
        exclusive: bool,
    ) -> Result<Attr, Error> {
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

    pub fn list(&self, ino: INodeNo, after: u64, reply: &mut ReplyDirectory) -> Result<(), Error> {
        let id = self.id(ino).map_err(|_| Error::Stale)?;
        if after < 1 && reply.add(ino, 1, fuser::FileType::Directory, ".") {
            return Ok(());
        }
        if after < 2 {
            let up = INodeNo(self.ids.number(self.fs.parent(id)?));
            if reply.add(up, 2, fuser::FileType::Directory, "..") {
                return Ok(());
            }
        }
        for entry in self.fs.list(id, after, LISTED)? {
            let ino = INodeNo(self.ids.number(entry.id));
            let name = OsStr::from_bytes(&entry.name);
            if reply.add(ino, entry.cookie, convert::kind(entry.kind), name) {
                break;
            }
        }
        Ok(())
    }

    pub fn xattr(&self, value: Result<Vec<u8>, Errno>, size: u32, reply: ReplyXattr) {
        match value {
            Ok(value) if size == 0 => reply.size(value.len() as u32),
            Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
            Ok(value) => reply.data(&value),
            Err(errno) => reply.error(errno),
        }
    }

    pub fn allocate(&self, id: Owner, offset: u64, len: u64, mode: i32) -> Result<(), Error> {
        let end = offset.checked_add(len).ok_or(Error::TooLarge)?;
        let keeps = mode & KEEP_SIZE != 0;
        match mode & !KEEP_SIZE {
            0 if keeps => Ok(()),
            0 => self.fs.extend(id, end),
            PUNCH_HOLE if keeps => self.fs.punch(id, offset, len),
            ZERO_RANGE => {
                self.fs.punch(id, offset, len)?;
                if keeps { Ok(()) } else { self.fs.extend(id, end) }
            }
            _ => Err(Error::Unsupported("this way of setting room aside")),
        }
    }

    pub fn unlock(&self, id: Owner, holder: Holder) -> Result<(), Error> {
        match self.fs.has_locks(id) {
            true => self.fs.unlock_all(id, Some(holder)),
            false => Ok(()),
        }
    }
}

/// Access lists would be kept, and not heeded.
pub fn check_xattr(name: &OsStr) -> Result<&[u8], Error> {
    match name.as_bytes() {
        name if name.starts_with(b"system.") => Err(Error::Unsupported("this attribute")),
        name => Ok(name),
    }
}
