//! The kernel's side: these threads decode requests and queue them with their replies, nothing
//! else.
//!
//! We are the only writer, so the kernel may cache for an hour: every change goes through it. For
//! the same reason it handles `copy_file_range` itself: data in its memory need not be fetched, and
//! it writes copies in large pieces.

use super::convert;
use super::kernel::Kernel;
use super::reply::{self, GENERATION, TTL, answer};
use super::request::{Answer, Caller, Op, Place, Replier};
use fuser::{
    BsdFileFlags, Errno, FileHandle, FopenFlags, INodeNo, IoctlFlags, KernelConfig, LockOwner,
    OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr,
    Request, TimeOrNow, WriteFlags,
};
use oblivio_volume::fs::{RenameMode, SetAttr};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

const O_TRUNC: i32 = 0o1000;
const O_EXCL: i32 = 0o200;

fn at(parent: INodeNo, name: &OsStr) -> Place {
    Place { parent: parent.0, name: name.as_bytes().to_vec() }
}

fn caller(request: &Request) -> Caller {
    Caller { uid: request.uid(), gid: request.gid() }
}

impl fuser::Filesystem for Kernel {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        reply::configure(config);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(Op::Lookup(at(parent, name)), reply);
    }

    fn forget(&self, _: &Request, ino: INodeNo, lookups: u64) {
        if self.references.forgotten(ino.0, lookups) {
            // No caller waits for an answer.
            self.queue.push(Op::Forget { ino: ino.0 }, Box::new(drop));
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, fh: Option<FileHandle>, reply: ReplyAttr) {
        match fh {
            Some(fh) if self.scarce.is_short() => self.asked(ino.0, fh.0, reply),
            _ => self.attr(Op::GetAttr { ino: ino.0 }, reply),
        }
    }

    fn setattr(
        &self,
        request: &Request,
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
        let change = SetAttr {
            mode,
            uid,
            gid,
            size,
            atime: atime.map(convert::asked_time),
            mtime: mtime.map(convert::asked_time),
            ctime: ctime.map(convert::timestamp),
        };
        self.attr(Op::SetAttr { ino: ino.0, change, caller: caller(request) }, reply);
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        self.data(Op::ReadLink { ino: ino.0 }, reply);
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
        let op = Op::MkNod { at: at(parent, name), mode, rdev, caller: caller(request) };
        self.entry(op, reply);
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
        self.entry(Op::MkDir { at: at(parent, name), mode, caller: caller(request) }, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(Op::Unlink(at(parent, name)), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(Op::RmDir(at(parent, name)), reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let target = target.as_os_str().as_bytes().to_vec();
        self.entry(Op::SymLink { at: at(parent, name), target, caller: caller(request) }, reply);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let whiteout = RenameFlags::RENAME_WHITEOUT;
        let mode = match flags.difference(whiteout) {
            rest if rest.is_empty() => RenameMode::Replace,
            RenameFlags::RENAME_NOREPLACE => RenameMode::NoReplace,
            RenameFlags::RENAME_EXCHANGE => RenameMode::Exchange,
            _ => return reply.error(Errno::EINVAL),
        };
        let (from, to) = (at(parent, name), at(new_parent, new_name));
        let whiteout = flags.contains(whiteout).then(|| caller(request));
        self.empty(Op::Rename { from, to, mode, whiteout }, reply);
    }

    fn link(
        &self,
        _: &Request,
        ino: INodeNo,
        new_parent: INodeNo,
        new_name: &OsStr,
        reply: ReplyEntry,
    ) {
        self.entry(Op::Link { ino: ino.0, at: at(new_parent, new_name) }, reply);
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let truncate = flags.0 & O_TRUNC != 0;
        let (writers, scarce) = (self.writers.clone(), self.scarce.clone());
        self.queue.push(
            Op::Open { ino: ino.0, truncate, caller: caller(request) },
            answer!(reply, Answer::Opened(fh) => {
                writers.opened(ino.0, flags.0);
                scarce.opened(ino.0, fh, flags.0, move || {
                    reply.opened(FileHandle(fh), FopenFlags::FOPEN_KEEP_CACHE);
                });
            }),
        );
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
        let (block, exclusive) = (self.block_bytes, flags & O_EXCL != 0);
        let (writers, references) = (self.writers.clone(), self.references.clone());
        let scarce = self.scarce.clone();
        self.queue.push(
            Op::Create { at: at(parent, name), mode, exclusive, caller: caller(request) },
            answer!(reply, Answer::Created(attr, fh) => {
                writers.opened(attr.ino, flags);
                references.told(attr.ino);
                let ttl = if scarce.asks_first(flags) { Duration::ZERO } else { TTL };
                let (known, attr) = (attr.ino, convert::attr(&attr, block));
                scarce.opened(known, fh, flags, move || {
                    let (fh, flags) = (FileHandle(fh), FopenFlags::FOPEN_KEEP_CACHE);
                    reply.created(&ttl, &attr, GENERATION, fh, flags);
                });
                scarce.created(known);
            }),
        );
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        len: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.long_data(Op::Read { ino: ino.0, fh: fh.0, offset, len }, reply);
    }

    fn write(
        &self,
        request: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        flags: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let cached = flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let kill = flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID).then(|| caller(request));
        let data = data.to_vec();
        self.written(Op::Write { ino: ino.0, fh: fh.0, offset, data, cached, kill }, reply);
    }

    /// The kernel has already written what it cached; nothing is left to do, and it need not ask
    /// again.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        flags: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.writers.closed(ino.0, flags.0);
        self.scarce.closed(fh.0);
        self.empty(Op::Release { fh: fh.0 }, reply);
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.empty(Op::Sync { ino: ino.0 }, reply);
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.empty(Op::Sync { ino: ino.0 }, reply);
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.queue.push(
            Op::OpenDir { ino: ino.0 },
            answer!(reply, Answer::Opened(fh) => {
                reply.opened(FileHandle(fh), FopenFlags::empty());
            }),
        );
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        cookie: u64,
        mut reply: ReplyDirectory,
    ) {
        self.queue.push(
            Op::ReadDir { ino: ino.0, fh: fh.0, cookie, plus: false },
            answer!(reply, Answer::Listing(entries) => {
                for entry in entries {
                    let name = OsStr::from_bytes(&entry.name);
                    if reply.add(INodeNo(entry.ino), entry.cookie, entry.kind, name) {
                        break;
                    }
                }
                reply.ok();
            }),
        );
    }

    fn readdirplus(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        cookie: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let (block, references) = (self.block_bytes, self.references.clone());
        let scarce = self.scarce.clone();
        self.queue.push(
            Op::ReadDir { ino: ino.0, fh: fh.0, cookie, plus: true },
            answer!(reply, Answer::Listing(entries) => {
                for entry in entries {
                    let name = OsStr::from_bytes(&entry.name);
                    let told = entry.attr.is_some();
                    let attr = entry.attr.as_ref().map_or_else(
                        // The kernel takes only number and kind of `.` and `..` from here.
                        || fuser::FileAttr {
                            ino: INodeNo(entry.ino),
                            kind: entry.kind,
                            ..convert::nothing()
                        },
                        |attr| convert::attr(attr, block),
                    );
                    let (ino, cookie) = (attr.ino, entry.cookie);
                    if reply.add(ino, cookie, name, &TTL, &attr, GENERATION) {
                        break;
                    }
                    if told {
                        references.told(ino.0);
                        scarce.told(ino.0);
                    }
                }
                reply.ok();
            }),
        );
    }

    fn releasedir(&self, _: &Request, _: INodeNo, fh: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.empty(Op::ReleaseDir { fh: fh.0 }, reply);
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let answer = answer!(reply, Answer::Usage(usage) => reply::statfs(&usage, reply));
        self.queue.push(Op::StatFs, answer);
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
        let (name, value) = (name.as_bytes().to_vec(), value.to_vec());
        self.empty(Op::SetXattr { ino: ino.0, name, value, flags }, reply);
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        self.xattr(Op::GetXattr { ino: ino.0, name: name.as_bytes().to_vec(), size }, reply);
    }

    fn listxattr(&self, request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        self.xattr(Op::ListXattr { ino: ino.0, size, caller: caller(request) }, reply);
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(Op::RemoveXattr { ino: ino.0, name: name.as_bytes().to_vec() }, reply);
    }

    fn fallocate(
        &self,
        request: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let (ino, fh, caller) = (ino.0, fh.0, caller(request));
        self.empty(Op::Allocate { ino, fh, offset, len, mode, caller }, reply);
    }

    fn lseek(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let op = Op::Seek { ino: ino.0, fh: fh.0, offset, whence };
        let replier: Replier = answer!(reply, Answer::Offset(found) => {
            match i64::try_from(found) {
                Ok(found) => reply.offset(found),
                Err(_) => reply.error(Errno::EOVERFLOW),
            }
        });
        if !self.writers.has(ino.0) {
            self.queue.push(op, replier);
        } else if let Err(unsent) = self.flush.send((op, replier)) {
            unsent.0.1(Err(Errno::EIO));
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
