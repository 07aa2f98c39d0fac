//! The open directory from which all of a store's files are reached.

use crate::medium::{Lock, sync_directory};
use crate::{Result, StoreError};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An open directory, and whether its entries changed since it was last made durable.
#[derive(Debug)]
pub(super) struct Directory {
    file: File,
    /// Held during a sync, so that a thread that finds it clean knows that the sync is over.
    dirty: Mutex<bool>,
    /// For error messages.
    name: String,
}

impl Directory {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let name = path.to_string_lossy().into_owned();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty())) {
            // An earlier process may not have synced its new entries: assume that it did not.
            Ok(fd) => Ok(Self { file: File::from(fd), dirty: Mutex::new(true), name }),
            Err(error) => Err(StoreError::io(&name, error.into())),
        }
    }

    /// Opens a file here. Never follows a symbolic link, never waits on a pipe.
    pub(super) fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mode = Mode::RUSR | Mode::WUSR;
        let fd = retry_on_intr(|| rustix::fs::openat(&self.file, name, flags, mode))?;
        Ok(File::from(fd))
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.file, from, &self.file, to)?)
    }

    /// Gives a file a second name, which must be free.
    pub(super) fn link(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::linkat(&self.file, from, &self.file, to, AtFlags::empty())?)
    }

    /// Renames to a name that must be free. For file systems without hard links.
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    pub(super) fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        Ok(rustix::fs::renameat_with(&self.file, from, &self.file, to, flags)?)
    }

    /// Not every system has it.
    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    pub(super) fn rename_new(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a name. False if it did not exist.
    pub(super) fn unlink(&self, name: &str) -> io::Result<bool> {
        match rustix::fs::unlinkat(&self.file, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The length of a file, `None` when there is none.
    pub(super) fn len(&self, name: &str) -> Result<Option<u64>> {
        match rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile => {
                Ok(Some(u64::try_from(found.st_size).unwrap_or(0)))
            }
            Ok(_) => Err(StoreError::io(name, not_a_file())),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(StoreError::io(name, error.into())),
        }
    }

    /// Bytes that a user other than root may still store here.
    pub(super) fn free_bytes(&self) -> Result<u64> {
        let found = retry_on_intr(|| rustix::fs::fstatvfs(&self.file));
        let found = found.map_err(|error| self.failed(error.into()))?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// The names of all entries that can be an object's or ours, unsorted.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let entries = Dir::read_from(&self.file).map_err(|error| self.failed(error.into()))?;
        for entry in entries {
            let entry = entry.map_err(|error| self.failed(error.into()))?;
            if let Ok(name) = entry.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    pub(super) fn is_empty(&self) -> Result<bool> {
        let mut entries = Dir::read_from(&self.file).map_err(|error| self.failed(error.into()))?;
        let own = |name: &[u8]| name == b"." || name == b"..";
        Ok(entries.all(|entry| entry.is_ok_and(|entry| own(entry.file_name().to_bytes()))))
    }

    /// Records that an entry was made, renamed or removed.
    pub(super) fn changed(&self) {
        *self.dirty() = true;
    }

    /// Makes the entries durable, if any changed.
    pub(super) fn sync(&self) -> Result<()> {
        let mut dirty = self.dirty();
        if *dirty {
            sync_directory(&self.file).map_err(|error| self.failed(error))?;
            *dirty = false;
        }
        Ok(())
    }

    /// Opens a file and takes the exclusive lock on it.
    pub(super) fn lock(&self, name: &str) -> Result<Lock> {
        let file = self
            .open_file(name, OFlags::RDWR | OFlags::CREATE)
            .map_err(|error| StoreError::io(name, error))?;
        match Lock::take(file) {
            Ok(lock) => lock.ok_or(StoreError::Busy),
            Err(error) => Err(StoreError::io(name, error)),
        }
    }

    fn dirty(&self) -> MutexGuard<'_, bool> {
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, error: io::Error) -> StoreError {
        StoreError::io(&self.name, error)
    }
}

/// The error for a symbolic link, a pipe or a directory in the place of an object.
pub(super) fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}
