//! How a server's threads learn that they are to end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Whether the server is to end.
#[derive(Default)]
pub struct ServerEnding {
    ended: AtomicBool,
    lock: Mutex<()>,
    signal: Condvar,
}

impl ServerEnding {
    /// Ends it.
    pub fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.signal.notify_all();
    }

    /// Whether it is to end.
    pub fn is_over(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Waits this long, or until the end.
    pub fn wait(&self, time: Duration) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_over() {
            drop(self.signal.wait_timeout(guard, time));
        }
    }
}
