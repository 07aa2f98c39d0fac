//! Decodes the kernel's requests, for whichever file system carries them out. Nothing else.

use super::answer::KernelReply;
use super::convert;
use super::files::{KernelFiles, configure};
use super::op::{Allocation, Caller, FileOp, LockRequest, NamePlace};
use fuser::{
    BsdFileFlags, Errno, FileHandle, INodeNo, IoctlFlags, KernelConfig, LockOwner, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyIoctl, ReplyLock, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr,
    Request, TimeOrNow, WriteFlags,
};
use oblivio_volume::fs::{RenameMode, SetAttr};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

const KEEP_SIZE: i32 = 1;
const PUNCH_HOLE: i32 = 2;
const ZERO_RANGE: i32 = 16;

/// The file system that the kernel asks.
#[derive(Debug)]
pub struct Decoder<F>(pub F);

impl<F: KernelFiles> Decoder<F> {
    fn entry(&self, op: FileOp<F::Data<'_>>, reply: ReplyEntry) {
        self.0.carry_out(op, KernelReply::Entry(reply));
    }

    fn empty(&self, op: FileOp<F::Data<'_>>, reply: ReplyEmpty) {
        self.0.carry_out(op, KernelReply::Empty(reply));
    }

    fn xattr(&self, op: FileOp<F::Data<'_>>, reply: ReplyXattr) {
        self.0.carry_out(op, KernelReply::Xattr(reply));
    }
}

fn at(parent: INodeNo, name: &OsStr) -> NamePlace {
    NamePlace { parent: parent.0, name: name.as_bytes().to_vec() }
}

fn caller(request: &Request) -> Caller {
    Caller { uid: request.uid(), gid: request.gid() }
}

fn handle(fh: Option<FileHandle>) -> Option<u64> {
    fh.map(|fh| fh.0)
}

