//! Answers the kernel's requests.

use super::convert::{self, errno};
use super::ids::Ids;
use super::session::Options;
use super::{locking, settings};
use fuser::{
    BsdFileFlags, Errno, FileHandle, FopenFlags, INodeNo, IoctlFlags, KernelConfig, LockOwner,
    OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyIoctl, ReplyLock, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request,
    TimeOrNow, WriteFlags,
};
use oblivio_privatefs::{
    Attr, Error, LockOwner as Holder, NewNode, Owner, PrivateFs, RenameMode, SetAttr, XattrMode,
};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const O_EXCL: i32 = 0o200;
const O_APPEND: i32 = 0o2000;
const XATTR_CREATE: i32 = 1;
const XATTR_REPLACE: i32 = 2;
const KEEP_SIZE: i32 = 1;
const PUNCH_HOLE: i32 = 2;
const ZERO_RANGE: i32 = 16;
/// Names that are read for one answer to a listing.
const LISTED: usize = 256;
const RELAXED_TTL: Duration = Duration::from_secs(1);

/// The connection to the kernel.
pub struct Kernel {
    fs: Arc<PrivateFs>,
    ids: Arc<Ids>,
    block_bytes: u32,
    ttl: Duration,
    strict: bool,
    local_locks: bool,
}

fn node(request: &Request, mode: u32) -> NewNode {
    NewNode { mode, uid: request.uid(), gid: request.gid() }
}

impl Kernel {
    pub fn new(fs: Arc<PrivateFs>, ids: Arc<Ids>, options: &Options) -> Self {
        let block_bytes = u32::try_from(fs.block_bytes()).unwrap_or(u32::MAX);
        let ttl = if options.strict { Duration::ZERO } else { RELAXED_TTL };
        let (strict, local_locks) = (options.strict, options.local_locks);
        Self { fs, ids, block_bytes, ttl, strict, local_locks }
    }

    fn id(&self, ino: INodeNo) -> Result<Owner, Errno> {
        self.ids.id(ino.0)
    }

