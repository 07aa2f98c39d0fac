//! A server of shared volumes with its clients.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]

mod campaign;
mod kills;
mod server;
mod worst;
