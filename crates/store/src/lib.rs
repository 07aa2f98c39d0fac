//! The store is the adversary's view: whatever passes this trait is seen.
//!
//! A store is a flat set of named objects. Names are short ASCII words without `/`. The
//! [`record`] layer keeps the trace an adversary would keep, and [`retry`] outlasts outages. Stores
//! that crash, fail or lag on purpose are in the crate of test doubles, `oblivio-testkit`.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests"))]

mod behind;
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

pub use local::LocalStore;
pub use memory::MemoryStore;
pub use name::{MAX_NAME, check_name};
pub use partition::{Kind, PartitionStore, Place};
pub use record::RecordStore;
pub use retry::{Patience, RetryStore};

use std::io;
use std::sync::Arc;

/// One read of a range of an object. The store fills the whole buffer, or the call fails.
#[derive(Debug)]
pub struct ReadAt<'a> {
    /// The object's name.
    pub object: &'a str,
    /// First byte in the object.
    pub offset: u64,
    /// The buffer to fill.
    pub buf: &'a mut [u8],
}

/// One write into an object. The store creates or extends it as needed.
#[derive(Clone, Copy, Debug)]
pub struct WriteAt<'a> {
    /// The object's name.
    pub object: &'a str,
    /// First byte in the object.
    pub offset: u64,
    /// The data to write.
    pub data: &'a [u8],
    shared: Option<&'a Arc<Vec<u8>>>,
}

impl<'a> WriteAt<'a> {
    /// A write of a range.
    #[must_use]
    pub const fn new(object: &'a str, offset: u64, data: &'a [u8]) -> Self {
        Self { object, offset, data, shared: None }
    }

    /// The same with data that a store may keep for a while instead of a copy.
    #[must_use]
    pub fn shared(object: &'a str, offset: u64, data: &'a Arc<Vec<u8>>) -> Self {
        Self { object, offset, data, shared: Some(data) }
    }

    /// The data, to keep.
    #[must_use]
    pub fn to_kept(&self) -> Arc<Vec<u8>> {
        match self.shared {
            Some(shared) if std::ptr::eq(shared.as_slice(), self.data) => Arc::clone(shared),
            _ => Arc::new(self.data.to_vec()),
        }
    }
}

/// How [`Store::put`] treats an existing object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutMode {
    /// Replace it atomically.
    Replace,
    /// Fail with [`StoreError::Exists`].
    IfAbsent,
}

/// An error of a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The object is not there.
    #[error("object {object:?} is missing")]
    Missing {
        /// Its name.
        object: String,
    },
    /// The object ends before the requested range.
    #[error("object {object:?} is too short: {len} bytes, {wanted} wanted")]
    Short {
        /// Its name.
        object: String,
        /// Its length.
        len: u64,
        /// The length that the range needs.
        wanted: u64,
    },
    /// Put-if-absent found the object present.
    #[error("object {object:?} already exists")]
    Exists {
        /// Its name.
        object: String,
    },
    /// The place for a new store is not empty. Nothing was changed.
    #[error("{object} is not empty: it holds {what}")]
    Occupied {
        /// The file or partition.
        object: String,
        /// What it seems to hold.
        what: &'static str,
    },
    /// Another process has the store open for writing, or the partition is mounted.
    #[error("the store is in use by another process, or mounted")]
    Busy,
    /// The space is used up.
    #[error("no space left in the store")]
    Full,
    /// Anything else.
    #[error("storage failed on {object:?}: {source}")]
    Io {
        /// The object concerned.
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
            // For a new object too: then its folder is gone, and no retry helps.
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

    /// A request that this object cannot serve, and the reason.
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
/// A write is durable only once [`Store::sync`] of its object has returned. Until then a crash may
/// keep, lose, tear or reorder it. A later write or that sync may be the first to report an error
/// of a write, and then each one does until it has passed. [`Store::put`], [`Store::delete`] and
/// [`Store::truncate`] are durable on return.
pub trait Store: Send + Sync {
    /// Reads many ranges. All are filled, or the call fails.
    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()>;
    /// Writes many ranges, in no promised order.
    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()>;
    /// Writes a range of an object and makes the object durable, in one round trip instead of two.
    fn write_durable(&self, object: &str, offset: u64, data: &[u8]) -> Result<()> {
        self.write(&[WriteAt::new(object, offset, data)])?;
        self.sync(&[object])
    }
    /// Makes everything written to these objects durable, their creation included.
    fn sync(&self, objects: &[&str]) -> Result<()>;
    /// The length of an object, `None` when it does not exist.
    fn len(&self, object: &str) -> Result<Option<u64>>;
    /// Stores a whole object atomically and durably: a crash leaves the old or the new one.
    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()>;
    /// Cuts an object to `len` bytes (or extends it with zeros).
    fn truncate(&self, object: &str, len: u64) -> Result<()>;
    /// Makes an object at least `len` bytes long, with zeros, and creates it if needed. Reserves
    /// the space for all of it where the store can, so that no later write in it finds the store
    /// full. Durable on return. (A partition reserves a place for an object of fixed length. There,
    /// reads may return the previous content instead of zeros.)
    fn allocate(&self, object: &str, len: u64) -> Result<()> {
        self.write(&[WriteAt::new(object, 0, &[])])?;
        match self.len(object)? {
            Some(held) if held >= len => self.sync(&[object]),
            _ => self.truncate(object, len),
        }
    }
    /// Discards the contents of these ranges (object, offset, length). A store may free their
    /// space, perhaps only with the next sync. Until the next write they read as zeros or as
    /// before, also after a crash. No object changes its length.
    fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()>;
    /// Bytes that may still be stored; `None` if unknown. It is only a forecast: others may use the
    /// same disk.
    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
    /// Deletes objects. A missing one is no error.
    fn delete(&self, objects: &[&str]) -> Result<()>;
    /// All objects, with their lengths, sorted by name.
    fn list(&self) -> Result<Vec<(String, u64)>>;
    /// Takes the exclusive right to write, until the store is dropped. [`StoreError::Busy`] when
    /// another process has it.
    fn lock(&self) -> Result<()>;
    /// Announces likely reads of these ranges (object, offset, length), which a store may prefetch.
    /// An adversary who sees reads sees this call, so it must follow from public facts.
    fn expect_reads(&self, _ranges: &[(&str, u64, u64)]) {}
    /// Sets the bytes of each object that a store may keep in memory before they are durable. It
    /// keeps much only while the disk falls behind, so that writers wait less.
    fn may_keep(&self, _bytes: usize) {}
    /// Declares the bytes between the end of a write to this object and the next multiple of
    /// `align` meaningless. A store may write zeros there, so that the system need not read the
    /// rest of a page from the disk.
    fn may_round_up(&self, _object: &str, _align: usize) {}
}
