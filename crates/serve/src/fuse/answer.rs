//! Answers to the kernel's requests, and how they reach it.

use super::convert;
use super::part::MountPart;
use fuser::{
    Errno, FileAttr, FileHandle, FopenFlags, Generation, INodeNo, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLock, ReplyLseek,
    ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr,
};
use oblivio_volume::fs::{Attr, FileKind, Ino, NAME_BYTES};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Inode numbers are never reused, so each has one generation.
const GENERATION: Generation = Generation(0);

/// The answer to a successful request.
#[derive(Debug)]
pub enum FileAnswer {
    Done,
    /// `None`: the name does not exist, and the kernel may cache that.
    Entry(Option<Attr>),
    Attr(Attr),
    Created(Attr, u64, FopenFlags),
    Opened(u64, FopenFlags),
    Data(Vec<u8>),
    Written(u32),
    Statfs(Statfs),
    Size(u32),
    Listing(Vec<ListedName>),
    Offset(u64),
    Lock {
        range: (u64, u64),
        kind: i32,
        pid: u32,
    },
}

/// An entry of a directory listing.
#[derive(Clone, Debug)]
pub struct ListedName {
    /// The cookie of the next entry.
    pub cookie: u64,
    pub name: Vec<u8>,
    pub ino: Ino,
    pub kind: FileKind,
    /// For listings with attributes; `.` and `..` have none.
    pub attr: Option<Attr>,
}

impl ListedName {
    /// The entry `.` or `..`.
    pub fn dots(cookie: u64, name: &[u8], ino: Ino) -> Self {
        Self { cookie, name: name.to_vec(), ino, kind: FileKind::Directory, attr: None }
    }
}

/// How full a file system is, in blocks.
#[derive(Clone, Copy, Debug)]
pub struct Statfs {
    pub blocks: u64,
    pub free: u64,
    /// Free blocks that there is room for.
    pub available: u64,
    pub files: u64,
    pub files_free: u64,
    pub block_bytes: u32,
}

/// What the kernel learns with attributes.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// How long it may keep them.
    pub ttl: Duration,
    pub block_bytes: u32,
    /// Whose numbers they are.
    pub part: MountPart,
}

/// Where the answer to a request goes.
#[derive(Debug)]
pub enum KernelReply {
    Attr(ReplyAttr),
    Created(ReplyCreate),
    Data(ReplyData),
    Directory(ReplyDirectory),
    DirectoryPlus(ReplyDirectoryPlus),
    Empty(ReplyEmpty),
    Entry(ReplyEntry),
    Lock(ReplyLock),
    Offset(ReplyLseek),
    Opened(ReplyOpen),
    Statfs(ReplyStatfs),
    Written(ReplyWrite),
    Xattr(ReplyXattr),
}

impl KernelReply {
    /// Hands over that the request failed.
    pub fn error(self, errno: Errno) {
        match self {
            Self::Attr(reply) => reply.error(errno),
            Self::Created(reply) => reply.error(errno),
            Self::Data(reply) => reply.error(errno),
            Self::Directory(reply) => reply.error(errno),
            Self::DirectoryPlus(reply) => reply.error(errno),
            Self::Empty(reply) => reply.error(errno),
            Self::Entry(reply) => reply.error(errno),
            Self::Lock(reply) => reply.error(errno),
            Self::Offset(reply) => reply.error(errno),
            Self::Opened(reply) => reply.error(errno),
            Self::Statfs(reply) => reply.error(errno),
            Self::Written(reply) => reply.error(errno),
            Self::Xattr(reply) => reply.error(errno),
        }
    }

