//! Writes to the store, for the page of a volume that hides writes: places and lengths, as an
//! observer who compares snapshots of the store sees them.

use super::engines::places::Places;
use super::publisher::Publisher;
use oblivio_store::{Answer, Call, Layer, Result, Store, WriteAt};
use std::iter::once;
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

impl Layer for WatchedStore {
    type Below = dyn Store;

    fn below(&self) -> &Self::Below {
        &*self.inner
    }

    fn call(&self, call: &mut Call<'_, '_>) -> Result<Answer> {
        let answer = call.on(&*self.inner)?;
        let seen = |offset, data: &[u8]| (offset, data.len() as u64);
        match call {
            Call::Write(writes) => {
                let seen = |it: &WriteAt<'_>| seen(it.offset, it.data);
                self.publisher.written(writes.iter().map(|it| (it.object, seen(it))));
            }
            Call::WriteDurable(it) => {
                self.publisher.written(once((it.object, seen(it.offset, it.data))));
            }
            Call::Put(object, data, _) => self.publisher.written(once((*object, seen(0, data)))),
            _ => {}
        }
        Ok(answer)
    }
}
