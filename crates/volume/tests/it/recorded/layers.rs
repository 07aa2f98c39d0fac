//! Layers that may change nothing that a volume shows.

use oblivio_store::{Layer, Result, Store, StoreAnswer, StoreCall};
use std::time::Duration;

/// Drops every hint.
pub struct NoHints<S>(pub S);

impl<S: Store> Layer for NoHints<S> {
    type Below = S;

    fn below(&self) -> &S {
        &self.0
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        if matches!(call, StoreCall::Hint(_)) { Ok(StoreAnswer::Done) } else { call.on(&self.0) }
    }
}

/// Answers every call late, and lets other threads go first.
pub struct Late<S>(pub S);

impl<S: Store> Layer for Late<S> {
    type Below = S;

    fn below(&self) -> &S {
        &self.0
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        std::thread::yield_now();
        let answer = call.on(&self.0);
        std::thread::sleep(Duration::from_micros(20));
        answer
    }
}
