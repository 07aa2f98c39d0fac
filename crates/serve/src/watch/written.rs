//! Writes to the store, for the page of a volume that hides writes: places and lengths, as an
//! observer who compares snapshots of the store sees them.

use super::engines::places::Places;
use super::publisher::Publisher;
use oblivio_store::{PutMode, Result, Store, WriteAt, pass_on};
use std::sync::Arc;

/// A layer that reports every completed write.
pub struct WatchedStore {
    inner: Arc<dyn Store>,
    publisher: Publisher,
}

impl WatchedStore {
    /// Over this store, for a volume that hides writes.
    ///
    /// # Errors
    /// Those of the store.
    pub fn over(inner: Arc<dyn Store>, publisher: &Publisher) -> Result<Arc<dyn Store>> {
        publisher.lay_out(Places::of(inner.list()?));
        Ok(Arc::new(Self { inner, publisher: publisher.clone() }))
    }
}

impl Store for WatchedStore {
    pass_on!(self => self.inner; read sync len truncate allocate discard free_bytes delete list lock);
    pass_on!(self => self.inner; may_keep may_round_up expect_reads);

    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()> {
        self.inner.write(writes)?;
        let seen = |write: &WriteAt<'_>| (write.offset, write.data.len() as u64);
        self.publisher.written(writes.iter().map(|write| (write.object, seen(write))));
        Ok(())
    }

    fn write_durable(&self, object: &str, offset: u64, data: &[u8]) -> Result<()> {
        self.inner.write_durable(object, offset, data)?;
        self.publisher.written([(object, (offset, data.len() as u64))].into_iter());
        Ok(())
    }

    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        self.inner.put(object, data, mode)?;
        self.publisher.written([(object, (0, data.len() as u64))].into_iter());
        Ok(())
    }
}