    fn entry(
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

    fn empty(
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

    fn attr(
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
    fn opened(&self, ino: u64, flags: i32, attr: &Attr) -> FopenFlags {
        if self.strict || flags & O_APPEND != 0 {
            return FopenFlags::FOPEN_DIRECT_IO;
        }
        match self.ids.keeps_pages(ino, attr) {
            true => FopenFlags::FOPEN_KEEP_CACHE,
            false => FopenFlags::empty(),
        }
    }

    fn make_file(
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

    fn list(&self, ino: INodeNo, after: u64, reply: &mut ReplyDirectory) -> Result<(), Error> {
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

    fn xattr(&self, value: Result<Vec<u8>, Errno>, size: u32, reply: ReplyXattr) {
        match value {
            Ok(value) if size == 0 => reply.size(value.len() as u32),
            Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
            Ok(value) => reply.data(&value),
            Err(errno) => reply.error(errno),
        }
    }

    fn allocate(&self, id: Owner, offset: u64, len: u64, mode: i32) -> Result<(), Error> {
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
}

/// Access lists would be kept, and not heeded.
fn check_xattr(name: &OsStr) -> Result<&[u8], Error> {
    match name.as_bytes() {
        name if name.starts_with(b"system.") => Err(Error::Unsupported("this attribute")),
        name => Ok(name),
    }
}

impl fuser::Filesystem for Kernel {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        settings::configure(config, self.local_locks);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(parent, name, |parent, name| self.fs.lookup(parent, name), reply);
    }

    fn forget(&self, _: &Request, ino: INodeNo, lookups: u64) {
        self.ids.forgotten(ino.0, lookups);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.attr(ino, |id| self.fs.attr(id), reply);
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let (atime, mtime) = (atime.map(convert::asked_time), mtime.map(convert::asked_time));
        let ctime = ctime.map(convert::timestamp);
        let set = SetAttr { mode, uid, gid, size, atime, mtime, ctime };
        self.attr(ino, |id| self.fs.set_attr(id, set), reply);
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        let read = |id| self.fs.read_link(id).map_err(|error| errno(&error));
        match self.id(ino).and_then(read) {
            Ok(target) => reply.data(&target),
            Err(errno) => reply.error(errno),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let Some(kind) = convert::kind_of_mode(mode) else { return reply.error(Errno::EINVAL) };
        let node = node(request, mode);
        self.entry(parent, name, |at, name| self.fs.mknod(at, name, kind, rdev, node), reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let node = node(request, mode);
        self.entry(parent, name, |at, name| self.fs.mkdir(at, name, node), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(parent, |parent| self.fs.unlink(parent, name.as_bytes()), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(parent, |parent| self.fs.rmdir(parent, name.as_bytes()), reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let (node, target) = (node(request, 0o777), target.as_os_str().as_bytes());
        self.entry(parent, name, |at, name| self.fs.symlink(at, name, target, node), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let mode = match flags {
            flags if flags.is_empty() => RenameMode::Replace,
            RenameFlags::RENAME_NOREPLACE => RenameMode::NoReplace,
            RenameFlags::RENAME_EXCHANGE => RenameMode::Exchange,
            _ => return reply.error(Errno::EINVAL),
        };
        let to = match self.id(new_parent) {
            Ok(id) => (id, new_name.as_bytes()),
            Err(errno) => return reply.error(errno),
        };
        self.empty(parent, |from| self.fs.rename((from, name.as_bytes()), to, mode), reply);
    }

    fn link(
        &self,
        _: &Request,
        ino: INodeNo,
        new_parent: INodeNo,
        new_name: &OsStr,
        reply: ReplyEntry,
    ) {
        match self.id(ino) {
            Ok(id) => {
                self.entry(new_parent, new_name, |at, name| self.fs.link(id, at, name), reply)
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let open = |id| self.fs.open(id).map_err(|error| errno(&error));
        match self.id(ino).and_then(open) {
            Ok(attr) => reply.opened(FileHandle(0), self.opened(ino.0, flags.0, &attr)),
            Err(errno) => reply.error(errno),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let (node, name) = (node(request, mode), name.as_bytes());
        let made = self.id(parent).and_then(|parent| {
            let made = self.make_file(parent, name, node, flags & O_EXCL != 0);
            let attr = made.map_err(|error| errno(&error))?;
            Ok((self.ids.learned(&attr, parent, name), attr))
        });
        match made {
            Ok((ino, attr)) => {
                let open = self.opened(ino, flags, &attr);
                let attr = convert::attr(&attr, ino, self.block_bytes);
                let generation = crate::mount::reply::GENERATION;
                reply.created(&self.ttl, &attr, generation, FileHandle(0), open);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        len: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = |id| self.fs.read(id, offset, len as usize).map_err(|error| errno(&error));
        match self.id(ino).and_then(read) {
            Ok(data) => reply.data(&data),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        write: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // What comes from the kernel's pages has a place of its own.
        let appends = flags.0 & O_APPEND != 0 && !write.contains(WriteFlags::FUSE_WRITE_CACHE);
        let written = self.id(ino).and_then(|id| {
            let written = match appends {
                true => self.fs.append(id, data).map(drop),
                false => self.fs.write(id, offset, data),
            };
            written.map_err(|error| errno(&error))
        });
        match written {
            Ok(()) => reply.written(data.len() as u32),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _: &Request, ino: INodeNo, _: FileHandle, owner: LockOwner, reply: ReplyEmpty) {
        let flush = |id| {
            self.fs.flush(id)?;
            self.unlock(id, locking::holder(owner))
        };
        self.empty(ino, flush, reply);
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        owner: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let close = |id| {
            let unlocked = owner.map_or(Ok(()), |owner| self.unlock(id, locking::holder(owner)));
            self.fs.close(id).and(unlocked)
        };
        self.empty(ino, close, reply);
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.empty(ino, |id| self.fs.fsync(id), reply);
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.empty(ino, |id| self.fs.fsync(id), reply);
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        after: u64,
        mut reply: ReplyDirectory,
    ) {
        match self.list(ino, after, &mut reply) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match self.fs.space() {
            Ok(space) => settings::statfs(space, self.block_bytes, reply),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn setxattr(
        &self,
        _: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let mode = match flags & (XATTR_CREATE | XATTR_REPLACE) {
            XATTR_CREATE => XattrMode::Create,
            XATTR_REPLACE => XattrMode::Replace,
            _ => XattrMode::Set,
        };
        let set = |id| self.fs.set_xattr(id, check_xattr(name)?, value, mode);
        self.empty(ino, set, reply);
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let value = self.id(ino).and_then(|id| {
            let value = check_xattr(name).and_then(|name| self.fs.xattr(id, name));
            value.map_err(|error| errno(&error))
        });
        self.xattr(value, size, reply);
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let names = self.id(ino).and_then(|id| {
            let names = self.fs.xattr_names(id).map_err(|error| errno(&error))?;
            Ok(names.into_iter().flat_map(|name| [name, vec![0]].concat()).collect())
        });
        self.xattr(names, size, reply);
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(ino, |id| self.fs.remove_xattr(id, check_xattr(name)?), reply);
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.empty(ino, |id| self.allocate(id, offset, len, mode), reply);
    }

    fn getlk(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        pid: u32,
        reply: ReplyLock,
    ) {
        match self.id(ino) {
            Ok(id) => locking::get(&self.fs, id, owner, (kind, (start, end), pid), reply),
            Err(errno) => reply.error(errno),
        }
    }

    fn setlk(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        pid: u32,
        waits: bool,
        reply: ReplyEmpty,
    ) {
        match self.id(ino) {
            Ok(id) => locking::set(&self.fs, id, owner, (kind, (start, end), pid), waits, reply),
            Err(errno) => reply.error(errno),
        }
    }

    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        _: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(Errno::ENOTTY);
    }
}

impl Kernel {
    fn unlock(&self, id: Owner, holder: Holder) -> Result<(), Error> {
        match self.fs.has_locks(id) {
            true => self.fs.unlock_all(id, Some(holder)),
            false => Ok(()),
        }
    }
}
