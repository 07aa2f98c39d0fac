//! How many requests a store got.

use oblivio_store::{AnyStore, Layer, Objects, Result, StoreAnswer, StoreCall, layered};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A store whose requests are counted.
pub struct Counted {
    pub store: AnyStore,
    requests: Arc<AtomicU64>,
}

impl Counted {
    pub fn over(store: AnyStore) -> Self {
        let requests = Arc::<AtomicU64>::default();
        let count = Arc::clone(&requests);
        let store = layered!(store, inner => Counting { inner, requests: count });
        Self { store, requests }
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

struct Counting<S: ?Sized> {
    inner: Arc<S>,
    requests: Arc<AtomicU64>,
}

impl<S: Objects + ?Sized> Layer for Counting<S> {
    type Below = S;

    fn below(&self) -> &S {
        &self.inner
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        let parts = match call {
            StoreCall::Read(reads) => reads.len() as u64,
            StoreCall::Write(writes) => writes.len() as u64,
            StoreCall::Begin(objects) => objects.len() as u64,
            // These wait for requests that were counted.
            StoreCall::Sync(_) | StoreCall::Settle(_) | StoreCall::Hint(_) => 0,
            _ => 1,
        };
        self.requests.fetch_add(parts, Ordering::Relaxed);
        call.on(&*self.inner)
    }
}
