//! Threads with a name, which the system and a debugger show.

use crate::log;
use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts one. If this thread reports nothing, neither does it.
///
/// # Errors
/// The system has no room for it.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let hushed = log::is_hushed();
    let work = move || if hushed { log::hushed(work) } else { work() };
    Builder::new().name(name.into()).spawn(work)
}
