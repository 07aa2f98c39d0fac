//! The arguments and answers of the file system's callers: the words of all file systems, and those
//! that only this one has.

pub use oblivio_privatefs::{
    Attr, DirEntry, FileKind, Ino, LINK_BYTES, MAX_FILE, MODE_BITS, NAME_BYTES, NewNode, ROOT_INO,
    RenameMode, SetAttr, Timestamp, XATTR_NAME_BYTES, XattrMode,
};

use crate::LostBytes;

/// The longest value of an extended attribute, in bytes.
pub const XATTR_VALUE_BYTES: usize = 64 << 10;

/// An open file. Its data lives until the handle is closed, whatever happens to its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(pub(super) u64);

/// What to look for in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SeekWhence {
    /// Written bytes.
    Data,
    /// Unwritten bytes, or the end of the file.
    Hole,
}

/// How full the volume is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Every inode that is not a directory, once each.
    pub files: u64,
    /// Directories, including the root.
    pub directories: u64,
    /// The sum of all file lengths.
    pub logical_bytes: u64,
    /// Blocks that hold file data.
    pub data_blocks: u64,
    /// Blocks set aside for metadata.
    pub metadata_blocks: u64,
    /// Blocks that new file data may still take, at most as many as the store below has room for.
    /// It excludes the metadata reserve and includes what the next commit frees.
    pub free_blocks: u64,
    /// The same, whatever the store below has room for.
    pub unused_blocks: u64,
    /// Blocks that the volume may ever hold.
    pub capacity_blocks: u64,
    /// Bytes in a block.
    pub block_bytes: u64,
    /// As [`crate::BlockSpace::commits_evenly`].
    pub commits_evenly: bool,
}

/// The findings of a check of the whole file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Every inode that is not a directory.
    pub files: u64,
    /// Directories, including the root.
    pub directories: u64,
    /// Blocks in use, for data and metadata.
    pub blocks: u64,
    /// Everything wrong; empty when all is well.
    pub problems: Vec<String>,
    /// Everything lost to damage: files by their paths, and the metadata. Where that is lost, other
    /// problems may be hidden by it, and files may be missing here.
    pub lost: Vec<LostBytes>,
    /// What an earlier repair found to be lost, and nobody wrote or removed since.
    pub holes: Vec<LostBytes>,
}

impl CheckReport {
    /// Whether all is well, but for holes.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty() && self.lost.is_empty()
    }
}
