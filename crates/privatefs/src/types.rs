//! The words of file systems: what callers pass and get, whichever of the two answers.
//!
//! The file system of one writer, in `oblivio_volume::fs`, has them from here.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The number of a file, directory or link; never reused within a volume.
pub type Ino = u64;

/// The root directory.
pub const ROOT_INO: Ino = 1;

/// The longest name of a directory entry, in bytes.
pub const NAME_BYTES: usize = 255;

/// The longest name of an extended attribute, in bytes.
pub const XATTR_NAME_BYTES: usize = 255;

/// The largest length of a file.
pub const MAX_FILE: u64 = i64::MAX as u64;

/// The longest target of a symbolic link, in bytes.
pub const LINK_BYTES: usize = 4095;

/// The stored bits of a mode.
pub const MODE_BITS: u32 = 0o7777;

/// An inode's type. Both file systems store it: this one its number, the other its place among
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
pub enum FileKind {
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

impl FileKind {
    pub(crate) fn from_stored(byte: u8) -> Option<Self> {
        use FileKind as K;
        let all = [K::File, K::Directory, K::Symlink, K::Fifo, K::Socket];
        let all = all.into_iter().chain([K::CharDevice, K::BlockDevice]);
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// A point in time since 1970-01-01 UTC.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Timestamp {
    /// Whole seconds, negative before 1970.
    pub seconds: i64,
    /// The rest, below 1,000,000,000.
    pub nanos: u32,
}

impl From<SystemTime> for Timestamp {
    fn from(at: SystemTime) -> Self {
        let after = match at.duration_since(UNIX_EPOCH) {
            Ok(after) => after,
            Err(before) => return Self::before_1970(before.duration()),
        };
        let seconds = i64::try_from(after.as_secs()).unwrap_or(i64::MAX);
        Self { seconds, nanos: after.subsec_nanos() }
    }
}

impl Timestamp {
    /// The nanoseconds count forwards there too.
    fn before_1970(distance: Duration) -> Self {
        let seconds = 0i64.checked_sub_unsigned(distance.as_secs()).unwrap_or(i64::MIN);
        match distance.subsec_nanos() {
            0 => Self { seconds, nanos: 0 },
            nanos => Self { seconds: seconds.saturating_sub(1), nanos: 1_000_000_000 - nanos },
        }
    }
}

impl From<Timestamp> for SystemTime {
    /// A time that the system cannot express becomes the beginning of 1970.
    fn from(at: Timestamp) -> Self {
        let nanos = Duration::from_nanos(u64::from(at.nanos));
        let seconds = Duration::from_secs(at.seconds.unsigned_abs());
        let whole = match at.seconds {
            0.. => UNIX_EPOCH.checked_add(seconds),
            _ => UNIX_EPOCH.checked_sub(seconds),
        };
        whole.and_then(|whole| whole.checked_add(nanos)).unwrap_or(UNIX_EPOCH)
    }
}

/// Everything known of an inode without reading its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attr {
    /// Its number.
    pub ino: Ino,
    /// Its type.
    pub kind: FileKind,
    /// Length of the data in bytes; of the target for a symbolic link; 0 for a directory.
    pub size: u64,
    /// Units of 512 bytes that the data takes, as far as the file system knows.
    pub blocks: u64,
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
    /// Access and modification time; without a clock, creation and change time too.
    pub mtime: Timestamp,
}

impl From<&Attr> for NewNode {
    fn from(of: &Attr) -> Self {
        Self { mode: of.mode, uid: of.uid, gid: of.gid, mtime: of.mtime }
    }
}

impl From<NewNode> for SetAttr {
    fn from(node: NewNode) -> Self {
        let NewNode { mode, uid, gid, mtime } = node;
        let (mode, uid, gid, mtime) = (Some(mode), Some(uid), Some(gid), Some(mtime));
        Self { mode, uid, gid, mtime, ..Self::default() }
    }
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name, without `/`.
    pub name: Vec<u8>,
    /// The named inode.
    pub ino: Ino,
    /// Its type.
    pub kind: FileKind,
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
    /// Fail if it does not.
    Replace,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_place_before_and_after_1970() {
        for (seconds, nanos) in [(0, 0), (5, 999_999_999), (-1, 0), (-1, 1), (-77, 999_999_999)] {
            let at = Timestamp { seconds, nanos };
            assert_eq!(Timestamp::from(SystemTime::from(at)), at);
        }
    }
}
