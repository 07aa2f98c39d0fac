//! The kernel's requests as plain data.

use oblivio_volume::fs::{FileKind, Ino, RenameMode, SetAttr};

pub const O_TRUNC: i32 = 0o1000;
pub const O_EXCL: i32 = 0o200;
pub const O_APPEND: i32 = 0o2000;

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
pub struct NamePlace {
    pub parent: Ino,
    pub name: Vec<u8>,
}

/// One request. `fh` are numbers from an answer that something is open; `Data` is what holds the
/// bytes of a write.
#[derive(Debug)]
pub enum FileOp<Data = Vec<u8>> {
    Lookup(NamePlace),
    GetAttr {
        ino: Ino,
        fh: Option<u64>,
    },
    /// Asks for the attributes before a write through this handle, while room is short.
    Ask {
        ino: Ino,
        fh: u64,
    },
    SetAttr {
        ino: Ino,
        fh: Option<u64>,
        change: SetAttr,
        caller: Caller,
    },
    ReadLink {
        ino: Ino,
    },
    MkNod {
        at: NamePlace,
        kind: FileKind,
        mode: u32,
        rdev: u32,
        caller: Caller,
    },
    MkDir {
        at: NamePlace,
        mode: u32,
        caller: Caller,
    },
    SymLink {
        at: NamePlace,
        target: Vec<u8>,
        caller: Caller,
    },
    Link {
        ino: Ino,
        at: NamePlace,
    },
    Unlink(NamePlace),
    RmDir(NamePlace),
    Rename {
        from: NamePlace,
        to: NamePlace,
        mode: RenameMode,
        /// Whether a whiteout of the caller's takes the old name.
        whiteout: Option<Caller>,
    },
    Create {
        at: NamePlace,
        mode: u32,
        flags: i32,
        caller: Caller,
    },
    Open {
        ino: Ino,
        flags: i32,
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
        data: Data,
        /// Whether it comes from the kernel's pages, and not from a program.
        cached: bool,
        /// Those that the file was opened with.
        flags: i32,
        /// The caller whose write clears the set-ID bits, if any.
        kill: Option<Caller>,
    },
    /// A program closes one of its descriptors of a file.
    Flush {
        ino: Ino,
        fh: u64,
        owner: u64,
    },
    Release {
        ino: Ino,
        fh: u64,
        flags: i32,
        /// Whose locks end with it.
        owner: Option<u64>,
    },
    Sync {
        ino: Ino,
        fh: Option<u64>,
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
    StatFs {
        ino: Ino,
    },
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
        how: Allocation,
        keep_size: bool,
        caller: Caller,
    },
    Seek {
        ino: Ino,
        fh: u64,
        offset: i64,
        whence: i32,
    },
    GetLock(LockRequest),
    SetLock {
        lock: LockRequest,
        /// Whether the program waits for it.
        waits: bool,
    },
}

/// What to do with room for a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    Reserve,
    Punch,
    Zero,
}

/// A lock that a program asks about. `kind` is the system's number, as `F_RDLCK`.
#[derive(Clone, Copy, Debug)]
pub struct LockRequest {
    pub ino: Ino,
    pub fh: u64,
    pub owner: u64,
    pub kind: i32,
    pub range: (u64, u64),
    pub pid: u32,
}

/// The kind of a request, for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileOpKind {
    /// Names and attributes.
    Metadata,
    /// A change of names or attributes.
    MetadataChange,
    Read,
    Write,
    Sync,
}

impl<Data: AsRef<[u8]>> FileOp<Data> {
    /// What an observer gets: kind, inode, offset, length.
    pub fn seen(&self) -> (FileOpKind, Ino, u64, u64) {
        use FileOpKind as K;
        match self {
            FileOp::Read { ino, offset, len, .. } => (K::Read, *ino, *offset, u64::from(*len)),
            FileOp::Write { ino, offset, data, .. } => {
                (K::Write, *ino, *offset, data.as_ref().len() as u64)
            }
            FileOp::Allocate { ino, offset, len, .. } => (K::MetadataChange, *ino, *offset, *len),
            FileOp::Sync { ino, .. } => (K::Sync, *ino, 0, 0),
            FileOp::GetAttr { ino, .. }
            | FileOp::Ask { ino, .. }
            | FileOp::ReadLink { ino }
            | FileOp::OpenDir { ino }
            | FileOp::ReadDir { ino, .. }
            | FileOp::GetXattr { ino, .. }
            | FileOp::ListXattr { ino, .. }
            | FileOp::Seek { ino, .. }
            | FileOp::Flush { ino, .. }
            | FileOp::GetLock(LockRequest { ino, .. })
            | FileOp::SetLock { lock: LockRequest { ino, .. }, .. } => (K::Metadata, *ino, 0, 0),
            FileOp::Open { ino, flags, .. } if flags & O_TRUNC == 0 => (K::Metadata, *ino, 0, 0),
            FileOp::SetAttr { ino, .. }
            | FileOp::Open { ino, .. }
            | FileOp::Link { ino, .. }
            | FileOp::SetXattr { ino, .. }
            | FileOp::RemoveXattr { ino, .. } => (K::MetadataChange, *ino, 0, 0),
            FileOp::Lookup(at) => (K::Metadata, at.parent, 0, 0),
            FileOp::Unlink(at) | FileOp::RmDir(at) => (K::MetadataChange, at.parent, 0, 0),
            FileOp::MkNod { at, .. }
            | FileOp::MkDir { at, .. }
            | FileOp::SymLink { at, .. }
            | FileOp::Create { at, .. }
            | FileOp::Rename { from: at, .. } => (K::MetadataChange, at.parent, 0, 0),
            FileOp::Forget { ino } => (K::Metadata, *ino, 0, 0),
            FileOp::Release { .. } | FileOp::ReleaseDir { .. } | FileOp::StatFs { .. } => {
                (K::Metadata, 0, 0, 0)
            }
        }
    }

    /// Whether it changes stored data. A release may: it removes an inode without names.
    pub fn changes(&self) -> bool {
        let kind = self.seen().0;
        matches!(kind, FileOpKind::MetadataChange | FileOpKind::Write)
            || matches!(self, FileOp::Release { .. } | FileOp::Forget { .. })
    }

    /// Whether it must be served even when no caller waits for the answer any more.
    pub fn must_be_served(&self) -> bool {
        matches!(self, FileOp::Release { .. } | FileOp::ReleaseDir { .. } | FileOp::Forget { .. })
    }
}
