//! What commands do with files, whatever kind of volume has them.

use oblivio_volume::fs::{
    Attr, DirEntry, FileKind, Handle, Ino, NewNode, ReadAround, RenameMode, SetAttr,
};
use oblivio_volume::{Error, Result};

/// An open file. Its data lives until it is closed, whatever happens to its names.
#[derive(Clone, Copy, Debug)]
pub struct OpenId {
    /// The file's number.
    pub ino: Ino,
    /// What a file system has given out for it that only one process uses.
    pub(super) handle: Option<Handle>,
}

impl OpenId {
    /// Where the number of a file is enough.
    #[must_use]
    pub fn shared(ino: Ino) -> Self {
        Self { ino, handle: None }
    }

    pub(super) fn handle(self) -> Result<Handle> {
        self.handle.ok_or_else(|| Error::Invalid("a file of another volume".into()))
    }
}

/// The files of a volume of any kind, to look at.
pub trait ReadFiles: Send + Sync {
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

    /// Opens a file, until [`Self::close`].
    ///
    /// # Errors
    /// `IsADirectory`, and those of a read.
    fn open(&self, ino: Ino) -> Result<OpenId>;

    /// Bytes of an open file from an offset on; fewer at the end.
    ///
    /// # Errors
    /// Those of a read.
    fn read(&self, file: OpenId, offset: u64, len: usize) -> Result<Vec<u8>>;

    /// As [`Self::read`], and gives what is there if some of it is lost to damage. Without an
    /// implementation of its own, nothing is there then.
    ///
    /// # Errors
    /// Those of a read.
    fn read_around(&self, file: OpenId, offset: u64, len: usize) -> Result<ReadAround> {
        let bytes = self.read(file, offset, len)?;
        Ok(ReadAround { offset, bytes, lost: Vec::new() })
    }

    /// Closes a file. What was written to it and is not there yet is written now.
    ///
    /// # Errors
    /// Those of a write; it is closed all the same.
    fn close(&self, file: OpenId) -> Result<()>;
}

/// The files of a volume of any kind, to change. What was changed is durable with
/// [`Self::commit`].
pub trait WriteFiles: ReadFiles {
    /// Changes attributes.
    ///
    /// # Errors
    /// `NotFound`, and those of a write.
    fn set_attr(&self, ino: Ino, set: SetAttr) -> Result<Attr>;

    /// Makes a file and opens it, until [`ReadFiles::close`].
    ///
    /// # Errors
    /// `Exists`, `NotADirectory`, `Full`, and those of a write.
    fn create(&self, parent: Ino, name: &[u8], node: NewNode) -> Result<(Attr, OpenId)>;

    /// Writes to an open file at an offset.
    ///
    /// # Errors
    /// `Full`, `TooLarge`, and those of a write.
    fn write(&self, file: OpenId, offset: u64, data: &[u8]) -> Result<()>;

    /// Writes to the end of an open file, wherever others have moved it.
    ///
    /// # Errors
    /// As for [`Self::write`].
    fn append(&self, file: OpenId, data: &[u8]) -> Result<()>;

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

/// An open file of a command: dropping it closes it. Without [`Self::close`] an error of the last
/// bytes that were written is not heard.
pub struct OpenFile<'f, F: ReadFiles + ?Sized> {
    fs: &'f F,
    id: OpenId,
}

impl<'f, F: ReadFiles + ?Sized> OpenFile<'f, F> {
    /// A file that these files have open.
    pub fn of(fs: &'f F, id: OpenId) -> Self {
        Self { fs, id }
    }

    /// Bytes from an offset on; fewer at the end.
    ///
    /// # Errors
    /// Those of a read.
    pub fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.fs.read(self.id, offset, len)
    }

    /// As [`ReadFiles::read_around`].
    ///
    /// # Errors
    /// Those of a read.
    pub fn read_around(&self, offset: u64, len: usize) -> Result<ReadAround> {
        self.fs.read_around(self.id, offset, len)
    }

    /// Closes it.
    ///
    /// # Errors
    /// Those of a write; it is closed all the same.
    pub fn close(self) -> Result<()> {
        let (fs, id) = (self.fs, self.id);
        std::mem::forget(self);
        fs.close(id)
    }
}

impl<F: WriteFiles + ?Sized> OpenFile<'_, F> {
    /// Writes bytes at an offset.
    ///
    /// # Errors
    /// `Full`, `TooLarge`, and those of a write.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.fs.write(self.id, offset, data)
    }
}

impl<F: ReadFiles + ?Sized> Drop for OpenFile<'_, F> {
    fn drop(&mut self) {
        // What is only read leaves nothing to do; a volume that failed said so before.
        let _ = self.fs.close(self.id);
    }
}
