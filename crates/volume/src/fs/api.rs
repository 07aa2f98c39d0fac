//! The public face: every call takes the one lock and goes down to [`State`].

use super::state::State;
use super::types::{
    Attr, CheckReport, DirEntry, Handle, Ino, NewNode, RenameMode, SetAttr, Timestamp, Usage,
};
use crate::{BlockSpace, Error, Result};
use std::sync::Mutex;

/// A file system on a volume. All calls may come from any thread; they are served one at a time.
///
/// Nothing is durable before [`commit`](Self::commit) returns. After a crash the file system is
/// as it was at the last commit, but for ranges that were overwritten in place since then: these
/// hold old or new bytes.
pub struct FileSystem {
    state: Mutex<State>,
}

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
        Self::wrap(State::format(blocks)?)
    }

    /// Opens the file system that the last commit left, after a clean end or a crash.
    ///
    /// # Errors
    /// `Unsupported` when there is no file system or one of a newer format, and the block
    /// space's own.
    pub fn open(blocks: Box<dyn BlockSpace>) -> Result<FileSystem> {
        Self::wrap(State::open(blocks)?)
    }

    fn wrap(state: State) -> Result<FileSystem> {
        Ok(FileSystem { state: Mutex::new(state) })
    }

    /// Runs one operation on the state. A thread that panicked inside left it half changed, so
    /// nobody may go on with it then.
    fn run<T>(&self, operation: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let mut state = self.state.lock().map_err(|_| panicked())?;
        state.begin()?;
        let result = operation(&mut state);
        state.settle(result)
    }

    /// Sets where times come from. Without a clock, new things take the `mtime` they are created
    /// with and changes leave times alone.
    pub fn set_clock(&self, now: Box<dyn Fn() -> Timestamp + Send + Sync>) {
        if let Ok(mut state) = self.state.lock() {
            state.set_clock(now);
        }
    }

    /// The attributes of what `name` leads to in a directory.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`.
    pub fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Attr> {
        self.run(|state| state.lookup(parent, name))
    }

    /// The attributes of what an absolute path leads to. Symbolic links are not followed, `.` and
    /// empty components are skipped.
    ///
    /// # Errors
    /// `Invalid` for a path that is not absolute or has `..` in it, `NotFound`, `NotADirectory`.
    pub fn resolve(&self, path: &str) -> Result<Attr> {
        self.run(|state| state.resolve(path))
    }

    /// The attributes of an inode.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn attr(&self, ino: Ino) -> Result<Attr> {
        self.run(|state| state.attr(ino))
    }

    /// Changes attributes; a new size cuts the file off or extends it with zeros.
    ///
    /// # Errors
    /// `NotFound`, `IsADirectory` or `Invalid` for the size of something that is no file.
    pub fn set_attr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        self.run(|state| state.set_attr(ino, set))
    }

    /// Creates an empty file and opens it.
    ///
    /// # Errors
    /// `Exists`, `NotFound` or `NotADirectory` for the parent, `Invalid` for a bad name, `Full`.
    pub fn create(&self, parent: Ino, name: &[u8], node: NewNode) -> Result<(Attr, Handle)> {
        self.run(|state| state.create(parent, name, node))
    }

    /// Creates an empty directory.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn mkdir(&self, parent: Ino, name: &[u8], node: NewNode) -> Result<Attr> {
        self.run(|state| state.mkdir(parent, name, node))
    }

    /// Creates a symbolic link.
    ///
    /// # Errors
    /// As for [`create`](Self::create), and `Invalid` for an empty or overlong target.
    pub fn symlink(&self, parent: Ino, name: &[u8], target: &[u8], node: NewNode) -> Result<Attr> {
        self.run(|state| state.symlink(parent, name, target, node))
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// `NotFound`, `Invalid` for anything else.
    pub fn read_link(&self, ino: Ino) -> Result<Vec<u8>> {
        self.run(|state| state.read_link(ino))
    }

    /// Gives a file or symbolic link one more name.
    ///
    /// # Errors
    /// `IsADirectory`, and as for [`create`](Self::create).
    pub fn link(&self, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attr> {
        self.run(|state| state.link(ino, parent, name))
    }

    /// Removes a name of a file or symbolic link. The data lives while handles are open.
    ///
    /// # Errors
    /// `NotFound`, `IsADirectory`.
    pub fn unlink(&self, parent: Ino, name: &[u8]) -> Result<()> {
        self.run(|state| state.unlink(parent, name))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, `NotEmpty`.
    pub fn rmdir(&self, parent: Ino, name: &[u8]) -> Result<()> {
        self.run(|state| state.rmdir(parent, name))
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
        self.run(|state| state.rename((parent, name), (new_parent, new_name), mode))
    }

    /// Up to `limit` names of a directory that come after `after`, sorted by their bytes, without
    /// `.` and `..`.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`.
    pub fn read_dir(&self, ino: Ino, after: Option<&[u8]>, limit: usize) -> Result<Vec<DirEntry>> {
        self.run(|state| state.read_dir(ino, after, limit))
    }

    /// Opens a file.
    ///
    /// # Errors
    /// `NotFound`, `IsADirectory`, `Invalid` for a symbolic link.
    pub fn open_file(&self, ino: Ino) -> Result<Handle> {
        self.run(|state| state.open_file(ino))
    }

    /// Reads a range; the answer is shorter at the end of the file. All blocks of the range are
    /// fetched together, so ask for long ranges.
    ///
    /// # Errors
    /// `Invalid` for a closed handle, and the block space's own.
    pub fn read(&self, handle: Handle, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.run(|state| state.read(handle, offset, len))
    }

    /// Writes a range, extending the file as needed. All blocks of the range are written
    /// together.
    ///
    /// # Errors
    /// `Full`, `Invalid` for a closed handle or a file beyond the largest size, and the block
    /// space's own.
    pub fn write(&self, handle: Handle, offset: u64, data: &[u8]) -> Result<()> {
        self.run(|state| state.write(handle, offset, data))
    }

    /// Closes a handle; the last one to a file without names removes its data.
    ///
    /// # Errors
    /// `Invalid` for a handle that is closed already.
    pub fn close(&self, handle: Handle) -> Result<()> {
        self.run(|state| state.close(handle))
    }

    /// Makes everything so far durable, atomically. After a failure of the store it may be called
    /// again.
    ///
    /// # Errors
    /// The block space's own.
    pub fn commit(&self) -> Result<()> {
        self.run(|state| state.commit())
    }

    /// How full the volume is.
    ///
    /// # Errors
    /// `Closed` after a failure.
    pub fn usage(&self) -> Result<Usage> {
        self.run(|state| state.usage())
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
        self.run(|state| state.check(read_data, progress))
    }

    /// Commits, closes the metadata cleanly and gives the block space back.
    ///
    /// # Errors
    /// The block space's own.
    pub fn into_blocks(self) -> Result<Box<dyn BlockSpace>> {
        let mut state = self.state.into_inner().map_err(|_| panicked())?;
        state.begin()?;
        let result = state.finish();
        state.settle(result)
    }
}

fn panicked() -> Error {
    Error::Closed("a thread panicked".into())
}
