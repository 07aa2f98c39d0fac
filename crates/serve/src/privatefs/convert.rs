//! Between the file system's types and the kernel's.

use crate::mount::convert as shared;
use fuser::{Errno, FileAttr, FileType, INodeNo, TimeOrNow};
use oblivio_privatefs::{Attr, Error, Kind, Timestamp};
use oblivio_volume::fs::Timestamp as VolumeTime;
use std::time::SystemTime;

pub fn kind(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Fifo => FileType::NamedPipe,
        Kind::Socket => FileType::Socket,
        Kind::CharDevice => FileType::CharDevice,
        Kind::BlockDevice => FileType::BlockDevice,
    }
}

/// The kind in the mode of a new node.
pub fn kind_of_mode(mode: u32) -> Option<Kind> {
    match mode & 0o170_000 {
        0o100_000 | 0 => Some(Kind::File),
        0o010_000 => Some(Kind::Fifo),
        0o140_000 => Some(Kind::Socket),
        0o020_000 => Some(Kind::CharDevice),
        0o060_000 => Some(Kind::BlockDevice),
        _ => None,
    }
}

pub fn attr(attr: &Attr, ino: u64, block_bytes: u32) -> FileAttr {
    FileAttr {
        ino: INodeNo(ino),
        size: attr.size,
        // Which of its blocks exist is known to nobody without asking for each.
        blocks: attr.size.div_ceil(512),
        atime: system_time(attr.atime),
        mtime: system_time(attr.mtime),
        ctime: system_time(attr.ctime),
        crtime: system_time(attr.crtime),
        kind: kind(attr.kind),
        perm: (attr.mode & 0o7777) as u16,
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        rdev: attr.rdev,
        blksize: block_bytes,
        flags: 0,
    }
}

fn system_time(at: Timestamp) -> SystemTime {
    VolumeTime { seconds: at.seconds, nanos: at.nanos }.into()
}

fn time(at: VolumeTime) -> Timestamp {
    Timestamp { seconds: at.seconds, nanos: at.nanos }
}

pub fn timestamp(at: SystemTime) -> Timestamp {
    time(shared::timestamp(at))
}

pub fn asked_time(at: TimeOrNow) -> Timestamp {
    time(shared::asked_time(at))
}

/// The time of this computer's clock.
pub fn now() -> Timestamp {
    time(shared::now())
}

/// The kernel's number for an error.
pub fn errno(error: &Error) -> Errno {
    match error {
        Error::NotFound => Errno::ENOENT,
        Error::Exists => Errno::EEXIST,
        Error::NotADirectory => Errno::ENOTDIR,
        Error::IsADirectory => Errno::EISDIR,
        Error::NotEmpty => Errno::ENOTEMPTY,
        Error::Full(_) => Errno::ENOSPC,
        Error::Invalid(_) => Errno::EINVAL,
        Error::NameTooLong => Errno::ENAMETOOLONG,
        Error::TooLarge => Errno::EFBIG,
        Error::TooManyLinks => Errno::EMLINK,
        Error::Stale => Errno::ESTALE,
        Error::Locked | Error::Busy => Errno::EAGAIN,
        Error::NoAttribute => Errno::ENODATA,
        Error::Unsupported(_) => Errno::EOPNOTSUPP,
        Error::Conflict | Error::Damaged(_) | Error::Below(_) | Error::LockLost => Errno::EIO,
    }
}
