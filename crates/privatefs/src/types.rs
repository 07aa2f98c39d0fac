//! The arguments and answers of the file system's callers.

use crate::transactions::Owner;

/// The longest name of a directory entry, in bytes.
pub const NAME_BYTES: usize = 255;
/// The longest name of an extended attribute, in bytes.
pub const XATTR_NAME_BYTES: usize = 255;
/// The longest target of a symbolic link, in bytes.
pub const LINK_BYTES: usize = 4095;
/// The largest length of a file.
pub const MAX_FILE: u64 = i64::MAX as u64;
/// The stored bits of a mode.
pub(crate) const MODE_BITS: u32 = 0o7777;
/// The most names of a file.
pub(crate) const MOST_LINKS: u32 = 65_000;

/// An inode's type. The numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Bytes.
    File = 1,
    /// Names.
    Directory = 2,
    /// A path that the caller resolves.
    Symlink = 3,
    /// A named pipe. Like all that follow, it is only a name and attributes here.
    Fifo = 4,
    /// A socket.
    Socket = 5,
    /// A character device.
    CharDevice = 6,
    /// A block device.
    BlockDevice = 7,
}

impl Kind {
    pub(crate) fn from_stored(byte: u8) -> Option<Self> {
        use Kind as K;
        let all = [K::File, K::Directory, K::Symlink, K::Fifo, K::Socket];
        let all = all.into_iter().chain([K::CharDevice, K::BlockDevice]);
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// A point in time since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Whole seconds, negative before 1970.
    pub seconds: i64,
    /// The rest, below 1,000,000,000.
    pub nanos: u32,
}

/// Everything known of an inode without reading its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attr {
    /// Its number.
    pub id: Owner,
    /// Its type.
    pub kind: Kind,
    /// Length of the data in bytes; of the target for a symbolic link; 0 for a directory.
    pub size: u64,
    /// Permission bits (`0o7777`).
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Its names; for a directory 2 and one for each directory in it.
    pub nlink: u32,
    /// The device's number; 0 for anything else.
    pub rdev: u32,
    /// The creation time, unless set: reading leaves it alone.
    pub atime: Timestamp,
    /// Time of the data's last change.
    pub mtime: Timestamp,
    /// Time of the last change of data or attributes.
    pub ctime: Timestamp,
    /// Time of creation.
    pub crtime: Timestamp,
    /// Drawn anew at each change: data that was cached under another value is out of date.
    pub change: [u8; 16],
}

/// Attributes to change; `None` leaves one as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttr {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Length: cut off or extended with zeros that take no space.
    pub size: Option<u64>,
    /// Access time.
    pub atime: Option<Timestamp>,
    /// Modification time; wins over the clock.
    pub mtime: Option<Timestamp>,
    /// Change time; wins over the clock.
    pub ctime: Option<Timestamp>,
}

/// The attributes of a new inode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewNode {
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where a listing goes on after it; at least 3.
    pub cookie: u64,
    /// The name, without `/`.
    pub name: Vec<u8>,
    /// The named inode.
    pub id: Owner,
    /// Its type.
    pub kind: Kind,
}

/// How a rename treats an existing target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RenameMode {
    /// Replace it, as in POSIX.
    Replace,
    /// Fail with `Exists`.
    NoReplace,
    /// Swap the two; both must exist.
    Exchange,
}

/// Whether an extended attribute may or must exist already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum XattrMode {
    /// Either.
    Set,
    /// Fail with `Exists` if it exists.
    Create,
    /// Fail with `NoAttribute` if it does not.
    Replace,
}
