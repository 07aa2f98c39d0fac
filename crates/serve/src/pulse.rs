//! A layer that counts the store's progress: a long commit to a slow store must not pass for a
//! stalled one.

use crate::queue::Pulse;
use oblivio_store::{Answer, Call, Layer, Result, Store};
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
}

impl Layer for PulseStore {
    type Below = dyn Store;

    fn below(&self) -> &Self::Below {
        &*self.inner
    }

    fn call(&self, call: &mut Call<'_, '_>) -> Result<Answer> {
        let answer = call.on(&*self.inner)?;
        // A full disk reports its free space too: no sign of life.
        if !matches!(call, Call::FreeBytes | Call::Lock | Call::Hint(_)) {
            self.pulse.fetch_add(1, Ordering::Relaxed);
        }
        Ok(answer)
    }
}
