//! A server that answers as Dropbox, Google Drive and OneDrive do, by their public documents.
//!
//! It is one account on a port of the loopback. It refuses what the documents say is refused: an
//! old token, a wrong mode, a missing header, JSON that is none, a second write at the same time.
//! What a client must never do is kept in [`Account::wrong`]. By [`Faults`], some requests are
//! refused with "wait", some answers are lost after the act, some are cut in the middle.
#![allow(clippy::disallowed_methods, reason = "a server has threads, and waits")]

mod account;
mod dropbox;
mod gdrive;
mod http;
mod log_on;
mod onedrive;
mod state;
mod tree;

pub use account::Account;
pub use log_on::browse;
pub use state::{Faults, Kind, Seen};
