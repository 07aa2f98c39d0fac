//! The stores of a computer.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]

mod conformance;
mod local;
mod memory;
mod partition;
mod retry;
