//! The store is the adversary's view: whatever passes this trait is seen.
//!
//! A store is a flat set of named objects. Names are short ASCII words without `/`. There are
//! test doubles for everything that can go wrong ([`fault`], [`crash`], [`latency`]) and a
//! [`record`] layer that keeps the trace an adversary would keep.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests"))]

mod behind;
pub mod crash;
pub mod fault;
pub mod latency;
pub mod local;
mod medium;
pub mod memory;
mod name;
pub mod partition;
mod pass_on;
mod pointer;
pub mod record;
pub mod retry;
mod system;

pub use crash::CrashStore;
pub use fault::FaultStore;
pub use latency::LatencyStore;
pub use local::LocalStore;
pub use memory::MemoryStore;
pub use name::{MAX_NAME, check_name};
pub use partition::{Kind, PartitionStore, Place};
pub use record::RecordStore;
pub use retry::{Patience, RetryStore};

use std::io;
use std::sync::Arc;
use std::time::Duration;

/// One read of a range of an object. The whole buffer is filled or the call fails.
#[derive(Debug)]
pub struct ReadAt<'a> {
    /// The object's name.
    pub object: &'a str,
    /// Where in the object to begin, in bytes.
    pub offset: u64,
    /// What is filled.
    pub buf: &'a mut [u8],
}

/// One write into an object, which is created or extended as needed.
#[derive(Clone, Copy, Debug)]
pub struct WriteAt<'a> {
    /// The object's name.
    pub object: &'a str,
    /// Where in the object to begin, in bytes.
    pub offset: u64,
    /// What is written.
    pub data: &'a [u8],
    shared: Option<&'a Arc<Vec<u8>>>,
}

impl<'a> WriteAt<'a> {
    /// A write of a range.
    #[must_use]
    pub const fn new(object: &'a str, offset: u64, data: &'a [u8]) -> Self {
        Self { object, offset, data, shared: None }
    }

    /// The same of what a store may keep for a while instead of a copy.
    #[must_use]
    pub fn shared(object: &'a str, offset: u64, data: &'a Arc<Vec<u8>>) -> Self {
        Self { object, offset, data, shared: Some(data) }
    }

    /// What is written, to be kept.
    #[must_use]
    pub fn to_kept(&self) -> Arc<Vec<u8>> {
        match self.shared {
            Some(shared) if std::ptr::eq(shared.as_slice(), self.data) => Arc::clone(shared),
            _ => Arc::new(self.data.to_vec()),
        }
    }
}

/// How [`Store::put`] treats an object that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutMode {
    /// Replace it atomically.
    Replace,
    /// Fail with [`StoreError::Exists`].
    IfAbsent,
}

/// What went wrong in a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The object is not there.
    #[error("object {object:?} is missing")]
    Missing {
        /// Its name.
        object: String,
    },
    /// The object ends before the range that was asked for.
    #[error("object {object:?} is too short: {len} bytes, {wanted} wanted")]
    Short {
        /// Its name.
        object: String,
        /// How long it is.
        len: u64,
        /// How long it would have to be.
        wanted: u64,
    },
    /// Put-if-absent found the object present.
    #[error("object {object:?} already exists")]
    Exists {
        /// Its name.
        object: String,
    },
    /// Where a store was to be made there is something already, and nothing of it was changed.
    #[error("{object} is not empty: it holds {what}")]
    Occupied {
        /// The file or partition.
        object: String,
        /// What it holds, as far as can be told.
        what: &'static str,
    },
    /// Somebody else has the store open for writing, or the partition is mounted.
    #[error("the store is in use by another process, or mounted")]
    Busy,
    /// The space is used up.
    #[error("no space left in the store")]
    Full,
    /// Anything else.
    #[error("storage failed on {object:?}: {source}")]
    Io {
        /// The object it was about.
        object: String,
        /// The system's error.
        source: io::Error,
    },
}

impl StoreError {
    /// The system's error about an object; a full disk or quota becomes [`StoreError::Full`].
    #[must_use]
    pub fn io(object: &str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            // Also of what is made anew: then its folder is gone, which no patience mends.
            io::ErrorKind::NotFound => Self::missing(object),
            _ => Self::Io { object: object.to_owned(), source },
        }
    }

    /// A missing object.
    pub(crate) fn missing(object: &str) -> Self {
        Self::Missing { object: object.to_owned() }
    }

    /// An object that ends before `wanted`.
    pub(crate) fn short(object: &str, len: u64, wanted: u64) -> Self {
        Self::Short { object: object.to_owned(), len, wanted }
    }

    /// What cannot be asked of this object, and why.
    pub(crate) fn refused(object: &str, why: &'static str) -> Self {
        let source = io::Error::new(io::ErrorKind::InvalidInput, why);
        Self::Io { object: object.to_owned(), source }
    }

    /// A range that no file system could hold.
    pub(crate) fn out_of_range(object: &str) -> Self {
        Self::refused(object, "range beyond the largest offset")
    }
}

