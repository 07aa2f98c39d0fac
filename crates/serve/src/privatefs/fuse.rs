//! Answers the kernel's requests.

use super::convert::{self, errno};
use super::kernel::{Kernel, O_APPEND, check_xattr, node};
use super::{locking, settings};
use crate::mount::data::SERVER_NAME;
use fuser::{
    BsdFileFlags, Errno, FileHandle, INodeNo, IoctlFlags, KernelConfig, LockOwner, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyIoctl, ReplyLock, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow,
    WriteFlags,
};
use oblivio_privatefs::{RenameMode, SetAttr, XattrMode};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

const O_EXCL: i32 = 0o200;
const XATTR_CREATE: i32 = 1;
const XATTR_REPLACE: i32 = 2;

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
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let (atime, mtime) = (atime.map(convert::asked_time), mtime.map(convert::asked_time));
        let ctime = ctime.map(convert::timestamp);
        let set = SetAttr { mode, uid, gid, size, atime, mtime, ctime };
        let change = |id| {
            if let Some(handle) = handle.filter(|_| size.is_some()) {
                self.fs.check_handle(id, handle.0)?;
            }
            self.fs.set_attr(id, set)
        };
        self.attr(ino, change, reply);
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
            Ok(attr) => {
                let handle = FileHandle(self.fs.handle());
                reply.opened(handle, self.opened(ino.0, flags.0, &attr));
            }
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
                let handle = FileHandle(self.fs.handle());
                reply.created(&self.ttl, &attr, generation, handle, open);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        len: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = |id| {
            self.fs.check_handle(id, handle.0)?;
            self.fs.read(id, offset, len as usize)
        };
        match self.id(ino).and_then(|id| read(id).map_err(|error| errno(&error))) {
            Ok(data) => reply.data(&data),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        write: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // What comes from the kernel's pages has a place of its own.
        let appends = flags.0 & O_APPEND != 0 && !write.contains(WriteFlags::FUSE_WRITE_CACHE);
        let write = |id| {
            self.fs.check_handle(id, handle.0)?;
            match appends {
                true => self.fs.append(id, data).map(drop),
                false => self.fs.write(id, offset, data),
            }
        };
        let written = self.id(ino).and_then(|id| write(id).map_err(|error| errno(&error)));
        match written {
            Ok(()) => reply.written(data.len() as u32),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        // Whatever fails, what the owner locked is unlocked.
        let flush = |id| {
            let held = self.fs.check_handle(id, handle.0);
            let flushed = self.fs.flush(id);
            held.and(flushed).and(self.unlock(id, locking::holder(owner)))
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

    fn fsync(&self, _: &Request, ino: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        let sync = |id| {
            self.fs.check_handle(id, handle.0)?;
            self.fs.fsync(id)
        };
        self.empty(ino, sync, reply);
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
        // Who unmounts waits for the end of this process: then the volume is free.
        if ino == INodeNo::ROOT && name.as_encoded_bytes() == SERVER_NAME {
            return self.xattr(Ok(std::process::id().to_string().into_bytes()), size, reply);
        }
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
        handle: FileHandle,
        offset: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let allocate = |id| {
            self.fs.check_handle(id, handle.0)?;
            self.allocate(id, offset, len, mode)
        };
        self.empty(ino, allocate, reply);
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
            Ok(id) => {
                let wish = locking::Wish { ino: ino.0, id, owner, kind, range: (start, end), pid };
                locking::get(&self.fs, &wish, reply);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn setlk(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        pid: u32,
        waits: bool,
        reply: ReplyEmpty,
    ) {
        let held = |id| match kind {
            // Who has lost its locks may give them back.
            locking::F_UNLCK => Ok(id),
            _ => self.fs.check_handle(id, handle.0).map(|()| id).map_err(|error| errno(&error)),
        };
        match self.id(ino).and_then(held) {
            Ok(id) => {
                let wish = locking::Wish { ino: ino.0, id, owner, kind, range: (start, end), pid };
                locking::set(&self.fs, &self.pages, wish, waits, reply);
            }
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
