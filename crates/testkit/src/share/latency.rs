//! [`LatencyShare`]: a server that is far away, by a clock that a test moves.

use super::clock::TestClock;
use oblivio_store::share::{Result, Share, ShareCall, ShareReply};
use std::time::Duration;

/// A layer that moves the clock by a round trip for each call.
#[derive(Debug)]
pub struct LatencyShare<S> {
    inner: S,
    clock: TestClock,
    trip: Duration,
}

impl<S> LatencyShare<S> {
    /// A server at this distance.
    pub fn new(inner: S, clock: TestClock, trip: Duration) -> Self {
        Self { inner, clock, trip }
    }
}

impl<S: Share> Share for LatencyShare<S> {
    fn device(&self) -> u16 {
        self.inner.device()
    }

    fn call(&self, call: ShareCall<'_>) -> Result<ShareReply> {
        self.clock.pass(self.trip / 2);
        let done = self.inner.call(call);
        self.clock.pass(self.trip / 2);
        done
    }
}
