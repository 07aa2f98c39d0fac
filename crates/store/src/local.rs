//! [`LocalStore`]: each object is a file in one directory.
//!
//! The directory may be hostile (a stranger's stick, a synced folder). The store refuses symbolic
//! links and other special files, and reopens a file that another process replaced. It reaches all
//! files from the open directory, so moving the directory does not confuse a running store.

mod directory;
mod handles;
mod runs;
mod temp;

use crate::medium::{Lock, announce, sync_directory};
use crate::ports::{Held, Hint, Lease, Log, Objects, PutMode, Slots, begin_by_writes};
use crate::{
    Capabilities, ReadAt, Result, StoreAnswer, StoreCall, StoreError, WriteAt, check_name,
};
use directory::Directory;
use handles::{Handle, Handles};
use runs::{joined, near, read_run, span};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use temp::Temp;

/// The lock file. The leading dot keeps it out of the objects' names.
const LOCK: &str = ".lock";

/// Calls that write at least this many bytes do not wait for the system to take them.
const LONG: usize = 256 << 10;

/// Files that are made durable at the same time, each by a thread.
const SYNCED_TOGETHER: usize = 16;

/// The object that a call touched last, with its file and length.
type Last<'n> = Option<(&'n str, Arc<Handle>, u64)>;

/// Objects as files in a directory.
///
/// Files are created with mode 0600. Writes stay in memory until they are durable: at most 4 MiB of
/// an object, and more only while the disk stalls ([`Hint::Keep`]). A thread hands long writes
/// to the system.
#[derive(Debug)]
pub struct LocalStore {
    directory: Directory,
    handles: Handles,
    lock: Mutex<Option<Lock>>,
}

impl LocalStore {
    /// Opens the store in an existing directory, and removes the remains of a crashed `put`.
    ///
    /// # Errors
    /// When `dir` is missing, is not a directory or may not be opened.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        let directory = Directory::open(dir.as_ref())?;
        temp::remove_orphans(&directory);
        Ok(Self { directory, handles: Handles::default(), lock: Mutex::default() })
    }

    /// Creates the directory (mode 0700), with its parents, and opens the store in it. It accepts
    /// an empty directory.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when the directory holds anything; otherwise the system's error.
    pub fn create(dir: impl AsRef<Path>) -> Result<Self> {
        let dir = dir.as_ref();
        make_directory(dir).map_err(|error| StoreError::io(&dir.to_string_lossy(), error))?;
        let store = Self::open(dir)?;
        if store.directory.is_empty()? {
            return Ok(store);
        }
        Err(StoreError::Exists { object: dir.to_string_lossy().into_owned() })
    }

    fn replace(&self, object: &str, temp: Temp<'_>) -> Result<()> {
        // No thread may open the old file between the rename and the removal of its handle.
        let mut handles = self.handles.exclusive();
        temp.rename(object).map_err(|error| StoreError::io(object, error))?;
        handles.remove(object);
        self.directory.changed();
        Ok(())
    }

    fn remove(&self, object: &str) -> Result<()> {
        let mut handles = self.handles.exclusive();
        if self.directory.unlink(object).map_err(|error| StoreError::io(object, error))? {
            self.directory.changed();
        }
        handles.remove(object);
        Ok(())
    }

    /// Opens an object anew at its next use: another process may have given its name to another
    /// file, while the one before still has a second name. Nothing may wait to be written to it.
    pub(crate) fn forget(&self, object: &str) {
        self.handles.exclusive().remove(object);
    }

    fn announce(&self, ranges: &[(&str, u64, u64)]) {
        let mut last = None;
        for (object, begin, end) in joined(ranges) {
            if let Ok((handle, _)) = self.existing(&mut last, object) {
                announce(handle.file(), begin, (end - begin) as usize);
            }
        }
    }

    /// An object's file and length, looked up unless it is the `last` one.
    fn existing<'l, 'n>(
        &self,
        last: &'l mut Last<'n>,
        object: &'n str,
    ) -> Result<(&'l Handle, u64)> {
        let found = match last.take() {
            Some(found) if found.0 == object => found,
            _ => {
                let (handle, len) = self.handles.existing(&self.directory, object)?;
                (object, handle, len)
            }
        };
        let (_, handle, len) = last.insert(found);
        Ok((handle, *len))
    }
}