    /// Hands over an answer. One of another kind than was asked for is our bug.
    pub fn answer(self, answer: Result<FileAnswer, Errno>, manner: Manner) {
        let Manner { ttl, part, .. } = manner;
        let attr = |attr: &Attr| manner.attr(attr);
        match (self, answer) {
            (reply, Err(errno)) => reply.error(errno),
            (Self::Attr(reply), Ok(FileAnswer::Attr(found))) => reply.attr(&ttl, &attr(&found)),
            (Self::Created(reply), Ok(FileAnswer::Created(made, fh, flags))) => {
                reply.created(&ttl, &attr(&made), GENERATION, FileHandle(part.mark(fh)), flags);
            }
            (Self::Data(reply), Ok(FileAnswer::Data(data))) => reply.data(&data),
            (Self::Directory(reply), Ok(FileAnswer::Listing(entries))) => {
                list(reply, &entries, part);
            }
            (Self::DirectoryPlus(reply), Ok(FileAnswer::Listing(entries))) => {
                list_plus(reply, &entries, manner, |_| ());
            }
            (Self::Empty(reply), Ok(FileAnswer::Done)) => reply.ok(),
            (Self::Entry(reply), Ok(FileAnswer::Entry(found))) => {
                let found = found.as_ref().map_or_else(convert::nothing, attr);
                reply.entry(&ttl, &found, GENERATION);
            }
            (Self::Lock(reply), Ok(FileAnswer::Lock { range, kind, pid })) => {
                reply.locked(range.0, range.1, kind, pid);
            }
            (Self::Offset(reply), Ok(FileAnswer::Offset(found))) => match i64::try_from(found) {
                Ok(found) => reply.offset(found),
                Err(_) => reply.error(Errno::EOVERFLOW),
            },
            (Self::Opened(reply), Ok(FileAnswer::Opened(fh, flags))) => {
                reply.opened(FileHandle(part.mark(fh)), flags);
            }
            (Self::Statfs(reply), Ok(FileAnswer::Statfs(space))) => space.hand_over(reply),
            (Self::Written(reply), Ok(FileAnswer::Written(bytes))) => reply.written(bytes),
            (Self::Xattr(reply), Ok(FileAnswer::Data(data))) => reply.data(&data),
            (Self::Xattr(reply), Ok(FileAnswer::Size(size))) => reply.size(size),
            (reply, Ok(_)) => reply.error(Errno::EIO),
        }
    }
}

impl Manner {
    fn attr(self, attr: &Attr) -> FileAttr {
        let found = convert::attr(attr, self.block_bytes);
        FileAttr { ino: INodeNo(self.part.mark(attr.ino)), ..found }
    }
}

impl Statfs {
    fn hand_over(self, reply: ReplyStatfs) {
        let Self { blocks, free, available, files, files_free, block_bytes } = self;
        let names = NAME_BYTES as u32;
        reply.statfs(blocks, free, available, files, files_free, block_bytes, names, block_bytes);
    }
}

fn list(mut reply: ReplyDirectory, entries: &[ListedName], part: MountPart) {
    for entry in entries {
        let (ino, kind) = (INodeNo(part.mark(entry.ino)), convert::kind(entry.kind));
        if reply.add(ino, entry.cookie, kind, OsStr::from_bytes(&entry.name)) {
            break;
        }
    }
    reply.ok();
}

/// Hands over a listing with attributes, as far as it fits. `learned` hears each inode of which the
/// kernel learns by it.
pub fn list_plus(
    mut reply: ReplyDirectoryPlus,
    entries: &[ListedName],
    manner: Manner,
    learned: impl Fn(Ino),
) {
    for entry in entries {
        // The kernel takes only number and kind of `.` and `..` from here.
        let bare = || FileAttr {
            ino: INodeNo(manner.part.mark(entry.ino)),
            kind: convert::kind(entry.kind),
            ..convert::nothing()
        };
        let attr = entry.attr.as_ref();
        let known = attr.map_or_else(bare, |attr| manner.attr(attr));
        let name = OsStr::from_bytes(&entry.name);
        if reply.add(known.ino, entry.cookie, name, &manner.ttl, &known, GENERATION) {
            break;
        }
        if let Some(attr) = attr {
            learned(attr.ino);
        }
    }
    reply.ok();
}
