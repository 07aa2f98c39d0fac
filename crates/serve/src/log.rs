//! Messages to the administrator of a server: on standard error, or in the system's log once the
//! process is in the background.

use crate::plain::plain;
use std::cell::Cell;
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};

static BACKGROUND: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread works for a lane: nothing that stays may tell of one.
    static HUSHED: Cell<bool> = const { Cell::new(false) };
}

/// Does some work of which this thread reports nothing, nor any that it starts by this crate's
/// `spawn`.
pub fn hushed<T>(work: impl FnOnce() -> T) -> T {
    let before = HUSHED.replace(true);
    let done = work();
    HUSHED.set(before);
    done
}

/// Whether this thread reports nothing.
pub fn is_hushed() -> bool {
    HUSHED.get()
}

/// From now on nobody reads standard error.
pub fn to_background() {
    BACKGROUND.store(true, Ordering::Relaxed);
}

/// Reports an event that no request caused.
pub fn note(line: &str) {
    if is_hushed() {
        return;
    }
    let line = plain(line);
    if !BACKGROUND.load(Ordering::Relaxed) {
        // The reader may have gone; that must not end the server.
        let _ = writeln!(std::io::stderr(), "oblivio: {line}");
        return;
    }
    // Facility daemon, severity warning. Without a log the message is dropped.
    if let Ok(socket) = UnixDatagram::unbound() {
        let text = format!("<28>oblivio[{}]: {line}", std::process::id());
        let _ = socket.send_to(text.as_bytes(), "/dev/log");
    }
}
