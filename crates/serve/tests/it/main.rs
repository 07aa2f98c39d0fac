//! What is served, through the kernel.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]

mod privatefs;
