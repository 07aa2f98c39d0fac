//! The ports of a store: what can be done with its objects, in a few small traits.
//!
//! Each part of a volume says by its arguments on which port it stands. A log needs [`Log`] only,
//! a header [`Blobs`]. A [`Store`] is all ports that a volume needs.
//!
//! A write is durable only once [`Slots::sync`] of its object has returned. Until then a crash may
//! keep, lose, tear or reorder it. A later write or that sync may be the first to report an error
//! of a write, and then each one does until it has passed. [`Log::write_durable`],
//! [`Log::truncate`], [`Blobs::put`] and [`Blobs::delete`] are durable on return.

use crate::{Capabilities, ReadAt, Result, WriteAt};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The objects that a store holds: their names, lengths and bytes.
pub trait Held: Send + Sync {
    /// What this store can do, and how well.
    fn capabilities(&self) -> Capabilities;
    /// Reads many ranges. All are filled, or the call fails.
    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()>;
    /// The length of an object, `None` when it does not exist.
    fn len(&self, object: &str) -> Result<Option<u64>>;
    /// The lengths of many objects, asked for side by side where the store is far away.
    fn lens(&self, objects: &[&str]) -> Result<Vec<Option<u64>>> {
        objects.iter().map(|object| self.len(object)).collect()
    }
    /// All objects, with their lengths, sorted by name.
    fn list(&self) -> Result<Vec<(String, u64)>>;
    /// Those whose names begin so.
    fn list_under(&self, prefix: &str) -> Result<Vec<(String, u64)>> {
        let mut all = self.list()?;
        all.retain(|(name, _)| name.starts_with(prefix));
        Ok(all)
    }
}

/// Records that are durable at once, one after the other, and are read from a point.
pub trait Log: Held {
    /// Writes a range of an object and makes the object durable, in one round trip. It creates or
    /// extends the object as needed.
    fn write_durable(&self, object: &str, offset: u64, data: &[u8]) -> Result<()>;
    /// Cuts an object to `len` bytes (or extends it with zeros).
    fn truncate(&self, object: &str, len: u64) -> Result<()>;
}

/// Places that are written over, many at a time, and become durable together.
///
/// Where a store does not [write over](Capabilities::writes_over), a write is a whole new object.
/// It begins at once, and [`Slots::sync`] waits for it.
pub trait Slots: Log {
    /// Writes many ranges, in no promised order.
    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()>;
    /// Makes everything written to these objects durable, their creation included.
    fn sync(&self, objects: &[&str]) -> Result<()>;
    /// Makes an object at least `len` bytes long, with zeros, and creates it if needed. Reserves
    /// the space for all of it where the store can, so that no later write in it finds the store
    /// full. Durable on return. (A partition reserves a place for an object of fixed length. There,
    /// reads may return the previous content instead of zeros.)
    fn allocate(&self, object: &str, len: u64) -> Result<()> {
        allocate_in_parts(self, object, len)
    }
    /// Discards the contents of these ranges (object, offset, length). A store may free their
    /// space, perhaps only with the next sync. Until the next write they read as zeros or as
    /// before, also after a crash. No object changes its length.
    fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()>;
    /// Bytes that may still be stored; `None` if unknown. It is only a forecast: others may use the
    /// same disk.
    fn free_bytes(&self) -> Result<Option<u64>>;
    /// Takes a hint. A store may ignore each of them, and no result changes.
    fn hint(&self, _hint: Hint<'_>) {}
}

/// As [`Slots::allocate`], where no space is reserved.
pub(crate) fn allocate_in_parts<S: Slots + ?Sized>(
    store: &S,
    object: &str,
    len: u64,
) -> Result<()> {
    store.write(&[WriteAt::new(object, 0, &[])])?;
    match store.len(object)? {
        Some(held) if held >= len => store.sync(&[object]),
        _ => store.truncate(object, len),
    }
}

/// What may help a store to be fast. An adversary sees hints too, so they follow from public facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint<'a> {
    /// Reads of these ranges (object, offset, length) are likely: a store may prefetch them.
    Reads(&'a [(&'a str, u64, u64)]),
    /// This many bytes of each object may stay in memory before they are durable. A store keeps
    /// much only while the disk falls behind, so that writers wait less.
    Keep(usize),
    /// The bytes between the end of a write to this object and the next multiple of `align` mean
    /// nothing. A store may write zeros there, so that the system need not read the rest of a page
    /// from the disk.
    RoundUp {
        /// The object's name.
        object: &'a str,
        /// The multiple, in bytes.
        align: usize,
    },
    /// Before a failed read is repeated, this is asked. Only a layer that repeats calls takes it,
    /// and does not pass it on: no store sees it.
    BeforeRepeat(&'a Guard),
}

/// What a [`Guard`] asks of the store below.
type Ask = dyn Fn(&dyn Store) -> Result<()> + Send + Sync;

/// Asked before a failed read is repeated: its error is the answer then.
#[derive(Clone)]
pub struct Guard(Arc<Ask>);

impl Guard {
    /// A guard that asks the store below.
    #[must_use]
    pub fn new(ask: impl Fn(&dyn Store) -> Result<()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    pub(crate) fn ask(&self, below: &dyn Store) -> Result<()> {
        (self.0)(below)
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Guard")
    }
}

impl PartialEq for Guard {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Guard {}

/// How [`Blobs::put`] treats an existing object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutMode {
    /// Replace it atomically.
    Replace,
    /// Fail with [`StoreError::Exists`](crate::StoreError::Exists).
    IfAbsent,
}

/// Small objects that are replaced as a whole.
pub trait Blobs: Held {
    /// Stores a whole object atomically and durably: a crash leaves the old or the new one.
    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()>;
    /// The version of an object, which each put makes larger. `None` when the object does not
    /// exist, or the store has no versions.
    fn version(&self, _object: &str) -> Result<Option<u64>> {
        Ok(None)
    }
    /// Deletes objects. A missing one is no error.
    fn delete(&self, objects: &[&str]) -> Result<()>;
}

/// Who may write.
pub trait Lease: Send + Sync {
    /// Takes the exclusive right to write, until the store is dropped.
    /// [`StoreError::Busy`](crate::StoreError::Busy) when another process has it.
    fn lock(&self) -> Result<()>;
}

/// Objects that are written once and never changed: the least that a store on a network offers.
pub trait Objects: Send + Sync {
    /// What this store can do, and how well.
    fn capabilities(&self) -> Capabilities;
    /// Stores a new object as a whole, durable on return. A crash leaves all of it or nothing.
    /// [`StoreError::Exists`](crate::StoreError::Exists) for a name that is taken, of several at
    /// once too, if [`Capabilities::creates_exclusively`].
    fn put_new(&self, name: &str, data: &[u8]) -> Result<()>;
    /// Reads a range, which the object has.
    fn read(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>>;
    /// Deletes an object, durably. A missing one is no error.
    fn delete(&self, name: &str) -> Result<()>;
    /// All objects whose names begin so, with their lengths, sorted by name.
    fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>>;
}

/// All ports that a volume needs.
pub trait Store: Slots + Blobs + Lease {}

impl<S: Slots + Blobs + Lease + ?Sized> Store for S {}
