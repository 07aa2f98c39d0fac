//! [`PartitionStore`]: all objects in one file, or in one raw partition.
//!
//! Each object has a place of its own, reserved when the store is made, in a row behind a table
//! of contents; nothing else is in the file. So a disk that holds the store can be looked at as
//! a whole, and it cannot become full later.
//!
//! What somebody sees who takes pictures of the disk: the table, in which the objects' names,
//! places and lengths are not secret; and which of the places' bytes changed. The table changes
//! with `put`, `delete`, `truncate` and when an object has become longer, never with a write into
//! an object of fixed length. What is [discarded](Store::discard) shows as a hole in a file. On a
//! partition nothing is given back unless [`PartitionStore::discards`] asks for it: a drive that
//! knows what is unused shows it as zeros to everybody, and the pictures would tell what the
//! caller deleted even if it is written over later.

mod objects;
mod table;
mod target;
#[cfg(test)]
mod tests;

use crate::medium::Lock;
use crate::{PutMode, ReadAt, Result, Store, StoreError, WriteAt};
use objects::Objects;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use table::Layout;
use target::Target;

/// Objects with room for so few bytes are meant to be replaced whole: 64 KiB.
pub const SMALL: u64 = 64 << 10;

/// What may be done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Once it exists, its length is its capacity; what was never written reads as whatever the
    /// partition held there. To write into it never changes the table of contents.
    Fixed,
    /// Any length up to its capacity. A sync after it became longer writes the table of contents,
    /// and waits for the disk a second time.
    Growing,
    /// As `Growing`, with two places of that capacity by turns, so that [`Store::put`] can replace
    /// it.
    Twice,
}

/// An object that a partition is to have a place for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The object's name.
    pub name: &'a str,
    /// The most bytes it may have, at least one.
    pub capacity: u64,
    /// What may be done with it.
    pub kind: Kind,
}

impl<'a> Place<'a> {
    /// A place for an object of any length up to `capacity` bytes; two of them by turns if it is
    /// [`SMALL`].
    #[must_use]
    pub fn new(name: &'a str, capacity: u64) -> Self {
        let kind = if capacity <= SMALL { Kind::Twice } else { Kind::Growing };
        Self { name, capacity, kind }
    }

    /// A place for an object of just so many bytes.
    #[must_use]
    pub fn fixed(name: &'a str, capacity: u64) -> Self {
        Self { name, capacity, kind: Kind::Fixed }
    }
}

/// What to do where there is something already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave it and fail.
    Refuse,
    /// It may be lost.
    Overwrite,
}

/// Objects in one file or raw partition.
///
/// What was written and is not durable is kept in memory, at most 4 MiB, and
/// more only while the disk stalls ([`Store::may_keep`]); long writes are given to
/// the system by a thread.
#[derive(Debug)]
pub struct PartitionStore {
    objects: Objects<File>,
    path: PathBuf,
    target: Target,
    discards: bool,
    lock: Mutex<Option<Lock>>,
}

impl PartitionStore {
    /// Makes a store with these places in a new or empty file, whose space is then all taken, or in
    /// a partition that begins with zeros.
    ///
    /// A file system that cannot reserve space is filled with zeros, which takes its time.
    ///
    /// # Errors
    /// [`StoreError::Occupied`] when the file is not empty, or the partition does not begin with a
    /// mebibyte of zeros, unless `existing` says that it may be lost; [`StoreError::Busy`] when it
    /// is mounted or another process has it open; [`StoreError::Full`] when there is no room for
    /// all of the places; otherwise as the system says.
    pub fn create(
        path: impl AsRef<Path>,
        places: &[Place<'_>],
        existing: Existing,
    ) -> Result<Self> {
        let path = path.as_ref();
        let layout = Layout::plan(places)?;
        let made = Target::create(path, layout.size, existing)?;
        let objects = Objects::create(made.file, layout).map_err(|error| about(path, error))?;
        made.target.sync_name(path).map_err(|error| about(path, error))?;
        Ok(Self::new(objects, path, made.target, Some(made.lock)))
    }

    /// Opens the store in a file or partition; for reading only, if the system allows no more.
    ///
    /// # Errors
    /// When there is none, or its table of contents is damaged ([`io::ErrorKind::InvalidData`]);
    /// [`StoreError::Short`] when the file or partition is shorter than it was.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (file, target) = Target::open(path)?;
        let held = target.len(&file).map_err(|error| about(path, error))?;
        if held < table::FRONT {
            return Err(StoreError::short(&path.to_string_lossy(), held, table::FRONT));
        }
        let objects = Objects::open(file).map_err(|error| about(path, error))?;
        if held < objects.size() {
            return Err(StoreError::short(&path.to_string_lossy(), held, objects.size()));
        }
        Ok(Self::new(objects, path, target, None))
    }

