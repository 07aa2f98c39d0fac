//! The signals that end what is served.

use anyhow::Result;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::thread;
use std::time::Duration;

/// So long may a store do nothing while a server ends, and clients take for their replies.
pub const GRACE: Duration = Duration::from_secs(10);

/// From now on signals to end are for [`forward`] to tell of, and do not end the process.
///
/// # Errors
/// Those of the system.
pub fn catch() -> Result<Signals> {
    Ok(Signals::new([SIGINT, SIGTERM, SIGHUP])?)
}

/// Tells of each signal, on a thread of its own.
///
/// # Errors
/// Those of the system.
pub fn forward(mut signals: Signals, tell: impl Fn() + Send + 'static) -> io::Result<()> {
    let told = move || signals.forever().for_each(|_| tell());
    thread::Builder::new().name("signals".into()).spawn(told).map(drop)
}