/// A result of a store.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A flat set of named byte objects.
///
/// A write is durable only after [`Store::sync`] of its object returned; until then a crash may
/// keep, lose, tear or reorder it. An error of a write may be told by a later write or by that sync
/// only, and then by each until it has passed. [`Store::put`], [`Store::delete`] and [`Store::truncate`] are
/// durable when they return.
pub trait Store: Send + Sync {
    /// Reads many ranges; all are filled, or an error is returned.
    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()>;
    /// Writes many ranges, in no promised order.
    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()>;
    /// Writes a range of an object and makes the object durable: one trip where the two would be
    /// two.
    fn write_durable(&self, object: &str, offset: u64, data: &[u8]) -> Result<()> {
        self.write(&[WriteAt::new(object, offset, data)])?;
        self.sync(&[object])
    }
    /// As [`Self::write_durable`], but a store may say `false` after about so long and go on: then
    /// [`Self::sync_soon`] tells when it is durable. By default it waits.
    fn write_durable_soon(
        &self,
        object: &str,
        offset: u64,
        data: &[u8],
        _patience: Duration,
    ) -> Result<bool> {
        self.write_durable(object, offset, data).map(|()| true)
    }
    /// Makes everything written to these objects durable, their creation included.
    fn sync(&self, objects: &[&str]) -> Result<()>;
    /// Whether everything written to these objects is durable, or is after about so long. If not, the store
    /// may make it so while others go on; whoever needs to know asks again. By default this is a sync.
    fn sync_soon(&self, objects: &[&str], _patience: Duration) -> Result<bool> {
        self.sync(objects).map(|()| true)
    }
    /// The length of an object, `None` when it is not there.
    fn len(&self, object: &str) -> Result<Option<u64>>;
    /// Stores a whole object atomically and durably: after a crash it is the old or the new one.
    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()>;
    /// Cuts an object to `len` bytes (or extends it with zeros).
    fn truncate(&self, object: &str, len: u64) -> Result<()>;
    /// Makes an object at least `len` bytes long, with zeros, creates it if need be, and takes the
    /// space for all of it where the store can, so that no later write in it finds the store full.
    /// Durable when it returns. (In the place that a partition reserves for an object of fixed
    /// length, what was there before may be read instead of zeros.)
    fn allocate(&self, object: &str, len: u64) -> Result<()> {
        self.write(&[WriteAt::new(object, 0, &[])])?;
        match self.len(object)? {
            Some(held) if held >= len => self.sync(&[object]),
            _ => self.truncate(object, len),
        }
    }
    /// The contents of these ranges (object, offset, length) are no longer wanted: a store may give
    /// their space back, perhaps with the next sync only. Until they are written again they read as
    /// zeros or as before, and after a crash too; no object changes its length.
    fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()>;
    /// Bytes that may still be stored; `None` when that is not known. It is only a forecast:
    /// others may use the same disk.
    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
    /// Deletes objects; missing ones are no error.
    fn delete(&self, objects: &[&str]) -> Result<()>;
    /// All objects, with their lengths, sorted by name.
    fn list(&self) -> Result<Vec<(String, u64)>>;
    /// Takes the exclusive right to write, until the store is dropped; [`StoreError::Busy`] when
    /// another process has it.
    fn lock(&self) -> Result<()>;
    /// These ranges (object, offset, length) are likely to be read soon: a store may begin to fetch them.
    /// Whoever sees reads sees this, so it must follow from what may be seen.
    fn expect_reads(&self, _ranges: &[(&str, u64, u64)]) {}
    /// Says how many bytes of each object, written and not yet durable, a store may keep in memory from now
    /// on. It keeps much only while the disk has fallen behind, so that whoever writes waits less.
    fn may_keep(&self, _bytes: usize) {}
    /// Says that what lies between the end of a write to this object and the next multiple of `align`
    /// means nothing, so that a store may write zeros there: a system that keeps pages need not read the
    /// rest of one from the disk then.
    fn may_round_up(&self, _object: &str, _align: usize) {}
}
