//! Between the words of the two file systems.

use oblivio_privatefs::{self as private, Error as FsError, Kind};
use oblivio_volume::Error;
use oblivio_volume::fs::{Attr, FileKind, Ino, NewNode, RenameMode, SetAttr, Timestamp};

/// Each kind, in both.
const KINDS: [(Kind, FileKind); 7] = [
    (Kind::File, FileKind::File),
    (Kind::Directory, FileKind::Directory),
    (Kind::Symlink, FileKind::Symlink),
    (Kind::Fifo, FileKind::Fifo),
    (Kind::Socket, FileKind::Socket),
    (Kind::CharDevice, FileKind::CharDevice),
    (Kind::BlockDevice, FileKind::BlockDevice),
];

pub(super) fn attr(attr: &private::Attr, ino: Ino) -> Attr {
    Attr {
        ino,
        kind: kind(attr.kind),
        size: attr.size,
        blocks: attr.size.div_ceil(512),
        mode: attr.mode,
        uid: attr.uid,
        gid: attr.gid,
        nlink: attr.nlink,
        rdev: attr.rdev,
        atime: time(attr.atime),
        mtime: time(attr.mtime),
        ctime: time(attr.ctime),
        crtime: time(attr.crtime),
    }
}

pub(super) fn set_attr(set: SetAttr) -> private::SetAttr {
    private::SetAttr {
        mode: set.mode,
        uid: set.uid,
        gid: set.gid,
        size: set.size,
        atime: set.atime.map(stored_time),
        mtime: set.mtime.map(stored_time),
        ctime: set.ctime.map(stored_time),
    }
}

pub(super) fn node(node: NewNode) -> private::NewNode {
    private::NewNode { mode: node.mode, uid: node.uid, gid: node.gid }
}

/// What a new node has there and lacks here.
pub(super) fn modified(node: NewNode) -> private::SetAttr {
    private::SetAttr { mtime: Some(stored_time(node.mtime)), ..Default::default() }
}

pub(super) fn rename_mode(mode: RenameMode) -> private::RenameMode {
    match mode {
        RenameMode::Replace => private::RenameMode::Replace,
        RenameMode::NoReplace => private::RenameMode::NoReplace,
        RenameMode::Exchange => private::RenameMode::Exchange,
    }
}

fn time(time: private::Timestamp) -> Timestamp {
    Timestamp { seconds: time.seconds, nanos: time.nanos }
}

fn stored_time(time: Timestamp) -> private::Timestamp {
    private::Timestamp { seconds: time.seconds, nanos: time.nanos }
}

pub(super) fn kind(kind: Kind) -> FileKind {
    KINDS.into_iter().find(|it| it.0 == kind).map_or(FileKind::File, |it| it.1)
}

pub(super) fn stored_kind(kind: FileKind) -> Kind {
    KINDS.into_iter().find(|it| it.1 == kind).map_or(Kind::File, |it| it.0)
}

/// What a failure is to a command; `name` is that of the file, or empty.
pub(super) fn error(error: FsError, name: &[u8]) -> Error {
    let shown = || String::from_utf8_lossy(name).into_owned();
    match error {
        FsError::NotFound | FsError::Stale => Error::NotFound(shown()),
        FsError::Exists => Error::Exists(shown()),
        FsError::NotADirectory => Error::NotADirectory(shown()),
        FsError::IsADirectory => Error::IsADirectory(shown()),
        FsError::NotEmpty => Error::NotEmpty(shown()),
        FsError::NameTooLong => Error::NameTooLong(shown()),
        FsError::TooManyLinks => Error::TooManyLinks(shown()),
        FsError::TooLarge => Error::TooLarge(error.to_string()),
        FsError::Full(_) => Error::Full(error.to_string()),
        FsError::Damaged(what) => Error::Tampered(what.into()),
        FsError::Below(below) => match below.downcast::<Error>() {
            Ok(error) => *error,
            Err(other) => Error::Invalid(other.to_string()),
        },
        other => Error::Invalid(other.to_string()),
    }
}
