//! A server for volumes of many clients, which it cannot read, and the line to it.
//!
//! It links no key of a volume and no engine: what it does is in [`oblivio_store::share`], behind
//! TLS. [`Server`] serves a folder, [`wish`] is what its administrator wants, [`RemoteShare`] is a
//! volume for a client.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests"))]
#![allow(clippy::disallowed_methods, reason = "a server reads clocks, starts threads and waits")]

mod address;
mod admin;
mod connection;
mod connections;
mod devices;
mod ending;
mod error;
mod frame;
pub mod fuzzing;
mod hub;
mod identity;
mod line;
mod message;
mod remote;
mod server;
mod strangers;
mod stream;

pub use address::{Address, PORT, Token, check_name, hex, is_name};
pub use admin::{Granted, Wish, admit, wish};
pub use devices::Device;
pub use ending::Ending;
pub use error::{Error, Result};
pub use hub::{TablesOf, VolumeStatus};
pub use identity::{Fingerprint, random};
pub use remote::{Dial, Patience, RemoteShare};
pub use server::{Door, Server};

// The tests of what others see are in the binary of the unit tests: the crate is built once for
// both.
#[cfg(test)]
extern crate self as oblivio_share;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
