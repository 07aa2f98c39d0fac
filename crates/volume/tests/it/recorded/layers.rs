//! Layers that may change nothing that a volume shows.

use oblivio_store::{Answer, Call, Layer, Result, Store};
use std::time::Duration;

/// Drops every hint.
pub struct NoHints<S>(pub S);

impl<S: Store> Layer for NoHints<S> {
    type Below = S;

    fn below(&self) -> &S {
        &self.0
    }

    fn call(&self, call: &mut Call<'_, '_>) -> Result<Answer> {
        if matches!(call, Call::Hint(_)) { Ok(Answer::Done) } else { call.on(&self.0) }
    }
}

/// Answers every call late, and lets other threads go first.
pub struct Late<S>(pub S);

impl<S: Store> Layer for Late<S> {
    type Below = S;

    fn below(&self) -> &S {
        &self.0
    }

    fn call(&self, call: &mut Call<'_, '_>) -> Result<Answer> {
        std::thread::yield_now();
        let answer = call.on(&self.0);
        std::thread::sleep(Duration::from_micros(20));
        answer
    }
}
