//! A server for volumes of many clients, which it cannot read, and the line to it.
//!
//! It links no key of a volume and no engine. `volume` is what it keeps of each, behind the port
//! [`oblivio_store::share`], and TLS is before that. [`Server`] serves a folder, [`wish`] is what
//! its administrator wants, [`RemoteShare`] is a volume for a client.
//!
//! It must not know what clients store: names, blocks and keys are theirs.
//!
//! The ten types that matter most:
//!
//! | type | what it is |
//! |---|---|
//! | `Server`, `ServerEnding` | a server at work, and its orderly end |
//! | `AdminRequest`, `Granted`, `KnownDevice` | a wish, its answer, and who is in |
//! | `ShareAddress`, `Token` | where a volume is, and what admits a computer to it |
//! | `RemoteShare`, `LinePatience` | the line to a volume, and how long it is waited for |
//! | `Error` | why a server did not start, or refused |
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
mod identity;
mod line;
mod message;
mod pending_connections;
mod remote;
mod server;
mod stream;
mod volume;
mod volume_registry;

pub use address::{PORT, ShareAddress, Token, check_name, hex, is_name};
pub use admin::{AdminRequest, Granted, admit, wish};
pub use devices::KnownDevice;
pub use ending::ServerEnding;
pub use error::{Error, Result};
pub use identity::{Fingerprint, random};
pub use remote::{Dial, LinePatience, RemoteShare};
pub use server::{Server, ServerDoor};
pub use volume::{Healed, MemoryShare, MissingParts, StoredShare, Tables};
pub use volume_registry::{Home, TablesOf, VolumeStatus};

// The tests of what others see are in the binary of the unit tests: the crate is built once for
// both.
#[cfg(test)]
extern crate self as oblivio_share;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
