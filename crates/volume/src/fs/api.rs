//! The public face: every call takes the one lock and goes down to [`State`].

mod around;
mod scrubbing;
mod xattr;

use super::state::State;
use super::types::{
    Attr, CheckReport, DirEntry, FileKind, Handle, Ino, NewNode, RenameMode, SeekWhence, SetAttr,
    Timestamp, Usage,
};
use crate::{BlockSpace, Error, Result};
use std::sync::Mutex;

/// A file system on a volume. Any thread may call; calls are served one at a time.
///
/// Nothing is durable before [`commit`](Self::commit) returns. A crash restores the last commit,
/// except for ranges overwritten in place since: these hold old or new bytes.
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
        Ok(FileSystem { state: Mutex::new(State::format(blocks)?) })
    }

    /// Opens the file system that the last commit left, after a clean end or a crash.
    ///
    /// # Errors
    /// `Unsupported` when there is no file system or one of a newer format, and the block
    /// space's own.
    pub fn open(blocks: Box<dyn BlockSpace>) -> Result<FileSystem> {
        Self::open_ahead(blocks, 0)
    }

    /// As [`open`](Self::open), and reads up to `most` blocks of metadata ahead, all together: one
    /// by one they would cost trips to the store. The number read depends on how many there are.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_ahead(blocks: Box<dyn BlockSpace>, most: usize) -> Result<FileSystem> {
        Ok(FileSystem { state: Mutex::new(State::open(blocks, most)?) })
    }

    /// Runs one operation on the state. A panic inside leaves the state half changed, so every
    /// later call fails.
    pub(super) fn run<T>(&self, operation: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let mut state = self.state.lock().map_err(|_| panicked())?;
        state.begin()?;
        let result = operation(&mut state);
        // A failed operation too: it also made accesses, such as a lookup of a missing name.
        let (done, padded) = (state.end(result), state.end_operation());
        let done = done?;
        padded?;
        Ok(done)
    }

    /// Does a little idle maintenance. Gives the time after which it wants another call even if
    /// nothing else happened.
    ///
    /// # Errors
    /// The block space's own.
    pub fn idle(&self) -> Result<Option<std::time::Duration>> {
        self.state.lock().map_err(|_| panicked())?.idle()
    }

    /// As [`BlockSpace::wants_commit`].
    pub fn wants_commit(&self) -> bool {
        self.state.lock().is_ok_and(|state| state.wants_commit())
    }

    /// Sets the clock. Without one, new inodes take the `mtime` they are created with and changes
    /// leave times alone.
    pub fn set_clock(&self, now: Box<dyn Fn() -> Timestamp + Send + Sync>) {
        if let Ok(mut state) = self.state.lock() {
            state.set_clock(now);
        }
    }

    /// The attributes of a name in a directory.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`.
    pub fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Attr> {
        self.run(|state| state.lookup(parent, name))
    }

    /// The attributes of an absolute path. It does not follow symbolic links, and skips `.` and
    /// empty components.
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
    /// `NotFound`, `IsADirectory` or `Invalid` for the size of anything but a file, `TooLarge`,
    /// `Full`.
    pub fn set_attr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        self.run(|state| state.set_attr(ino, set))
    }

    /// Creates an empty file and opens it.
    ///
    /// # Errors
    /// `Exists`, `NotFound` or `NotADirectory` for the parent, `Invalid` or `NameTooLong` for
    /// a bad name, `Full`.
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

    /// Creates a special file, or an empty file without opening it. Only devices keep `rdev`.
    ///
    /// # Errors
    /// As for [`create`](Self::create), and `Invalid` for a directory or symbolic link.
    pub fn mknod(
        &self,
        parent: Ino,
        name: &[u8],
        kind: FileKind,
        rdev: u32,
        node: NewNode,
    ) -> Result<Attr> {
        self.run(|state| state.mknod(parent, name, kind, rdev, node))
    }

    /// A directory's parent; the root is its own.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`.
    pub fn parent(&self, ino: Ino) -> Result<Ino> {
        self.run(|state| state.parent(ino))
    }

    /// Creates a symbolic link.
    ///
    /// # Errors
    /// As for [`create`](Self::create), `Invalid` for an empty target and `NameTooLong`.
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

    /// Gives anything but a directory one more name.
    ///
    /// # Errors
    /// `IsADirectory`, `TooManyLinks`, and as for [`create`](Self::create).
    pub fn link(&self, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attr> {
        self.run(|state| state.link(ino, parent, name))
    }

    /// Removes a name of anything but a directory. The data lives while handles are open.
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
    /// `Invalid` for a directory moved below itself, `Exists`, `NotEmpty`, `NotADirectory`,
    /// `IsADirectory` as in POSIX.
    pub fn rename(
        &self,
        parent: Ino,
        name: &[u8],
        new_parent: Ino,
        new_name: &[u8],
        mode: RenameMode,
    ) -> Result<()> {
        self.run(|state| state.rename((parent, name), (new_parent, new_name), mode, None))
    }

    /// As [`rename`](Self::rename), and leaves a whiteout at the old name in the same step: a
    /// character device of number 0, with the attributes of `node`.
    ///
    /// # Errors
    /// As for [`rename`](Self::rename); `Invalid` for an exchange, and `Full`.
    pub fn rename_with_whiteout(
        &self,
        (parent, name): (Ino, &[u8]),
        (new_parent, new_name): (Ino, &[u8]),
        mode: RenameMode,
        node: NewNode,
    ) -> Result<()> {
        self.run(|state| state.rename((parent, name), (new_parent, new_name), mode, Some(node)))
    }

    /// Up to `limit` names of a directory after `after`, sorted by bytes, without `.` and `..`.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`.
    pub fn read_dir(&self, ino: Ino, after: Option<&[u8]>, limit: usize) -> Result<Vec<DirEntry>> {
        self.run(|state| state.read_dir(ino, after, limit))
    }

    /// Opens a file.
    ///
    /// # Errors
    /// `NotFound`, `IsADirectory`, `Invalid` for a symbolic link or special file.
    pub fn open_file(&self, ino: Ino) -> Result<Handle> {
        self.run(|state| state.open_file(ino))
    }

    /// Opens a directory. While open it outlives the removal of its name, empty.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`.
    pub fn open_directory(&self, ino: Ino) -> Result<Handle> {
        self.run(|state| state.open_directory(ino))
    }

    /// Writes a range, all its blocks together, and extends the file as needed. What it writes
    /// whole is lost no more.
    ///
    /// # Errors
    /// `Lost` if a block is lost to damage of which it writes a part; of the rest of the range,
    /// some may be written then. `Full`, `TooLarge`, `Invalid` for a closed handle, and the block
    /// space's own.
    pub fn write(&self, handle: Handle, offset: u64, data: &[u8]) -> Result<()> {
        self.run(|state| state.write(handle, offset, data))
    }

    /// Makes a hole: the range reads as zeros, the size stays, and its whole blocks are given back.
    ///
    /// # Errors
    /// `Invalid` for a closed handle or no bytes, `TooLarge`, `Full` when a shared tail must be
    /// rewritten, and the block space's own.
    pub fn punch(&self, handle: Handle, offset: u64, len: u64) -> Result<()> {
        self.run(|state| state.punch(handle, offset, len))
    }

    /// Makes a range read as zeros and sets its blocks aside, as [`allocate`](Self::allocate) does.
    /// Without `keep_size` a range behind the end lengthens the file.
    ///
    /// # Errors
    /// As for [`allocate`](Self::allocate).
    pub fn zero_range(&self, handle: Handle, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        self.run(|state| state.zero_range(handle, offset, len, keep_size))
    }

    /// Sets the blocks of a range aside, so that writes in it cannot fail with `Full`. Existing
    /// data stays; new blocks read as zeros. Without `keep_size` a range behind the end lengthens
    /// the file.
    ///
    /// # Errors
    /// `Full`, `TooLarge`, `Invalid` for a closed handle or no bytes, and the block space's own.
    pub fn allocate(&self, handle: Handle, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        self.run(|state| state.allocate(handle, offset, len, keep_size))
    }

    /// The next data or hole at or behind an offset, by whole blocks. Each file ends with a hole.
    /// `None` when the offset is behind the end, or no data follows.
    ///
    /// # Errors
    /// `Invalid` for a closed handle.
    pub fn seek(&self, handle: Handle, offset: u64, whence: SeekWhence) -> Result<Option<u64>> {
        self.run(|state| state.seek(handle, offset, whence))
    }

    /// Closes a handle. The last handle of a file without names removes its data.
    ///
    /// # Errors
    /// `Invalid` for a closed handle.
    pub fn close(&self, handle: Handle) -> Result<()> {
        self.run(|state| state.close(handle))
    }

    /// Sets who says whether an outsider, such as a kernel, still refers to an inode. It is asked
    /// when the last name goes, or the last handle of an inode without names. A wanted inode then
    /// stays, without names, until [`forget`](Self::forget).
    pub fn keep_while(&self, wanted: Box<dyn Fn(Ino) -> bool + Send + Sync>) {
        if let Ok(mut state) = self.state.lock() {
            state.handles.keep_while(wanted);
        }
    }

    /// No outsider refers to an inode any more: without a name and not open, it goes.
    ///
    /// # Errors
    /// The block space's own.
    pub fn forget(&self, ino: Ino) -> Result<()> {
        self.run(|state| state.forget(ino))
    }

    /// Makes everything so far durable, atomically. It may be called again after the store failed.
    ///
    /// # Errors
    /// The block space's own.
    pub fn commit(&self) -> Result<()> {
        self.run(|state| state.commit())
    }

    /// How full the volume is; costs nothing.
    ///
    /// # Errors
    /// `Closed` after a failure.
    pub fn usage(&self) -> Result<Usage> {
        self.run(|state| state.usage())
    }

    /// Ensures that a file can grow by `bytes` in the operations that come next.
    ///
    /// # Errors
    /// `Full`, and the block space's.
    pub fn expect_room(&self, bytes: u64) -> Result<()> {
        self.run(|state| state.promise_room(bytes.div_ceil(state.block_bytes as u64)))
    }

    /// The least capacity that [`set_capacity`](Self::set_capacity) accepts now.
    ///
    /// # Errors
    /// `Closed` after a failure.
    pub fn least_capacity(&self) -> Result<u64> {
        self.run(|state| Ok(state.least_capacity()))
    }

    /// Commits, then declares how many blocks the volume may hold. No block moves, and a crash
    /// leaves the old capacity or the new one.
    ///
    /// # Errors
    /// `Invalid` below the least, or for one that the volume cannot have; the block space's own.
    pub fn set_capacity(&self, blocks: u64) -> Result<()> {
        self.run(|state| state.set_capacity(blocks))
    }

    /// Checks the metadata: names, link counts, blocks, packing.
    ///
    /// # Errors
    /// Only when something could not be read; the report lists what is wrong.
    pub fn check(&self) -> Result<CheckReport> {
        self.check_with(false, &mut |_, _| {})
    }

    /// As [`check`](Self::check), and with `read_data` reads every block of file data too.
    /// `progress` gets the steps done and the steps in all.
    ///
    /// # Errors
    /// Only when metadata could not be read; the report lists unreadable data.
    pub fn check_with(
        &self,
        read_data: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<CheckReport> {
        self.run(|state| Ok(state.examine(read_data, progress)?.1))
    }

    /// Commits, closes the metadata cleanly and gives the block space back.
    ///
    /// # Errors
    /// The block space's own.
    pub fn into_blocks(self) -> Result<Box<dyn BlockSpace>> {
        let mut state = self.state.into_inner().map_err(|_| panicked())?;
        let result = state.begin().and_then(|()| {
            let result = state.finish();
            state.settle(result)
        });
        if matches!(&result, Err(error) if !matches!(error, Error::Store(_))) {
            give_up(&state);
        }
        result
    }

    /// Ends after a failure of the volume ([`BlockSpace::give_up`]).
    pub fn give_up(self) {
        if let Ok(state) = self.state.into_inner() {
            give_up(&state);
        }
    }
}

fn give_up(state: &State) {
    if let Some(mut blocks) = state.pool.lock().take_blocks() {
        blocks.give_up();
    }
}

fn panicked() -> Error {
    Error::Closed("a thread panicked".into())
}
