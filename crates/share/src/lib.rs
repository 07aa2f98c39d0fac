//! A server for volumes of many clients, which it cannot read, and the line to it.
//!
//! It links no key and no engine: all it does is in [`oblivio_store::share`], behind TLS.
#![allow(clippy::disallowed_methods, reason = "a server reads clocks, starts threads and waits")]

mod address;
mod error;
mod frame;
mod identity;
mod line;
mod message;

pub use address::{Address, PORT, Token, check_name, hex, is_name};
pub use error::{Error, Result};
