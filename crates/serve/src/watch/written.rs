//! Writes to the store, for the page of a volume that hides writes: places and lengths, as an
//! observer who compares snapshots of the store sees them.

use super::places::Places;
use super::publisher::Publisher;
use oblivio_store::{
    AnyStore, Held, Layer, Objects, Result, StoreAnswer, StoreCall, WriteAt, layered,
};
use std::iter::once;
use std::sync::Arc;

/// A layer that reports every completed write.
struct WatchedStore<S: ?Sized> {
    inner: Arc<S>,
    publisher: Publisher,
}

/// The layer over this store, for a volume that hides writes.
///
/// # Errors
/// Those of the store.
pub fn watched(store: AnyStore, publisher: &Publisher) -> Result<AnyStore> {
    publisher.lay_out(Places::of(store.list()?));
    Ok(layered!(store, inner => WatchedStore { inner, publisher: publisher.clone() }))
}

impl<S: Objects + ?Sized> Layer for WatchedStore<S> {
    type Below = S;

    fn below(&self) -> &S {
        &self.inner
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        let answer = call.on(&*self.inner)?;
        let seen = |offset, data: &[u8]| (offset, data.len() as u64);
        match call {
            StoreCall::Write(writes) => {
                let seen = |it: &WriteAt<'_>| seen(it.offset, it.data);
                self.publisher.written(writes.iter().map(|it| (it.object, seen(it))));
            }
            StoreCall::WriteDurable(it) => {
                self.publisher.written(once((it.object, seen(it.offset, it.data))));
            }
            StoreCall::Put(object, data, _) => {
                self.publisher.written(once((*object, seen(0, data))))
            }
            _ => {}
        }
        Ok(answer)
    }
}
