//! Lines for whoever looks after a mount: on standard error, or in the system's log once the
//! process has gone to the background.

use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};

static BACKGROUND: AtomicBool = AtomicBool::new(false);

/// From now on nobody reads standard error.
pub fn to_background() {
    BACKGROUND.store(true, Ordering::Relaxed);
}

/// Tells of something that happened by itself.
pub fn note(line: &str) {
    let line = crate::human::plain(line);
    if !BACKGROUND.load(Ordering::Relaxed) {
        // Whoever read it may have gone; that must not end the mount.
        let _ = writeln!(std::io::stderr(), "oblivio: {line}");
        return;
    }
    // Facility daemon, severity warning. Where there is no log, there is nobody to tell.
    if let Ok(socket) = UnixDatagram::unbound() {
        let text = format!("<28>oblivio[{}]: {line}", std::process::id());
        let _ = socket.send_to(text.as_bytes(), "/dev/log");
    }
}

/// Tells systemd, if it started us and waits for it, that the mount is up.
pub fn ready() {
    let Some(address) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Ok(socket) = UnixDatagram::unbound() {
        let _ = socket.send_to(b"READY=1", std::path::Path::new(&address));
    }
}
