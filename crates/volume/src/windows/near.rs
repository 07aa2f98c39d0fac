//! The newest of what is small, on this computer's own disk: the parts of the memory, and the last
//! entries of its session. The next session that begins here need not read them.
//!
//! They are beside the buckets of the [disk cache](super::cache), sealed as in the store and under
//! the same names. Parts must have the digests that their commit says, and entries must open. What
//! does not costs a read.

use crate::options::CacheOptions;
use oblivio_crypto::digest;
use oblivio_store::{Store, WriteAt};
use std::sync::Arc;

/// Parts may take this share of the bytes of the disk cache, beside its buckets.
const SHARE: u64 = 4;

/// What is kept near.
pub(super) struct Near {
    store: Arc<dyn Store>,
    /// No longer part is kept.
    longest: u64,
}

impl Near {
    /// In the disk cache, where about this many parts are stored.
    pub fn new(options: &CacheOptions, parts: u64) -> Self {
        let store = Arc::clone(&options.store);
        Self { store, longest: options.bytes / SHARE / parts.max(1) }
    }

    /// A part that is here, as its commit says that it is.
    pub fn part(&self, object: &str, bytes: u64, sum: &[u8; 32]) -> Option<Vec<u8>> {
        crate::session::near(&*self.store, object)
            .filter(|found| found.len() as u64 == bytes && digest(found) == *sum)
    }

    /// Keeps an object. A disk that fails costs a read.
    pub fn keep(&self, object: &str, bytes: &[u8]) {
        if bytes.len() as u64 <= self.longest {
            let _ = self.store.write(&[WriteAt::new(object, 0, bytes)]);
        }
    }

    /// Forgets objects, of which it has some.
    pub fn forget(&self, objects: &[&str]) {
        let held: Vec<&str> = objects.iter().copied().filter(|it| it.starts_with("p-")).collect();
        if !held.is_empty() {
            let _ = self.store.delete(&held);
        }
    }
}
