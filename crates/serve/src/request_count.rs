//! A layer that counts the store's progress: a long commit to a slow store must not pass for a
//! stalled one.

use crate::queue::Pulse;
use oblivio_store::{Layer, Objects, Result, StoreAnswer, StoreCall};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Counts every call that ends well.
pub struct PulseStore<S: ?Sized> {
    inner: Arc<S>,
    pulse: Pulse,
}

impl<S: Objects + ?Sized> PulseStore<S> {
    pub fn new(inner: Arc<S>, pulse: Pulse) -> Self {
        Self { inner, pulse }
    }
}

impl<S: Objects + ?Sized> Layer for PulseStore<S> {
    type Below = S;

    fn below(&self) -> &S {
        &self.inner
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        let answer = call.on(&*self.inner)?;
        // A full disk reports its free space too: no sign of life.
        if !matches!(call, StoreCall::FreeBytes | StoreCall::Lock | StoreCall::Hint(_)) {
            self.pulse.fetch_add(1, Ordering::Relaxed);
        }
        Ok(answer)
    }
}
