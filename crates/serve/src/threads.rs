//! Threads with a name, which the system and a debugger show.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts one.
///
/// # Errors
/// The system has no room for it.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(work)
}
