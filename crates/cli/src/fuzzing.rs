//! Doors for the fuzz targets in `fuzz/` to what reads the words of NBD's clients, and of those who
//! tell `oblivio watch` something or ask it for its page.
//!
//! **Not part of the API.** What must hold of the outcome is said by the target.

use crate::nbd::fuzzing as nbd;
use crate::watch::fuzzing as watch;
use oblivio_volume::disk::Disk;
use std::io;

pub use nbd::{Agreement, Negotiated};
pub use watch::Asked;

/// A negotiation about a disk of `size` bytes with a client that says all this and leaves. With
/// `tls` it has to ask for TLS first; what follows is taken for what it says within TLS.
pub fn nbd_negotiation(said: &[u8], size: u64, read_only: bool, tls: bool) -> Negotiated {
    nbd::negotiation(said, size, read_only, tls)
}

/// A connection that was agreed on, to a client that says all this and leaves: what it is told, and
/// how the connection ends.
///
/// # Panics
/// If the server of the disk does, or ends with an error.
pub fn nbd_transmission(
    disk: Disk,
    said: &[u8],
    agreement: Agreement,
    read_only: bool,
) -> (Vec<u8>, io::Result<()>) {
    nbd::transmission(disk, said, agreement, read_only)
}

/// Reads a feed of `oblivio watch` to its end, or to what makes no sense; gives what it said, as it
/// is written again, and the messages that pages are told.
pub fn watch_feed(said: &[u8]) -> (Vec<u8>, Vec<String>) {
    watch::feed(said)
}

/// What a browser that says this gets from the page's server; `door` names the token and the port
/// that it has to know.
pub fn watch_request(said: &[u8], door: (&str, u16)) -> Asked {
    watch::request(said, door)
}
