//! [`PartitionStore`]: all objects in one file, or in one raw partition.
//!
//! Each object has its own place, reserved when the store is made. The places follow a table of
//! contents; nothing else is in the file. So the disk of a store can be examined as a whole, and it
//! cannot become full later.
//!
//! An adversary who takes pictures of the disk sees the table, whose names, places and lengths are
//! not secret, and the changed bytes of each place. The table changes with `put`, `delete`,
//! `truncate` and the growth of an object, never with a write into an object of fixed length. In a
//! file, a [discard](Slots::discard) shows as a hole. On a partition, nothing is freed unless
//! [`PartitionStore::discards`] asks for it: a drive that knows the unused blocks shows them as
//! zeros to everybody. The pictures would reveal the caller's deletions even after a later write.

mod objects;
mod place;
mod table;
mod target;
#[cfg(test)]
mod tests;

use crate::medium::Lock;
use crate::ports::{self, Held, Hint, Lease, Log, PutMode, Slots};
use crate::{Capabilities, ReadAt, Result, StoreAnswer, StoreCall, StoreError, WriteAt};
use objects::Objects;
pub use place::{ChangeKind, Existing, PartitionPlace, SMALL};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use table::Layout;
use target::{Target, about};

/// Objects in one file or raw partition.
///
/// Writes stay in memory until they are durable: at most 4 MiB, and more only while the disk stalls
/// ([`Hint::Keep`]). A thread hands long writes to the system.
#[derive(Debug)]
pub struct PartitionStore {
    objects: Objects<File>,
    path: PathBuf,
    target: Target,
    discards: bool,
    lock: Mutex<Option<Lock>>,
}

impl PartitionStore {
    /// Makes a store with these places in a new or empty file, whose space it then reserves, or in
    /// a partition that begins with zeros.
    ///
    /// A file system that cannot reserve space is filled with zeros, which takes time.
    ///
    /// # Errors
    /// [`StoreError::Occupied`] when the file is not empty, or the partition does not begin with a
    /// mebibyte of zeros, unless `existing` allows the loss; [`StoreError::Busy`] when it is
    /// mounted or another process has it open; [`StoreError::Full`] when there is no room for all
    /// of the places; otherwise the system's error.
    pub fn create(
        path: impl AsRef<Path>,
        places: &[PartitionPlace<'_>],
        existing: Existing,
    ) -> Result<Self> {
        let path = path.as_ref();
        let layout = Layout::plan(places)?;
        let made = Target::create(path, layout.size, existing)?;
        let objects = Objects::create(made.file, layout).map_err(|error| about(path, error))?;
        made.target.sync_name(path).map_err(|error| about(path, error))?;
        Ok(Self::new(objects, path, made.target, Some(made.lock)))
    }

    /// Opens the store in a file or partition; read-only, if the system allows no more.
    ///
    /// # Errors
    /// When there is none, or its table of contents is damaged
    /// ([`InvalidData`](std::io::ErrorKind::InvalidData));
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

    /// Whether a store is here, by its first bytes: damaged ones count too. A directory or a
    /// missing path does not.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_one(path: impl AsRef<Path>) -> Result<bool> {
        let path = path.as_ref();
        target::begins(path, table::is_meant, table::BLOCK).map_err(|error| about(path, error))
    }

    /// Bytes of a file or partition for a store with these places.
    ///
    /// # Errors
    /// When there are none or too many, or two of the same name.
    pub fn size_with(places: &[PartitionPlace<'_>]) -> Result<u64> {
        Layout::plan(places).map(|layout| layout.size)
    }

    /// Whether to pass [discards](Slots::discard) on to the drive below a partition; the default is
    /// no. In a file, a discard always makes a hole.
    #[must_use]
    pub fn discards(mut self, told: bool) -> Self {
        self.discards = told || !self.target.device;
        self
    }

    fn new(objects: Objects<File>, path: &Path, target: Target, lock: Option<Lock>) -> Self {
        let (path, lock) = (path.to_owned(), Mutex::new(lock));
        Self { objects, path, discards: !target.device, target, lock }
    }

    /// The objects, if the system allows writes.
    fn writable(&self, object: &str) -> Result<&Objects<File>> {
        match self.target.refused {
            Some(kind) => Err(StoreError::io(object, kind.into())),
            None => Ok(&self.objects),
        }
    }
}

impl Held for PartitionStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::OVER
    }

    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        self.objects.read(reads)
    }

    fn len(&self, object: &str) -> Result<Option<u64>> {
        self.objects.len(object)
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        Ok(self.objects.list())
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(Some(self.objects.free_bytes()))
    }

    fn hint(&self, hint: Hint<'_>) {
        match hint {
            Hint::Keep(bytes) => self.objects.may_keep(bytes),
            Hint::Reads(ranges) => self.objects.expect_reads(ranges),
            // An object may end within a page of another one.
            Hint::RoundUp { .. } | Hint::BeforeRepeat(_) => {}
        }
    }
}

impl Log for PartitionStore {
    fn write_durable(&self, object: &str, offset: u64, data: &[u8]) -> Result<()> {
        self.write(&[WriteAt::new(object, offset, data)])?;
        self.sync(&[object])
    }

    fn truncate(&self, object: &str, len: u64) -> Result<()> {
        self.writable(object)?.truncate(object, len)
    }
}

impl Slots for PartitionStore {
    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()> {
        let object = writes.first().map_or("", |write| write.object);
        self.writable(object)?.write(writes)
    }

    fn sync(&self, objects: &[&str]) -> Result<()> {
        self.objects.sync(objects)
    }

    fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()> {
        let object = ranges.first().map_or("", |range| range.0);
        self.writable(object)?.discard(ranges, self.discards)
    }
}

impl ports::Objects for PartitionStore {
    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        self.writable(object)?.put(object, data, mode)
    }

    fn delete(&self, objects: &[&str]) -> Result<()> {
        self.writable(objects.first().unwrap_or(&""))?.delete(objects)
    }

    fn answer(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        call.on_store(self)
    }
}

impl Lease for PartitionStore {
    fn lock(&self) -> Result<()> {
        let mut held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_none() {
            self.writable(&self.path.to_string_lossy())?;
            *held = Some(self.target.lock(&self.path)?);
        }
        Ok(())
    }
}

/// For the fuzz target, **not part of the API**: decodes a table of contents from the start of
/// `bytes`, after correcting its checksum. False if it is none.
#[doc(hidden)]
#[must_use]
pub fn fuzz_table(bytes: &[u8]) -> bool {
    table::with_right_sum(bytes)
}
