//! The stores of a computer, and those of shared volumes at a server.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]

mod conformance;
mod local;
mod memory;
mod partition;
mod retry;
mod share;
