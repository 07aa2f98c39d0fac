//! Open files, kept because opening one costs more than reading a bucket.

use super::directory::{Directory, not_a_file};
use super::kept::Kept;
use crate::{Result, StoreError, check_name};
use rustix::fs::OFlags;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

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
    /// The last sync failed, so what is kept has to be written again.
    failed: AtomicBool,
    /// Held while writing and syncing: the system reports an error to one only.
    kept: Mutex<Kept>,
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

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a range, and keeps a copy of it until it is durable.
    pub(super) fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let file = self.for_writing()?;
        let mut kept = self.kept();
        self.repair(&kept)?;
        if kept.is_full_with(data.len()) {
            self.sync_kept(&mut kept)?;
            self.dirty.store(true, Ordering::Release);
        }
        file.write_all_at(data, offset)?;
        kept.add(offset, data);
        Ok(())
    }

    /// Writes a range and makes it durable. Whoever hears of an error writes it again, so it is
    /// not kept.
    pub(super) fn write_durable(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let file = self.for_writing()?;
        let mut kept = self.kept();
        // First, for it may be older.
        self.repair(&kept)?;
        file.write_all_at(data, offset)?;
        self.sync_kept(&mut kept)
    }

    /// Makes what was written durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        let mut kept = self.kept();
        self.repair(&kept)?;
        self.sync_kept(&mut kept)
    }

    /// Cuts the file, or makes it longer, durably.
    pub(super) fn truncate(&self, len: u64) -> io::Result<()> {
        let file = self.for_writing()?;
        let mut kept = self.kept();
        self.repair(&kept)?;
        file.set_len(len)?;
        kept.cut(len);
        self.sync_kept(&mut kept)
    }

    /// To be called before reading: what a failed sync may have lost is there again.
    pub(super) fn for_reading(&self) -> io::Result<&File> {
        if self.failed.load(Ordering::Acquire) {
            self.repair(&self.kept())?;
        }
        Ok(&self.file)
    }

    fn repair(&self, kept: &Kept) -> io::Result<()> {
        if self.failed.load(Ordering::Acquire) {
            self.dirty.store(true, Ordering::Release);
            kept.repeat(&self.file)?;
            self.failed.store(false, Ordering::Release);
        }
        Ok(())
    }

    fn sync_kept(&self, kept: &mut Kept) -> io::Result<()> {
        self.dirty.store(false, Ordering::Release);
        let result = rustix::io::retry_on_intr(|| rustix::fs::fdatasync(&self.file));
        self.failed.store(result.is_err(), Ordering::Release);
        result?;
        kept.forget();
        Ok(())
    }

    /// The length, or `None` when the file has lost its name: somebody replaced or deleted it.
    fn named_len(&self) -> io::Result<Option<u64>> {
        let found = self.file.metadata()?;
        Ok((found.nlink() > 0).then_some(found.len()))
    }

    /// Whether nothing is lost by closing it.
    fn idle(handle: &Arc<Self>) -> bool {
        let is = |flag: &AtomicBool| flag.load(Ordering::Acquire);
        Arc::strong_count(handle) == 1 && !is(&handle.dirty) && !is(&handle.failed)
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
    let handle = Arc::new(Handle {
        file,
        refused,
        dirty: AtomicBool::default(),
        failed: AtomicBool::default(),
        kept: Mutex::default(),
    });
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

    /// A handle whose last sync failed, and the system dropped what it had not written.
    fn failed(writes: &[(u64, &[u8])]) -> Result<(tempfile::TempDir, Arc<Handle>, Handles)> {
        let io = |error| StoreError::io("a", error);
        let scratch = tempfile::tempdir().map_err(io)?;
        let dir = Directory::open(scratch.path())?;
        let handles = Handles::default();
        let handle = handles.created(&dir, "a")?;
        handle.write(0, b"first").and_then(|()| handle.sync()).map_err(io)?;
        writes.iter().try_for_each(|(at, data)| handle.write(*at, data)).map_err(io)?;
        handle.file.write_all_at(b"first", 0).and_then(|()| handle.file.set_len(5)).map_err(io)?;
        handle.failed.store(true, Ordering::Release);
        Ok((scratch, handle, handles))
    }

    fn content(scratch: &tempfile::TempDir) -> Vec<u8> {
        std::fs::read(scratch.path().join("a")).unwrap_or_default()
    }

    #[test]
    fn after_a_failed_sync_what_was_lost_is_written_again() -> Result<()> {
        let (scratch, handle, _handles) = failed(&[(0, b"second"), (2, b"X")])?;
        assert!(handle.sync().is_ok());
        assert_eq!(content(&scratch), b"seXond");
        assert!(!handle.kept().is_full_with(usize::MAX), "nothing is kept any more");
        let (scratch, handle, _handles) = failed(&[(3, b"old")])?;
        assert!(handle.write_durable(4, b"new").is_ok());
        assert_eq!(content(&scratch), b"fironew", "what is kept is older");
        let (scratch, handle, _handles) = failed(&[(3, b"long"), (6, b"er")])?;
        assert!(handle.truncate(6).is_ok());
        assert_eq!(content(&scratch), b"firlon", "lost, written again and cut");
        let (scratch, handle, _handles) = failed(&[(3, b"long"), (6, b"er")])?;
        handle.kept().cut(6);
        assert!(handle.sync().is_ok());
        assert_eq!(content(&scratch), b"firlon", "cut, lost and written again");
        Ok(())
    }

    #[test]
    fn after_a_failed_sync_reads_see_what_was_written() -> Result<()> {
        let (_scratch, handle, _handles) = failed(&[(0, b"second")])?;
        let mut buf = [0; 6];
        let read = handle.for_reading().and_then(|file| file.read_exact_at(&mut buf, 0));
        assert!(read.is_ok() && &buf == b"second");
        Ok(())
    }

    #[test]
    fn a_file_whose_sync_failed_stays_open() -> Result<()> {
        let (_scratch, handle, handles) = failed(&[(0, b"second")])?;
        drop(handle);
        assert!(handles.exclusive().values().all(|handle| !Handle::idle(handle)));
        Ok(())
    }

    #[test]
    fn what_is_kept_is_bounded() -> Result<()> {
        let (_scratch, handle, _handles) = failed(&[])?;
        let piece = vec![7; 5 << 20];
        for round in 0..20 {
            assert!(handle.write(round * 11, &piece).is_ok());
            assert!(!handle.kept().is_full_with(0));
        }
        Ok(())
    }
}
