//! Open files, kept because opening one costs more than reading a bucket.

use super::directory::{Directory, not_a_file};
use crate::{Result, StoreError, check_name};
use rustix::fs::OFlags;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};

/// So many files stay open, far below the usual limit of 1,024 for a process.
const OPEN: usize = 128;

/// An object's open file.
#[derive(Debug)]
pub(super) struct Handle {
    file: File,
    /// Why the system would not open it for writing.
    refused: Option<io::ErrorKind>,
    /// Written since the last sync: closing it now could lose the system's report of an error.
    dirty: AtomicBool,
    /// A sync failed. The lock is held while syncing: the system reports an error to one only.
    failed: Mutex<bool>,
}

impl Handle {
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// The file, about to be changed.
    pub(super) fn for_writing(&self) -> io::Result<&File> {
        if let Some(kind) = self.refused {
            return Err(kind.into());
        }
        self.dirty.store(true, Ordering::Release);
        Ok(&self.file)
    }

    /// Makes what was written durable. Having failed once it fails for ever, see
    /// [`super::LocalStore`].
    pub(super) fn sync(&self) -> io::Result<()> {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if *failed {
            return Err(io::Error::other("an earlier sync failed; what was written may be lost"));
        }
        self.dirty.store(false, Ordering::Release);
        let result = rustix::io::retry_on_intr(|| rustix::fs::fdatasync(&self.file));
        *failed = result.is_err();
        Ok(result?)
    }

    /// The length, or `None` when the file has lost its name: somebody replaced or deleted it.
    fn named_len(&self) -> io::Result<Option<u64>> {
        let found = self.file.metadata()?;
        Ok((found.nlink() > 0).then_some(found.len()))
    }

    /// Whether nothing is lost by closing it.
    fn idle(handle: &Arc<Self>) -> bool {
        let failed = || *handle.failed.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::strong_count(handle) == 1 && !handle.dirty.load(Ordering::Acquire) && !failed()
    }
}

type Open = HashMap<String, Arc<Handle>>;

/// The open files by name.
#[derive(Debug, Default)]
pub(super) struct Handles {
    open: RwLock<Open>,
}

impl Handles {
    /// The file of an object that must exist, and its length.
    pub(super) fn existing(&self, dir: &Directory, name: &str) -> Result<(Arc<Handle>, u64)> {
        if let Some(found) = self.cached(name)? {
            return Ok(found);
        }
        check_name(name)?;
        let mut open = self.exclusive();
        let file = open_existing(dir, name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::missing(name),
            _ => StoreError::io(name, error),
        })?;
        keep(&mut open, name, file)
    }

    /// The file of an object that is created if need be.
    pub(super) fn created(&self, dir: &Directory, name: &str) -> Result<Arc<Handle>> {
        if let Some((handle, _)) = self.cached(name)? {
            return Ok(handle);
        }
        check_name(name)?;
        let mut open = self.exclusive();
        let file = open_or_create(dir, name).map_err(|error| StoreError::io(name, error))?;
        Ok(keep(&mut open, name, (file, None))?.0)
    }

    /// Nobody opens a file while this is held.
    pub(super) fn exclusive(&self) -> RwLockWriteGuard<'_, Open> {
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn cached(&self, name: &str) -> Result<Option<(Arc<Handle>, u64)>> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let Some(handle) = open.get(name) else { return Ok(None) };
        let len = handle.named_len().map_err(|error| StoreError::io(name, error))?;
        Ok(len.map(|len| (Arc::clone(handle), len)))
    }
}

/// Puts an open file into the cache, unless another thread was faster.
fn keep(open: &mut Open, name: &str, (file, refused): Opened) -> Result<(Arc<Handle>, u64)> {
    let named = |error| StoreError::io(name, error);
    let found = file.metadata().map_err(named)?;
    if !found.is_file() {
        return Err(named(not_a_file()));
    }
    if let Some(handle) = open.get(name)
        && let Some(len) = handle.named_len().map_err(named)?
    {
        return Ok((Arc::clone(handle), len));
    }
    make_room(open);
    let handle =
        Arc::new(Handle { file, refused, dirty: AtomicBool::new(false), failed: Mutex::default() });
    open.insert(name.to_owned(), Arc::clone(&handle));
    Ok((handle, found.len()))
}

/// Closes an idle file when there are too many; when none is idle there is one more.
fn make_room(open: &mut Open) {
    if open.len() < OPEN {
        return;
    }
    let idle = open.iter().find(|(_, handle)| Handle::idle(handle)).map(|(name, _)| name.clone());
    if let Some(name) = idle {
        open.remove(&name);
    }
}

type Opened = (File, Option<io::ErrorKind>);

/// On a read-only medium the file serves for reading, and a write tells what is wrong.
fn open_existing(dir: &Directory, name: &str) -> io::Result<Opened> {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    match dir.open_file(name, OFlags::RDWR) {
        Err(error) if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) => {
            Ok((dir.open_file(name, OFlags::RDONLY)?, Some(error.kind())))
        }
        result => Ok((result?, None)),
    }
}

fn open_or_create(dir: &Directory, name: &str) -> io::Result<File> {
    loop {
        match dir.open_file(name, OFlags::RDWR) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
        match dir.open_file(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Ok(file) => {
                dir.changed();
                return Ok(file);
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_failed_sync_none_succeeds() -> Result<()> {
        let dir = tempfile::tempdir().map_err(|error| StoreError::io("dir", error))?;
        let dir = Directory::open(dir.path())?;
        let handles = Handles::default();
        let handle = handles.created(&dir, "a")?;
        assert!(handle.sync().is_ok());
        *handle.failed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        assert!(handle.sync().is_err() && handle.sync().is_err());
        drop(handle);
        let (again, _) = handles.existing(&dir, "a")?;
        assert!(again.sync().is_err(), "the handle is kept as long as it has failed");
        assert!(!Handle::idle(&again));
        handles.exclusive().remove("a");
        let (new, _) = handles.existing(&dir, "a")?;
        assert!(new.sync().is_ok());
        Ok(())
    }
}
