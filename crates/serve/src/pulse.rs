//! A layer that counts the store's progress: a long commit to a slow store must not pass for a
//! stalled one.

use crate::queue::Pulse;
use oblivio_store::{PutMode, ReadAt, Result, Store, WriteAt, pass_on};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Counts every call that ends well.
pub struct PulseStore {
    inner: Arc<dyn Store>,
    pulse: Pulse,
}

impl PulseStore {
    pub fn new(inner: Arc<dyn Store>, pulse: Pulse) -> Self {
        Self { inner, pulse }
    }

    fn beat<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_ok() {
            self.pulse.fetch_add(1, Ordering::Relaxed);
        }
        result
    }
}

impl Store for PulseStore {
    // A full disk reports its free space too: no sign of life.
    pass_on!(self => self.inner; free_bytes lock may_keep may_round_up expect_reads);

    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        self.beat(self.inner.read(reads))
    }

    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()> {
        self.beat(self.inner.write(writes))
    }

    fn write_durable(&self, object: &str, offset: u64, data: &[u8]) -> Result<()> {
        self.beat(self.inner.write_durable(object, offset, data))
    }

    fn sync(&self, objects: &[&str]) -> Result<()> {
        self.beat(self.inner.sync(objects))
    }

    fn len(&self, object: &str) -> Result<Option<u64>> {
        self.beat(self.inner.len(object))
    }

    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        self.beat(self.inner.put(object, data, mode))
    }

    fn truncate(&self, object: &str, len: u64) -> Result<()> {
        self.beat(self.inner.truncate(object, len))
    }

    fn allocate(&self, object: &str, len: u64) -> Result<()> {
        self.beat(self.inner.allocate(object, len))
    }

    fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()> {
        self.beat(self.inner.discard(ranges))
    }

    fn delete(&self, objects: &[&str]) -> Result<()> {
        self.beat(self.inner.delete(objects))
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        self.beat(self.inner.list())
    }
}