impl<F: KernelFiles> fuser::Filesystem for Decoder<F> {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        configure(config, self.0.capabilities());
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(FileOp::Lookup(at(parent, name)), reply);
    }

    fn forget(&self, _: &Request, ino: INodeNo, lookups: u64) {
        self.0.forget(ino.0, lookups);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, fh: Option<FileHandle>, reply: ReplyAttr) {
        let op = FileOp::GetAttr { ino: ino.0, fh: handle(fh) };
        self.0.carry_out(op, KernelReply::Attr(reply));
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
        fh: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let (atime, mtime) = (atime.map(convert::asked_time), mtime.map(convert::asked_time));
        let ctime = ctime.map(convert::timestamp);
        let change = SetAttr { mode, uid, gid, size, atime, mtime, ctime };
        let op = FileOp::SetAttr { ino: ino.0, fh: handle(fh), change, caller: caller(request) };
        self.0.carry_out(op, KernelReply::Attr(reply));
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        self.0.carry_out(FileOp::ReadLink { ino: ino.0 }, KernelReply::Data(reply));
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
        let op = FileOp::MkNod { at: at(parent, name), kind, mode, rdev, caller: caller(request) };
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
        self.entry(FileOp::MkDir { at: at(parent, name), mode, caller: caller(request) }, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(FileOp::Unlink(at(parent, name)), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(FileOp::RmDir(at(parent, name)), reply);
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
        self.entry(
            FileOp::SymLink { at: at(parent, name), target, caller: caller(request) },
            reply,
        );
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
        self.empty(FileOp::Rename { from, to, mode, whiteout }, reply);
    }

    fn link(
        &self,
        _: &Request,
        ino: INodeNo,
        new_parent: INodeNo,
        new_name: &OsStr,
        reply: ReplyEntry,
    ) {
        self.entry(FileOp::Link { ino: ino.0, at: at(new_parent, new_name) }, reply);
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let op = FileOp::Open { ino: ino.0, flags: flags.0, caller: caller(request) };
        self.0.carry_out(op, KernelReply::Opened(reply));
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
        let op = FileOp::Create { at: at(parent, name), mode, flags, caller: caller(request) };
        self.0.carry_out(op, KernelReply::Created(reply));
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
        let op = FileOp::Read { ino: ino.0, fh: fh.0, offset, len };
        self.0.carry_out(op, KernelReply::Data(reply));
    }

    fn write(
        &self,
        request: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        flags: WriteFlags,
        opened: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let cached = flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let kill = flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID).then(|| caller(request));
        let (ino, fh, data, flags) = (ino.0, fh.0, F::Data::from(data), opened.0);
        let op = FileOp::Write { ino, fh, offset, data, cached, flags, kill };
        self.0.carry_out(op, KernelReply::Written(reply));
    }

    fn flush(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        self.empty(FileOp::Flush { ino: ino.0, fh: fh.0, owner: owner.0 }, reply);
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        flags: OpenFlags,
        owner: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let owner = owner.map(|owner| owner.0);
        self.empty(FileOp::Release { ino: ino.0, fh: fh.0, flags: flags.0, owner }, reply);
    }

    fn fsync(&self, _: &Request, ino: INodeNo, fh: FileHandle, _: bool, reply: ReplyEmpty) {
        self.empty(FileOp::Sync { ino: ino.0, fh: Some(fh.0) }, reply);
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.empty(FileOp::Sync { ino: ino.0, fh: None }, reply);
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.0.carry_out(FileOp::OpenDir { ino: ino.0 }, KernelReply::Opened(reply));
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        cookie: u64,
        reply: ReplyDirectory,
    ) {
        let op = FileOp::ReadDir { ino: ino.0, fh: fh.0, cookie, plus: false };
        self.0.carry_out(op, KernelReply::Directory(reply));
    }

    fn readdirplus(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        cookie: u64,
        reply: ReplyDirectoryPlus,
    ) {
        let op = FileOp::ReadDir { ino: ino.0, fh: fh.0, cookie, plus: true };
        self.0.carry_out(op, KernelReply::DirectoryPlus(reply));
    }

    fn releasedir(&self, _: &Request, _: INodeNo, fh: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.empty(FileOp::ReleaseDir { fh: fh.0 }, reply);
    }

    fn statfs(&self, _: &Request, ino: INodeNo, reply: ReplyStatfs) {
        self.0.carry_out(FileOp::StatFs { ino: ino.0 }, KernelReply::Statfs(reply));
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
        self.empty(FileOp::SetXattr { ino: ino.0, name, value, flags }, reply);
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        self.xattr(FileOp::GetXattr { ino: ino.0, name: name.as_bytes().to_vec(), size }, reply);
    }

    fn listxattr(&self, request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        self.xattr(FileOp::ListXattr { ino: ino.0, size, caller: caller(request) }, reply);
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(FileOp::RemoveXattr { ino: ino.0, name: name.as_bytes().to_vec() }, reply);
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
        let keep_size = mode & KEEP_SIZE != 0;
        let how = match mode & !KEEP_SIZE {
            0 => Allocation::Reserve,
            PUNCH_HOLE if keep_size => Allocation::Punch,
            ZERO_RANGE => Allocation::Zero,
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        let (ino, fh, caller) = (ino.0, fh.0, caller(request));
        self.empty(FileOp::Allocate { ino, fh, offset, len, how, keep_size, caller }, reply);
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
        let op = FileOp::Seek { ino: ino.0, fh: fh.0, offset, whence };
        self.0.carry_out(op, KernelReply::Offset(reply));
    }

    fn getlk(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        pid: u32,
        reply: ReplyLock,
    ) {
        let (ino, fh, owner) = (ino.0, fh.0, owner.0);
        let lock = LockRequest { ino, fh, owner, kind, range: (start, end), pid };
        self.0.carry_out(FileOp::GetLock(lock), KernelReply::Lock(reply));
    }

    fn setlk(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        pid: u32,
        waits: bool,
        reply: ReplyEmpty,
    ) {
        let (ino, fh, owner) = (ino.0, fh.0, owner.0);
        let lock = LockRequest { ino, fh, owner, kind, range: (start, end), pid };
        self.empty(FileOp::SetLock { lock, waits }, reply);
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
