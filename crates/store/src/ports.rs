//! The ports of a store: what can be done with its objects, in a few small traits.
//!
//! There are two kinds of stores. All have [`Objects`], which are stored as a whole: that is what
//! a service on a network has, and a folder that a sync client copies. A [`Store`] also writes
//! over: places with [`Slots`], records with [`Log`]. Each part of a volume says by its arguments
//! on which port it stands, and no store refuses a call of a port that it has.
//!
//! A write is durable only once [`Slots::sync`] of its object has returned. Until then a crash may
//! keep, lose, tear or reorder it. A later write or that sync may be the first to report an error
//! of a write, and then each one does until it has passed. [`Log::write_durable`],
//! [`Log::truncate`], [`Objects::put`] and [`Objects::delete`] are durable on return.

use crate::{Capabilities, ReadAt, Result, StoreError, WriteAt};
use std::fmt;
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
    /// Bytes that may still be stored; `None` if unknown. It is only a forecast: others may use the
    /// same disk.
    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
    /// Takes a hint. A store may ignore each of them, and no result changes.
    fn hint(&self, _hint: Hint<'_>) {}
}

/// Objects that are stored as a whole.
///
/// But for the header of a volume, no name ever has two contents. So a store may send an object
/// again whose answer was lost. What damaged an object is no content: see [`PutMode::Restore`].
pub trait Objects: Held {
    /// Stores a whole object atomically and durably: a crash leaves the old or the new one.
    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()>;
    /// Begins to store whole objects (name, bytes), in no promised order. Nothing is durable before
    /// [`Objects::settle`], and until then a crash may leave any part of it. The same bytes of an
    /// object again are no new object. A store without a queue puts them at once.
    fn begin(&self, objects: &[(&str, &[u8])]) -> Result<()> {
        objects.iter().try_for_each(|(object, data)| self.put(object, data, PutMode::Replace))
    }
    /// Waits until these objects, as far as they were begun, are durable. It reports the error of
    /// one that is not; the next call sends that one again, or the same bytes are begun again.
    fn settle(&self, _objects: &[&str]) -> Result<()> {
        Ok(())
    }
    /// Deletes objects. A missing one is no error.
    fn delete(&self, objects: &[&str]) -> Result<()>;
    /// Answers a call that is a value: [`StoreCall::on_objects`], and [`StoreCall::on_store`] by a
    /// [`Store`].
    fn answer(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer>;
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
pub trait Slots: Log {
    /// Writes many ranges, in no promised order. A short call (less than 256 KiB) to ranges that no
    /// write before it has pending outlives the process once it has returned, though no power cut.
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
}

/// [`Objects::begin`] of a store that writes over: a write of each, from its first byte on.
pub fn begin_by_writes<S: Slots + ?Sized>(store: &S, objects: &[(&str, &[u8])]) -> Result<()> {
    let writes = objects.iter().map(|(object, data)| WriteAt::new(object, 0, data));
    store.write(&writes.collect::<Vec<_>>())
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
type Ask = dyn Fn(&dyn Objects) -> Result<()> + Send + Sync;

/// Asked before a failed read is repeated: its error is the answer then.
#[derive(Clone)]
pub struct Guard(Arc<Ask>);

impl Guard {
    /// A guard that asks the store below.
    #[must_use]
    pub fn new(ask: impl Fn(&dyn Objects) -> Result<()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    pub(crate) fn ask(&self, below: &dyn Objects) -> Result<()> {
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

/// How [`Objects::put`] treats an existing object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutMode {
    /// Replace it atomically.
    Replace,
    /// Fail with [`StoreError::Exists`].
    IfAbsent,
    /// Put back the bytes that the object was made with, atomically in place of whatever is there:
    /// somebody damaged it.
    Restore,
}

/// Who may write.
pub trait Lease: Send + Sync {
    /// Takes the exclusive right to write, until the store is dropped.
    /// [`StoreError::Busy`] when another process has it.
    fn lock(&self) -> Result<()>;
}

/// A store that writes over what it has: it has all ports.
pub trait Store: Slots + Objects + Lease {}

impl<S: Slots + Objects + Lease + ?Sized> Store for S {}

/// A call to a store.
#[derive(Debug)]
#[expect(missing_docs, reason = "each is a method of a port, which says what it does")]
pub enum StoreCall<'c, 'n> {
    Read(&'c mut [ReadAt<'n>]),
    Len(&'c str),
    Lens(&'c [&'n str]),
    List,
    ListUnder(&'c str),
    WriteDurable(WriteAt<'c>),
    Truncate(&'c str, u64),
    Write(&'c [WriteAt<'n>]),
    Sync(&'c [&'n str]),
    Allocate(&'c str, u64),
    Discard(&'c [(&'n str, u64, u64)]),
    FreeBytes,
    Hint(Hint<'c>),
    Put(&'c str, &'c [u8], PutMode),
    Begin(&'c [(&'n str, &'n [u8])]),
    Settle(&'c [&'n str]),
    Delete(&'c [&'n str]),
    Lock,
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAnswer {
    /// It was done.
    Done,
    /// A length, or the free space.
    Number(Option<u64>),
    /// The lengths of many objects.
    Numbers(Vec<Option<u64>>),
    /// Objects, with their lengths.
    Objects(Vec<(String, u64)>),
}

impl From<()> for StoreAnswer {
    fn from((): ()) -> Self {
        Self::Done
    }
}

impl From<Option<u64>> for StoreAnswer {
    fn from(number: Option<u64>) -> Self {
        Self::Number(number)
    }
}

impl From<Vec<Option<u64>>> for StoreAnswer {
    fn from(numbers: Vec<Option<u64>>) -> Self {
        Self::Numbers(numbers)
    }
}

impl From<Vec<(String, u64)>> for StoreAnswer {
    fn from(objects: Vec<(String, u64)>) -> Self {
        Self::Objects(objects)
    }
}

impl StoreCall<'_, '_> {
    /// Makes the call to `store`.
    ///
    /// # Errors
    /// The store's.
    pub fn on<S: Objects + ?Sized>(&mut self, store: &S) -> Result<StoreAnswer> {
        store.answer(self)
    }

    /// Makes the call by the port [`Objects`]; no layer makes one of another port to such a store.
    ///
    /// # Errors
    /// The store's; `Io` for a call of another port.
    pub fn on_objects<S: Objects + ?Sized>(&mut self, store: &S) -> Result<StoreAnswer> {
        match self {
            Self::Read(reads) => store.read(reads).map(StoreAnswer::from),
            Self::Len(object) => store.len(object).map(StoreAnswer::from),
            Self::Lens(objects) => store.lens(objects).map(StoreAnswer::from),
            Self::List => store.list().map(StoreAnswer::from),
            Self::ListUnder(prefix) => store.list_under(prefix).map(StoreAnswer::from),
            Self::FreeBytes => store.free_bytes().map(StoreAnswer::from),
            Self::Hint(hint) => {
                store.hint(*hint);
                Ok(StoreAnswer::Done)
            }
            Self::Put(object, data, mode) => store.put(object, data, *mode).map(StoreAnswer::from),
            Self::Begin(objects) => store.begin(objects).map(StoreAnswer::from),
            Self::Settle(objects) => store.settle(objects).map(StoreAnswer::from),
            Self::Delete(objects) => store.delete(objects).map(StoreAnswer::from),
            // The sessions of a volume keep each other out.
            Self::Lock => Ok(StoreAnswer::Done),
            Self::WriteDurable(_)
            | Self::Truncate(..)
            | Self::Write(_)
            | Self::Sync(_)
            | Self::Allocate(..)
            | Self::Discard(_) => Err(StoreError::refused("", "the store has whole objects only")),
        }
    }

    /// Makes the call by all ports of a [`Store`].
    ///
    /// # Errors
    /// The store's.
    pub fn on_store<S: Store + ?Sized>(&mut self, store: &S) -> Result<StoreAnswer> {
        match self {
            Self::WriteDurable(it) => {
                store.write_durable(it.object, it.offset, it.data).map(StoreAnswer::from)
            }
            Self::Truncate(object, len) => store.truncate(object, *len).map(StoreAnswer::from),
            Self::Write(writes) => store.write(writes).map(StoreAnswer::from),
            Self::Sync(objects) => store.sync(objects).map(StoreAnswer::from),
            Self::Allocate(object, len) => store.allocate(object, *len).map(StoreAnswer::from),
            Self::Discard(ranges) => store.discard(ranges).map(StoreAnswer::from),
            Self::Lock => store.lock().map(StoreAnswer::from),
            _ => self.on_objects(store),
        }
    }
}
