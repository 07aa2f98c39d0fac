//! The public face (placeholder bodies while the layers below are being written).
#![allow(unused_variables)]

use super::types::{
    Attr, CheckReport, DirEntry, Handle, Ino, NewNode, RenameMode, SetAttr, Timestamp, Usage,
};
use crate::{BlockSpace, Error, Result};
fn pending<T>() -> Result<T> {
    Err(Error::Unsupported("the file system is not built yet".into()))
}

/// A file system on a volume. All calls may come from any thread; they are served one at a time.
///
/// Nothing is durable before [`commit`](Self::commit) returns. After a crash the file system is
/// as it was at the last commit, but for ranges that were overwritten in place since then: these
/// hold old or new bytes.
pub struct FileSystem {}

impl std::fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSystem").finish_non_exhaustive()
    }
}

impl FileSystem {
    /// Makes an empty file system on a block space and commits it.
    ///
    /// # Errors
    /// `Full` when the declared capacity is too small for the metadata, and the block space's
    /// own.
    pub fn format(blocks: Box<dyn BlockSpace>) -> Result<FileSystem> {
        pending()
    }

    /// Opens the file system that the last commit left, after a clean end or a crash.
    ///
    /// # Errors
    /// `Unsupported` when there is no file system or one of a newer format, and the block
    /// space's own.
    pub fn open(blocks: Box<dyn BlockSpace>) -> Result<FileSystem> {
        pending()
    }

    /// Sets where times come from. Without a clock, new things take the `mtime` they are created
    /// with and changes leave times alone.
    pub fn set_clock(&self, now: Box<dyn Fn() -> Timestamp + Send + Sync>) {}

    /// The attributes of what `name` leads to in a directory.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`.
    pub fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Attr> {
        pending()
    }

    /// The attributes of what an absolute path leads to. Symbolic links are not followed, `.` and
    /// empty components are skipped.
    ///
    /// # Errors
    /// `Invalid` for a path that is not absolute or has `..` in it, `NotFound`, `NotADirectory`.
    pub fn resolve(&self, path: &str) -> Result<Attr> {
        pending()
    }

    /// The attributes of an inode.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn attr(&self, ino: Ino) -> Result<Attr> {
        pending()
    }

    /// Changes attributes; a new size cuts the file off or extends it with zeros.
    ///
    /// # Errors
    /// `NotFound`, `IsADirectory` or `Invalid` for the size of something that is no file.
    pub fn set_attr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        pending()
    }

    /// Creates an empty file and opens it.
    ///
    /// # Errors
    /// `Exists`, `NotFound` or `NotADirectory` for the parent, `Invalid` for a bad name, `Full`.
    pub fn create(&self, parent: Ino, name: &[u8], node: NewNode) -> Result<(Attr, Handle)> {
        pending()
    }

    /// Creates an empty directory.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn mkdir(&self, parent: Ino, name: &[u8], node: NewNode) -> Result<Attr> {
        pending()
    }

    /// Creates a symbolic link.
    ///
    /// # Errors
    /// As for [`create`](Self::create), and `Invalid` for an empty or overlong target.
    pub fn symlink(&self, parent: Ino, name: &[u8], target: &[u8], node: NewNode) -> Result<Attr> {
        pending()
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// `NotFound`, `Invalid` for anything else.
    pub fn read_link(&self, ino: Ino) -> Result<Vec<u8>> {
        pending()
    }

    /// Gives a file or symbolic link one more name.
    ///
    /// # Errors
    /// `IsADirectory`, and as for [`create`](Self::create).
    pub fn link(&self, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attr> {
        pending()
    }

    /// Removes a name of a file or symbolic link. The data lives while handles are open.
    ///
    /// # Errors
    /// `NotFound`, `IsADirectory`.
    pub fn unlink(&self, parent: Ino, name: &[u8]) -> Result<()> {
        pending()
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, `NotEmpty`.
    pub fn rmdir(&self, parent: Ino, name: &[u8]) -> Result<()> {
        pending()
    }

    /// Moves a name, atomically.
    ///
    /// # Errors
    /// `Invalid` for a directory that would come below itself, `Exists`, `NotEmpty`,
    /// `NotADirectory`, `IsADirectory` as POSIX has them.
    pub fn rename(
        &self,
        parent: Ino,
        name: &[u8],
        new_parent: Ino,
        new_name: &[u8],
        mode: RenameMode,
    ) -> Result<()> {
        pending()
    }

    /// Up to `limit` names of a directory that come after `after`, sorted by their bytes, without
    /// `.` and `..`.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`.
    pub fn read_dir(&self, ino: Ino, after: Option<&[u8]>, limit: usize) -> Result<Vec<DirEntry>> {
        pending()
    }

    /// Opens a file.
    ///
    /// # Errors
    /// `NotFound`, `IsADirectory`, `Invalid` for a symbolic link.
    pub fn open_file(&self, ino: Ino) -> Result<Handle> {
        pending()
    }

    /// Reads a range; the answer is shorter at the end of the file. All blocks of the range are
    /// fetched together, so ask for long ranges.
    ///
    /// # Errors
    /// `Invalid` for a closed handle, and the block space's own.
    pub fn read(&self, handle: Handle, offset: u64, len: usize) -> Result<Vec<u8>> {
        pending()
    }

    /// Writes a range, extending the file as needed. All blocks of the range are written
    /// together.
    ///
    /// # Errors
    /// `Full`, `Invalid` for a closed handle or a file beyond the largest size, and the block
    /// space's own.
    pub fn write(&self, handle: Handle, offset: u64, data: &[u8]) -> Result<()> {
        pending()
    }

    /// Closes a handle; the last one to a file without names removes its data.
    ///
    /// # Errors
    /// `Invalid` for a handle that is closed already.
    pub fn close(&self, handle: Handle) -> Result<()> {
        pending()
    }

    /// Makes everything so far durable, atomically. After a failure of the store it may be called
    /// again.
    ///
    /// # Errors
    /// The block space's own.
    pub fn commit(&self) -> Result<()> {
        pending()
    }

    /// How full the volume is.
    ///
    /// # Errors
    /// `Closed` after a failure.
    pub fn usage(&self) -> Result<Usage> {
        pending()
    }

    /// Checks the metadata: names, link counts, blocks, packing.
    ///
    /// # Errors
    /// Only when something could not be read; what is wrong stands in the report.
    pub fn check(&self) -> Result<CheckReport> {
        self.check_with(false, &mut |_, _| {})
    }

    /// As [`check`](Self::check), and with `read_data` reads every block of file data too.
    /// `progress` hears of steps done and steps in all.
    ///
    /// # Errors
    /// Only when metadata could not be read; data that could not stands in the report.
    pub fn check_with(
        &self,
        read_data: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<CheckReport> {
        pending()
    }

    /// Commits, closes the metadata cleanly and gives the block space back.
    ///
    /// # Errors
    /// The block space's own.
    pub fn into_blocks(self) -> Result<Box<dyn BlockSpace>> {
        pending()
    }
}