impl Held for LocalStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::OVER
    }

    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        let mut last = None;
        let mut left = Vec::new();
        for (index, read) in reads.iter_mut().enumerate() {
            let (handle, len) = self.existing(&mut last, read.object)?;
            wanted(len, read)?;
            let named = |error| StoreError::io(read.object, error);
            if !handle.read_kept(read.offset, read.buf).map_err(named)? {
                left.push(index);
            }
        }
        let runs = near(reads, &left);
        let alone = runs.len() == 1;
        let mut cold = Vec::new();
        for run in runs {
            let (handle, _) = self.existing(&mut last, reads[run[0]].object)?;
            if !alone {
                if read_run(handle.file(), reads, &run, false) {
                    continue;
                }
                let (begin, end) = span(reads, &run);
                announce(handle.file(), begin, (end - begin) as usize);
            }
            cold.push(run);
        }
        for run in cold {
            let (handle, len) = self.existing(&mut last, reads[run[0]].object)?;
            if run.len() == 1 || !read_run(handle.file(), reads, &run, true) {
                for index in run {
                    let read = &mut reads[index];
                    read_range(handle, wanted(len, read)?, read)?;
                }
            }
        }
        Ok(())
    }

    fn len(&self, object: &str) -> Result<Option<u64>> {
        check_name(object)?;
        // First, because a deferred write may be written meanwhile.
        let waits = self.handles.waiting_end(object);
        Ok(self.directory.len(object)?.map(|len| len.max(waits)))
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        let mut found = Vec::new();
        for name in self.directory.names()? {
            if check_name(&name).is_err() {
                continue;
            }
            // Deleted since, or not a file: then it is no object.
            if let Ok(Some(len)) = self.len(&name) {
                found.push((name, len));
            }
        }
        found.sort();
        Ok(found)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        let free = self.directory.free_bytes()?;
        Ok(Some(free.saturating_sub(self.handles.waiting())))
    }

    fn hint(&self, hint: Hint<'_>) {
        match hint {
            Hint::Keep(bytes) => self.handles.may_keep(bytes),
            Hint::RoundUp { object, align } => self.handles.may_round_up(object, align),
            Hint::Reads(ranges) => self.announce(ranges),
            Hint::BeforeRepeat(_) => {}
        }
    }
}

impl Log for LocalStore {
    fn write_durable(&self, object: &str, offset: u64, data: &[u8]) -> Result<()> {
        let handle = self.handles.created(&self.directory, object)?;
        let written = handle.write_durable(offset, data);
        written.map_err(|error| StoreError::io(object, error))?;
        self.directory.sync()
    }

    fn truncate(&self, object: &str, len: u64) -> Result<()> {
        let (handle, _) = self.handles.existing(&self.directory, object)?;
        handle.truncate(len).map_err(|error| StoreError::io(object, error))?;
        self.directory.sync()
    }
}

impl Slots for LocalStore {
    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()> {
        let later = writes.iter().map(|write| write.data.len()).sum::<usize>() >= LONG;
        let mut last: Option<(&str, Arc<Handle>)> = None;
        for write in writes {
            let handle = match &last {
                Some((name, handle)) if *name == write.object => handle,
                _ => {
                    let handle = self.handles.created(&self.directory, write.object)?;
                    &last.insert((write.object, handle)).1
                }
            };
            let written = handle.write(write, later);
            written.map_err(|error| StoreError::io(write.object, error))?;
        }
        Ok(())
    }

    fn sync(&self, objects: &[&str]) -> Result<()> {
        let mut handles = Vec::with_capacity(objects.len());
        for &object in objects {
            handles.push((object, self.handles.existing(&self.directory, object)?.0));
        }
        sync_together(&handles)?;
        if objects.is_empty() { Ok(()) } else { self.directory.sync() }
    }

    fn allocate(&self, object: &str, len: u64) -> Result<()> {
        let handle = self.handles.created(&self.directory, object)?;
        handle.reserve(len).map_err(|error| StoreError::io(object, error))?;
        self.directory.sync()
    }

    fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()> {
        for &(object, offset, len) in ranges.iter().filter(|range| range.2 > 0) {
            let (handle, _) = self.handles.existing(&self.directory, object)?;
            handle.punch(offset, len).map_err(|error| StoreError::io(object, error))?;
        }
        Ok(())
    }
}