    /// Whether there is such a store here, by its first bytes: also one that is damaged. A
    /// directory, or nothing at all, is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_one(path: impl AsRef<Path>) -> Result<bool> {
        let path = path.as_ref();
        target::begins(path, table::is_meant, table::BLOCK).map_err(|error| about(path, error))
    }

    /// How many bytes of a file or partition the store takes with these places.
    ///
    /// # Errors
    /// When there are none or too many, or two of the same name.
    pub fn size_with(places: &[Place<'_>]) -> Result<u64> {
        Layout::plan(places).map(|layout| layout.size)
    }

    /// Whether the drive below a partition is told what is [discarded](Store::discard); it is not,
    /// unless this is called with `true`. In a file it always makes a hole.
    #[must_use]
    pub fn discards(mut self, told: bool) -> Self {
        self.discards = told || !self.target.device;
        self
    }

    fn new(objects: Objects<File>, path: &Path, target: Target, lock: Option<Lock>) -> Self {
        let (path, lock) = (path.to_owned(), Mutex::new(lock));
        Self { objects, path, discards: !target.device, target, lock }
    }

    /// The objects, if the system lets us write.
    fn writable(&self, object: &str) -> Result<&Objects<File>> {
        match self.target.refused {
            Some(kind) => Err(StoreError::io(object, kind.into())),
            None => Ok(&self.objects),
        }
    }
}

impl Store for PartitionStore {
    fn may_keep(&self, bytes: usize) {
        self.objects.may_keep(bytes);
    }

    fn expect_reads(&self, ranges: &[(&str, u64, u64)]) {
        self.objects.expect_reads(ranges);
    }

    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        self.objects.read(reads)
    }

    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()> {
        let object = writes.first().map_or("", |write| write.object);
        self.writable(object)?.write(writes)
    }

    fn sync(&self, objects: &[&str]) -> Result<()> {
        self.objects.sync(objects)
    }

    fn len(&self, object: &str) -> Result<Option<u64>> {
        self.objects.len(object)
    }

    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        self.writable(object)?.put(object, data, mode)
    }

    fn truncate(&self, object: &str, len: u64) -> Result<()> {
        self.writable(object)?.truncate(object, len)
    }

    fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()> {
        let object = ranges.first().map_or("", |range| range.0);
        self.writable(object)?.discard(ranges, self.discards)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(Some(self.objects.free_bytes()))
    }

    fn delete(&self, objects: &[&str]) -> Result<()> {
        self.writable(objects.first().unwrap_or(&""))?.delete(objects)
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        Ok(self.objects.list())
    }

    fn lock(&self) -> Result<()> {
        let mut held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_none() {
            self.writable(&self.path.to_string_lossy())?;
            *held = Some(self.target.lock(&self.path)?);
        }
        Ok(())
    }
}

/// A door for the fuzz target, **not part of the API**: reads a table of contents from what `bytes`
/// begin with, its checksum made right; whether it was one.
#[doc(hidden)]
#[must_use]
pub fn fuzz_table(bytes: &[u8]) -> bool {
    table::with_right_sum(bytes)
}

/// An error about the file or partition as a whole.
fn about(path: &Path, error: io::Error) -> StoreError {
    if error.kind() == io::ErrorKind::ResourceBusy {
        return StoreError::Busy;
    }
    StoreError::io(&path.to_string_lossy(), error)
}
