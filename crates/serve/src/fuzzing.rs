//! Entry points for the fuzz targets in `fuzz/`: the parsers of input from NBD clients, from
//! programs that feed `oblivio watch`, and from browsers that request its page.
//!
//! **Not part of the API.** Each target states what must hold of the outcome.

use crate::nbd::fuzzing as nbd;
use crate::watch::fuzzing as watch;
use oblivio_volume::disk::Disk;
use std::io;

pub use nbd::{Agreement, Negotiated};
pub use watch::Asked;

/// A negotiation about a disk of `size` bytes with a client that sends all this and leaves. With
/// `tls` it has to ask for TLS first; the rest counts as sent within TLS.
pub fn nbd_negotiation(said: &[u8], size: u64, read_only: bool, tls: bool) -> Negotiated {
    nbd::negotiation(said, size, read_only, tls)
}

/// An agreed connection to a client that sends all this and leaves: the server's replies, and how
/// the connection ends.
///
/// # Panics
/// If the server of the disk panics, or ends with an error.
pub fn nbd_transmission(
    disk: Disk,
    said: &[u8],
    agreement: Agreement,
    read_only: bool,
) -> (Vec<u8>, io::Result<()>) {
    nbd::transmission(disk, said, agreement, read_only)
}

/// Reads a feed of `oblivio watch` to its end, or to the first invalid line. Returns the feed
/// written again, and the messages sent to pages.
pub fn watch_feed(said: &[u8]) -> (Vec<u8>, Vec<String>) {
    watch::feed(said)
}

/// What a browser that sends this gets from the page's server. `door` is the token and the port
/// that it must know.
pub fn watch_request(said: &[u8], door: (&str, u16)) -> Asked {
    watch::request(said, door)
}
