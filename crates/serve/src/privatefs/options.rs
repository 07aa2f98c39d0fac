//! The parameters of a mount, and the word that it has ended.

use crate::mount::Look;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The parameters of a mount.
pub struct SharedMountOptions {
    /// What the system shows of it.
    pub look: Look,
    /// Whether the kernel answers nothing from its own memory.
    pub strict: bool,
    /// The longest time that written data waits, unless it is synced.
    pub write_every: Duration,
    /// Whether locks of files are this computer's own affair.
    pub local_locks: bool,
}

impl Default for SharedMountOptions {
    fn default() -> Self {
        Self {
            look: Look { source: "oblivio".into(), ..Look::default() },
            strict: false,
            write_every: Duration::from_secs(5),
            local_locks: false,
        }
    }
}

/// Says to threads that the mount has ended.
#[derive(Default)]
pub struct MountStop {
    ended: Mutex<bool>,
    woken: Condvar,
}

impl MountStop {
    /// Waits so long; whether the mount has ended.
    pub fn wait(&self, long: Duration) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.woken.wait_timeout_while(ended, long, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub fn end(&self) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.woken.notify_all();
    }
}
