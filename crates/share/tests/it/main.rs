//! A server of shared volumes with its clients, and what it keeps of a volume.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]

mod campaign;
mod going_on;
mod kills;
mod lacking;
mod server;
mod small;
mod starts;
mod volumes;
mod worst;
