//! How many requests a store got.

use oblivio_store::{Answer, Call, Layer, Result, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A store that counts. Clones count together.
#[derive(Clone)]
pub struct Counted {
    inner: Arc<dyn Store>,
    requests: Arc<AtomicU64>,
}

impl Counted {
    pub fn over(inner: Arc<dyn Store>) -> Self {
        Self { inner, requests: Arc::default() }
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Layer for Counted {
    type Below = dyn Store;

    fn below(&self) -> &Self::Below {
        &*self.inner
    }

    fn call(&self, call: &mut Call<'_, '_>) -> Result<Answer> {
        let parts = match call {
            Call::Read(reads) => reads.len() as u64,
            Call::Write(writes) => writes.len() as u64,
            // A sync waits for requests that were counted.
            Call::Sync(_) | Call::Hint(_) => 0,
            _ => 1,
        };
        self.requests.fetch_add(parts, Ordering::Relaxed);
        call.on(&*self.inner)
    }
}
