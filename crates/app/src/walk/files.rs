//! What commands do with files, whatever kind of volume has them.

use oblivio_volume::Result;
use oblivio_volume::fs::{Attr, DirEntry, FileKind, Ino, NewNode, RenameMode, SetAttr};

/// The files of a volume of any kind, to look at.
pub trait ReadFiles {
    /// What is known of an inode.
    ///
    /// # Errors
    /// `NotFound`, and those of a read.
    fn attr(&self, ino: Ino) -> Result<Attr>;

    /// The file of a name in a directory.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, and those of a read.
    fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Attr>;

    /// Names of a directory, sorted, at most this many, after this one.
    ///
    /// # Errors
    /// `NotADirectory`, and those of a read.
    fn read_dir(&self, ino: Ino, after: Option<&[u8]>, most: usize) -> Result<Vec<DirEntry>>;

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// `Invalid` for anything else, and those of a read.
    fn read_link(&self, ino: Ino) -> Result<Vec<u8>>;

    /// Opens a file for reading.
    ///
    /// # Errors
    /// Those of a read.
    fn open(&self, ino: Ino) -> Result<Box<dyn ReadFile + '_>>;
}

/// An open file. Its data lives until it is dropped.
pub trait ReadFile {
    /// Bytes from an offset on; fewer at the end.
    ///
    /// # Errors
    /// Those of a read.
    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>>;
}

/// The files of a volume of any kind, to change. What was changed is durable with
/// [`Self::commit`].
pub trait WriteFiles: ReadFiles {
    /// Changes attributes.
    ///
    /// # Errors
    /// `NotFound`, and those of a write.
    fn set_attr(&self, ino: Ino, set: SetAttr) -> Result<Attr>;

    /// Makes a file and opens it.
    ///
    /// # Errors
    /// `Exists`, `NotADirectory`, `Full`, and those of a write.
    fn create(
        &self,
        parent: Ino,
        name: &[u8],
        node: NewNode,
    ) -> Result<(Attr, Box<dyn WriteFile + '_>)>;

    /// Makes a directory.
    ///
    /// # Errors
    /// As for [`Self::create`].
    fn mkdir(&self, parent: Ino, name: &[u8], node: NewNode) -> Result<Attr>;

    /// Makes a pipe, socket or device.
    ///
    /// # Errors
    /// As for [`Self::create`].
    fn mknod(
        &self,
        parent: Ino,
        name: &[u8],
        kind: FileKind,
        rdev: u32,
        node: NewNode,
    ) -> Result<Attr>;

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// As for [`Self::create`].
    fn symlink(&self, parent: Ino, name: &[u8], target: &[u8], node: NewNode) -> Result<Attr>;

    /// Gives a file another name.
    ///
    /// # Errors
    /// As for [`Self::create`]; `TooManyLinks`.
    fn link(&self, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attr>;

    /// Removes a name of anything but a directory.
    ///
    /// # Errors
    /// `NotFound`, `IsADirectory`, and those of a write.
    fn unlink(&self, parent: Ino, name: &[u8]) -> Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, `NotEmpty`, and those of a write.
    fn rmdir(&self, parent: Ino, name: &[u8]) -> Result<()>;

    /// Moves a name.
    ///
    /// # Errors
    /// Those of POSIX, and those of a write.
    fn rename(
        &self,
        parent: Ino,
        name: &[u8],
        to: Ino,
        to_name: &[u8],
        mode: RenameMode,
    ) -> Result<()>;

    /// Makes all changes durable.
    ///
    /// # Errors
    /// Those of a write.
    fn commit(&self) -> Result<()>;

    /// Bytes that new data may still take.
    ///
    /// # Errors
    /// Those of a read.
    fn free_bytes(&self) -> Result<u64>;

    /// What tells this session from others that have the same files open and see each change at
    /// once; none where no other one can.
    fn among_others(&self) -> Option<&str>;
}

/// A file that is being written. Without [`Self::close`] an error of its last bytes is not heard.
pub trait WriteFile {
    /// Writes bytes at an offset.
    ///
    /// # Errors
    /// `Full`, `TooLarge`, and those of a write.
    fn write(&self, offset: u64, data: &[u8]) -> Result<()>;

    /// Closes it.
    ///
    /// # Errors
    /// Those of a write; it is closed all the same.
    fn close(self: Box<Self>) -> Result<()>;
}
