//! Open files, kept because opening one costs more than reading a bucket.

use super::directory::{Directory, not_a_file};
use crate::medium::{expect_random_reads, reserve};
use crate::write_behind::WriteBehind;
use crate::{Result, StoreError, WriteAt, check_name};
use rustix::fs::OFlags;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

/// The most open files, far below the usual limit of 1,024 per process.
const OPEN: usize = 128;

/// An object's open file.
#[derive(Debug)]
pub(super) struct Handle {
    behind: WriteBehind,
    /// The system's reason for refusing to open it for writing.
    refused: Option<io::ErrorKind>,
    /// Changed since the last sync: closing it now could lose the system's report of an error.
    dirty: AtomicBool,
}

impl Handle {
    pub(super) fn file(&self) -> &File {
        self.behind.medium()
    }

    /// The write-behind state, for a change of the file.
    fn for_writing(&self) -> io::Result<&WriteBehind> {
        if let Some(kind) = self.refused {
            return Err(kind.into());
        }
        self.dirty.store(true, Ordering::Release);
        Ok(&self.behind)
    }

    /// Writes a range, perhaps `later`. It is kept until it is durable.
    pub(super) fn write(&self, write: &WriteAt<'_>, later: bool) -> io::Result<()> {
        let end = i64::try_from(write.offset).ok();
        let end = end.and_then(|end| end.checked_add(write.data.len() as i64));
        end.ok_or(io::ErrorKind::InvalidInput)?;
        self.for_writing()?.write(write, later)
    }

    /// Writes a range and makes it durable. The caller repeats it after an error, so it is not
    /// kept.
    pub(super) fn write_durable(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let behind = self.for_writing()?;
        if !behind.is_empty() {
            // First, because they are older.
            behind.sync()?;
        }
        let written = self.file().write_all_at(data, offset);
        behind.changed_beside();
        written?;
        self.sync()
    }

    /// Makes all writes durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.dirty.store(false, Ordering::Release);
        let result = self.behind.sync_changes();
        if result.is_err() {
            self.dirty.store(true, Ordering::Release);
        }
        result
    }

    /// Whether [`Self::sync`] would wait for nothing.
    pub(super) fn is_durable(&self) -> bool {
        self.behind.is_durable()
    }

    /// Cuts or extends the file, durably.
    pub(super) fn truncate(&self, len: u64) -> io::Result<()> {
        self.for_writing()?.truncate(len)?;
        self.dirty.store(false, Ordering::Release);
        Ok(())
    }

    /// Makes the file at least this long and reserves its space, durably.
    pub(super) fn reserve(&self, len: u64) -> io::Result<()> {
        // Deferred writes may extend the file, and zeros must not come after them.
        let behind = self.for_writing()?;
        behind.sync()?;
        let reserved = reserve(self.file(), len);
        behind.changed_beside();
        reserved?;
        self.sync()
    }

    /// Punches a range, soon.
    pub(super) fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.for_writing()?.punch_later(offset, len)
    }

    /// Fills `buf` from the kept writes. False if the file has the range.
    pub(super) fn read_kept(&self, offset: u64, buf: &mut [u8]) -> io::Result<bool> {
        self.behind.read(offset, buf)
    }

    /// The length, or `None` when the file has lost its name: another process replaced or deleted
    /// it.
    fn named_len(&self) -> io::Result<Option<u64>> {
        let waits = self.behind.end();
        let found = self.file().metadata()?;
        Ok((found.nlink() > 0).then_some(found.len().max(waits)))
    }

    /// Whether closing it loses nothing.
    fn idle(handle: &Arc<Self>) -> bool {
        let dirty = handle.dirty.load(Ordering::Acquire);
        Arc::strong_count(handle) == 1 && !dirty && handle.behind.is_settled()
    }
}

type Open = HashMap<String, Arc<Handle>>;

/// The open files by name.
#[derive(Debug, Default)]
pub(super) struct Handles {
    open: RwLock<Open>,
    /// The most bytes that each may keep in memory; 0 while unset.
    most: AtomicUsize,
    /// The alignments to which writes to some objects may be rounded up.
    aligns: Mutex<HashMap<String, usize>>,
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
        self.keep(&mut open, name, file)
    }

    /// The file of an object, which is created if needed.
    pub(super) fn created(&self, dir: &Directory, name: &str) -> Result<Arc<Handle>> {
        if let Some((handle, _)) = self.cached(name)? {
            return Ok(handle);
        }
        check_name(name)?;
        let mut open = self.exclusive();
        let file = open_or_create(dir, name).map_err(|error| StoreError::io(name, error))?;
        Ok(self.keep(&mut open, name, (file, None))?.0)
    }

    /// The end of an object's deferred writes, if it is open.
    pub(super) fn waiting_end(&self, name: &str) -> u64 {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.get(name).map_or(0, |handle| handle.behind.end())
    }

    /// Bytes that may not have taken their space yet.
    pub(super) fn waiting(&self) -> u64 {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.values().map(|handle| handle.behind.waiting() as u64).sum()
    }

    /// Sets the most bytes that each file keeps in memory.
    pub(super) fn may_keep(&self, bytes: usize) {
        self.most.store(bytes, Ordering::Relaxed);
        // A file being opened meanwhile has the new number, or is among these once it is open.
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.values().for_each(|handle| handle.behind.may_keep(bytes));
    }

    /// Lets writes to an object be rounded up.
    pub(super) fn may_round_up(&self, name: &str, align: usize) {
        self.aligns().insert(name.to_owned(), align);
        if let Some(handle) = self.exclusive().get(name) {
            handle.behind.may_round_up(align);
        }
    }

    fn aligns(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.aligns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No thread opens a file while this is held.
    pub(super) fn exclusive(&self) -> RwLockWriteGuard<'_, Open> {
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn cached(&self, name: &str) -> Result<Option<(Arc<Handle>, u64)>> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let Some(handle) = open.get(name) else { return Ok(None) };
        let len = handle.named_len().map_err(|error| StoreError::io(name, error))?;
        Ok(len.map(|len| (Arc::clone(handle), len)))
    }

    /// Puts an open file into the cache, unless another thread was faster.
    fn keep(
        &self,
        open: &mut Open,
        name: &str,
        (file, refused): Opened,
    ) -> Result<(Arc<Handle>, u64)> {
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
        expect_random_reads(&file);
        let behind = WriteBehind::new(file);
        match self.most.load(Ordering::Relaxed) {
            0 => {}
            bytes => behind.may_keep(bytes),
        }
        if let Some(&align) = self.aligns().get(name) {
            behind.may_round_up(align);
        }
        let handle = Arc::new(Handle { behind, refused, dirty: AtomicBool::default() });
        open.insert(name.to_owned(), Arc::clone(&handle));
        Ok((handle, found.len()))
    }
}

/// Closes an idle file at the limit. If none is idle, exceeds the limit by one.
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

/// On a read-only medium the file serves for reading, and a write reports the reason.
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
