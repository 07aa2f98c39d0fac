//! Between the file systems' types and the kernel's.

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use oblivio_volume::fs::{Attr, FileKind, Timestamp};
use std::time::{SystemTime, UNIX_EPOCH};

pub fn kind(kind: FileKind) -> FileType {
    match kind {
        FileKind::File => FileType::RegularFile,
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Fifo => FileType::NamedPipe,
        FileKind::Socket => FileType::Socket,
        FileKind::CharDevice => FileType::CharDevice,
        FileKind::BlockDevice => FileType::BlockDevice,
    }
}

/// The kind in the mode of a new node.
pub fn kind_of_mode(mode: u32) -> Option<FileKind> {
    match mode & 0o170_000 {
        0o100_000 | 0 => Some(FileKind::File),
        0o010_000 => Some(FileKind::Fifo),
        0o140_000 => Some(FileKind::Socket),
        0o020_000 => Some(FileKind::CharDevice),
        0o060_000 => Some(FileKind::BlockDevice),
        _ => None,
    }
}

pub fn attr(attr: &Attr, block_bytes: u32) -> FileAttr {
    FileAttr {
        ino: INodeNo(attr.ino),
        size: attr.size,
        blocks: attr.blocks,
        atime: attr.atime.into(),
        mtime: attr.mtime.into(),
        ctime: attr.ctime.into(),
        crtime: attr.crtime.into(),
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

/// An entry that tells the kernel that the name does not exist.
pub fn nothing() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}

/// The time in a request as the kernel sent it: whole seconds, and nanoseconds that count forwards
/// before 1970 too.
///
/// The crate that decodes requests takes both as a distance before 1970, half of which is the wrong
/// way. That loses nothing, so this recovers the time from the distance. (The crate is pinned to
/// one release; the tests set such times through a mount.)
pub fn timestamp(at: SystemTime) -> Timestamp {
    match at.duration_since(UNIX_EPOCH) {
        Ok(after) => Timestamp {
            seconds: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            nanos: after.subsec_nanos(),
        },
        Err(before) => {
            let before = before.duration();
            let seconds = 0i64.checked_sub_unsigned(before.as_secs()).unwrap_or(i64::MIN);
            Timestamp { seconds, nanos: before.subsec_nanos() }
        }
    }
}

/// The time of this computer's clock.
pub fn now() -> Timestamp {
    SystemTime::now().into()
}

pub fn asked_time(at: TimeOrNow) -> Timestamp {
    match at {
        TimeOrNow::SpecificTime(at) => timestamp(at),
        TimeOrNow::Now => now(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The crate's decoding of a request's seconds and nanoseconds.
    fn as_decoded(seconds: i64, nanos: u32) -> SystemTime {
        match u64::try_from(seconds) {
            Ok(seconds) => UNIX_EPOCH + Duration::new(seconds, nanos),
            Err(_) => UNIX_EPOCH - Duration::new(seconds.unsigned_abs(), nanos),
        }
    }

    #[test]
    fn times_before_1970_keep_their_place() {
        for (seconds, nanos) in [
            (0, 0),
            (-1, 0),
            (-1, 999_999_999),
            (-1, 1),
            (-2_000_000_000, 5),
            (4_000_000_000, 123_456_789),
            (i64::MAX, 0),
            (i64::MIN, 0),
            (i64::MIN + 1, 1),
        ] {
            let at = Timestamp { seconds, nanos };
            assert_eq!(timestamp(as_decoded(seconds, nanos)), at);
            // Answers use the true time, which the crate encodes correctly.
            let whole = SystemTime::from(Timestamp { seconds, nanos: 0 });
            let later = SystemTime::from(at).duration_since(whole).expect("not before");
            assert_eq!(later, Duration::from_nanos(nanos.into()));
        }
    }
}