impl Objects for LocalStore {
    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        check_name(object)?;
        let exists = || StoreError::Exists { object: object.to_owned() };
        // Only saves work: the link below decides.
        if mode == PutMode::IfAbsent && self.directory.len(object)?.is_some() {
            return Err(exists());
        }
        let named = |error| StoreError::io(object, error);
        let temp = Temp::create(&self.directory, data).map_err(named)?;
        match mode {
            PutMode::Replace | PutMode::Restore => self.replace(object, temp)?,
            PutMode::IfAbsent => {
                temp.link(object).map_err(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => exists(),
                    _ => named(error),
                })?;
                self.directory.changed();
            }
        }
        self.directory.sync()
    }

    fn delete(&self, objects: &[&str]) -> Result<()> {
        objects.iter().try_for_each(|object| check_name(object))?;
        objects.iter().try_for_each(|object| self.remove(object))?;
        self.directory.sync()
    }

    fn begin(&self, objects: &[(&str, &[u8])]) -> Result<()> {
        begin_by_writes(self, objects)
    }

    fn settle(&self, objects: &[&str]) -> Result<()> {
        self.sync(objects)
    }

    fn answer(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        call.on_store(self)
    }
}

impl Lease for LocalStore {
    fn lock(&self) -> Result<()> {
        let mut held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_none() {
            *held = Some(self.directory.lock(LOCK)?);
        }
        Ok(())
    }
}

/// Makes several files durable at once, so that all wait for the disk about as long as one. What is
/// durable needs no thread.
fn sync_together(handles: &[(&str, Arc<Handle>)]) -> Result<()> {
    let (waiting, durable): (Vec<_>, Vec<_>) = handles.iter().partition(|it| !it.1.is_durable());
    durable.into_iter().try_for_each(sync_one)?;
    waiting.chunks(SYNCED_TOGETHER).try_for_each(sync_beside)
}

fn sync_one((object, handle): &(&str, Arc<Handle>)) -> Result<()> {
    handle.sync().map_err(|error| StoreError::io(object, error))
}

/// Makes files durable, each on a thread of its own.
#[expect(clippy::disallowed_methods, reason = "they wait for the disk, all for the same time")]
fn sync_beside(handles: &[&(&str, Arc<Handle>)]) -> Result<()> {
    let Some((first, others)) = handles.split_first() else { return Ok(()) };
    thread::scope(|scope| {
        let begin = |handle| thread::Builder::new().spawn_scoped(scope, move || sync_one(handle));
        // Without a thread it is done here.
        let begun: Vec<_> = others.iter().map(|it| begin(*it).map_err(|_| sync_one(it))).collect();
        let mut result = sync_one(first);
        for other in begun {
            result = result.and(match other {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(done) => done,
            });
        }
        result
    })
}

/// The end of a range, in an object of `len` bytes.
fn wanted(len: u64, read: &ReadAt<'_>) -> Result<u64> {
    let end = read.offset.checked_add(read.buf.len() as u64);
    let end = end.ok_or_else(|| StoreError::out_of_range(read.object))?;
    if end > len { Err(StoreError::short(read.object, len, end)) } else { Ok(end) }
}

fn read_range(handle: &Handle, end: u64, read: &mut ReadAt<'_>) -> Result<()> {
    let mut result = handle.file().read_exact_at(read.buf, read.offset);
    if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::UnexpectedEof) {
        // The file may end after a gap and before a deferred write.
        handle.sync().map_err(|error| StoreError::io(read.object, error))?;
        result = handle.file().read_exact_at(read.buf, read.offset);
    }
    match result {
        // Another process cut it since its length was read.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            let len = handle.file().metadata().map_or(0, |found| found.len());
            Err(StoreError::short(read.object, len, end))
        }
        result => result.map_err(|error| StoreError::io(read.object, error)),
    }
}

/// Creates a directory durably: each new one is synced into its parent.
fn make_directory(dir: &Path) -> io::Result<()> {
    let parent = match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_directory(parent)?;
            DirBuilder::new().mode(0o700).create(dir)?;
        }
        result => result?,
    }
    sync_directory(&File::open(parent)?)
}
