//! The kernel's requests as plain data, and their answers.

use super::errno;
use crate::queue::{self, Refusal};
use fuser::Errno;
use oblivio_volume::Error;
use oblivio_volume::fs::{Attr, Ino, RenameMode, SetAttr, Usage};

/// The caller of a request; it owns the files that it makes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
}

impl Caller {
    /// Whether set-ID bits stay when this caller changes a file's content. The kernel reports the
    /// right to that (`CAP_FSETID`) with writes only; elsewhere root counts as having it.
    pub fn keeps_set_ids(self) -> bool {
        self.uid == 0
    }
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub parent: Ino,
    pub name: Vec<u8>,
}

/// One request. `fh` are numbers from [`Answer::Opened`].
#[derive(Debug)]
pub enum Op {
    Lookup(Place),
    GetAttr {
        ino: Ino,
    },
    /// Asks for the attributes before a write through this handle, while room is short.
    Ask {
        ino: Ino,
        fh: u64,
    },
    SetAttr {
        ino: Ino,
        change: SetAttr,
        caller: Caller,
    },
    ReadLink {
        ino: Ino,
    },
    MkNod {
        at: Place,
        mode: u32,
        rdev: u32,
        caller: Caller,
    },
    MkDir {
        at: Place,
        mode: u32,
        caller: Caller,
    },
    SymLink {
        at: Place,
        target: Vec<u8>,
        caller: Caller,
    },
    Link {
        ino: Ino,
        at: Place,
    },
    Unlink(Place),
    RmDir(Place),
    Rename {
        from: Place,
        to: Place,
        mode: RenameMode,
        /// Whether a whiteout of the caller's takes the old name.
        whiteout: Option<Caller>,
    },
    Create {
        at: Place,
        mode: u32,
        exclusive: bool,
        caller: Caller,
    },
    Open {
        ino: Ino,
        truncate: bool,
        caller: Caller,
    },
    Read {
        ino: Ino,
        fh: u64,
        offset: u64,
        len: u32,
    },
    Write {
        ino: Ino,
        fh: u64,
        offset: u64,
        data: Vec<u8>,
        cached: bool,
        /// The caller whose write clears the set-ID bits, if any.
        kill: Option<Caller>,
    },
    Release {
        fh: u64,
    },
    Sync {
        ino: Ino,
    },
    OpenDir {
        ino: Ino,
    },
    ReadDir {
        ino: Ino,
        fh: u64,
        cookie: u64,
        plus: bool,
    },
    ReleaseDir {
        fh: u64,
    },
    StatFs,
    /// The kernel drops its references.
    Forget {
        ino: Ino,
    },
    GetXattr {
        ino: Ino,
        name: Vec<u8>,
        size: u32,
    },
    SetXattr {
        ino: Ino,
        name: Vec<u8>,
        value: Vec<u8>,
        flags: i32,
    },
    ListXattr {
        ino: Ino,
        size: u32,
        caller: Caller,
    },
    RemoveXattr {
        ino: Ino,
        name: Vec<u8>,
    },
    Allocate {
        ino: Ino,
        fh: u64,
        offset: u64,
        len: u64,
        mode: i32,
        caller: Caller,
    },
    Seek {
        ino: Ino,
        fh: u64,
        offset: i64,
        whence: i32,
    },
}

/// The kind of a request, for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// Names and attributes.
    Metadata,
    /// A change of names or attributes.
    MetadataChange,
    Read,
    Write,
    Sync,
}

impl Op {
    /// What an observer gets: kind, inode, offset, length.
    pub fn seen(&self) -> (RequestKind, Ino, u64, u64) {
        use RequestKind as K;
        match self {
            Op::Read { ino, offset, len, .. } => (K::Read, *ino, *offset, u64::from(*len)),
            Op::Write { ino, offset, data, .. } => (K::Write, *ino, *offset, data.len() as u64),
            Op::Allocate { ino, offset, len, .. } => (K::MetadataChange, *ino, *offset, *len),
            Op::Sync { ino } => (K::Sync, *ino, 0, 0),
            Op::GetAttr { ino }
            | Op::Ask { ino, .. }
            | Op::ReadLink { ino }
            | Op::Open { ino, truncate: false, .. }
            | Op::OpenDir { ino }
            | Op::ReadDir { ino, .. }
            | Op::GetXattr { ino, .. }
            | Op::ListXattr { ino, .. }
            | Op::Seek { ino, .. } => (K::Metadata, *ino, 0, 0),
            Op::SetAttr { ino, .. }
            | Op::Open { ino, .. }
            | Op::Link { ino, .. }
            | Op::SetXattr { ino, .. }
            | Op::RemoveXattr { ino, .. } => (K::MetadataChange, *ino, 0, 0),
            Op::Lookup(at) => (K::Metadata, at.parent, 0, 0),
            Op::Unlink(at) | Op::RmDir(at) => (K::MetadataChange, at.parent, 0, 0),
            Op::MkNod { at, .. }
            | Op::MkDir { at, .. }
            | Op::SymLink { at, .. }
            | Op::Create { at, .. }
            | Op::Rename { from: at, .. } => (K::MetadataChange, at.parent, 0, 0),
            Op::Forget { ino } => (K::Metadata, *ino, 0, 0),
            Op::Release { .. } | Op::ReleaseDir { .. } | Op::StatFs => (K::Metadata, 0, 0, 0),
        }
    }

    /// Whether it changes stored data. A release may: it removes an inode without names.
    pub fn changes(&self) -> bool {
        let kind = self.seen().0;
        matches!(kind, RequestKind::MetadataChange | RequestKind::Write)
            || matches!(self, Op::Release { .. } | Op::Forget { .. })
    }

    /// Whether it must be served even when no caller waits for the answer any more.
    pub fn must_be_served(&self) -> bool {
        matches!(self, Op::Release { .. } | Op::ReleaseDir { .. } | Op::Forget { .. })
    }
}

/// An entry of a directory listing.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The cookie of the next entry.
    pub cookie: u64,
    pub name: Vec<u8>,
    pub ino: Ino,
    pub kind: fuser::FileType,
    /// For listings with attributes; `.` and `..` have none.
    pub attr: Option<Attr>,
}

/// The answer to a successful request.
#[derive(Debug)]
pub enum Answer {
    Done,
    /// `None`: the name does not exist, and the kernel may cache that.
    Entry(Option<Attr>),
    Attr(Attr),
    Created(Attr, u64),
    Opened(u64),
    Data(Vec<u8>),
    Written(u32),
    Usage(Usage),
    Size(u32),
    Listing(Vec<Listed>),
    Offset(u64),
}

impl Refusal for Errno {
    const STALLED: Self = Errno::EIO;

    fn is_failure(error: &Error) -> bool {
        errno::of(error).code() == Errno::EIO.code()
    }
}

/// Delivers the answer.
pub type Replier = queue::Replier<Answer, Errno>;
/// A waiting request.
pub type Request = queue::Request<Op, Answer, Errno>;
/// The queue before the server.
pub type Queue = queue::Queue<Op, Answer, Errno>;
