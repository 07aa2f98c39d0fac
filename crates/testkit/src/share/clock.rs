//! A clock that a test moves.

use oblivio_store::share::ShareClock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A clock that stands still until it is moved.
#[derive(Clone, Debug, Default)]
pub struct TestClock(Arc<AtomicU64>);

impl TestClock {
    /// Moves it forward.
    pub fn pass(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(nanoseconds, Ordering::SeqCst);
    }

    /// The time that passed.
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::SeqCst))
    }

    /// As a value for a shared volume.
    #[must_use]
    pub fn clock(&self) -> ShareClock {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }
}
