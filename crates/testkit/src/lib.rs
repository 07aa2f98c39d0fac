//! What only tests and the lab need. No crate that ships depends on it.
//!
//! - Stores: [`CrashStore`] loses, tears and reorders what was not synced, [`CrashDisk`] is one
//!   object of it, for the tests of the store crate itself, [`FaultStore`] fails the operation that
//!   a test picks, and [`LatencyStore`] is as slow as a network.
//! - A volume in memory that crashes and commits by itself: [`blocks`].
//! - The suites that every store passes, one for each port: [`conformance`].
//! - Shared volumes: [`share`] has their suites and doubles.
//! - Whether a recorded history of concurrent clients is linearizable: [`linear`].
//! - Real servers of S3, WebDAV and SFTP, where their programs are installed: [`rigs`].
//! - An account of Dropbox, Google Drive or OneDrive, by their documents: [`accounts`].
//! - How much of a campaign runs, and from which seed: [`campaign`].
//! - Chance: [`Dice`] over the [`SplitMix64`] that the audit uses too.
//!
//! `MemoryStore` and `RecordStore` are in the store crate: the command runs its self-test and its
//! audits on them.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests"))]

pub mod accounts;
pub mod blocks;
pub mod campaign;
pub mod conformance;
pub mod crash;
mod dice;
mod disk;
mod eventually;
pub mod fault;
pub mod latency;
pub mod linear;
pub mod rigs;
pub mod share;

pub use crash::CrashStore;
pub use dice::Dice;
pub use disk::CrashDisk;
pub use eventually::eventually;
pub use fault::FaultStore;
pub use latency::LatencyStore;
pub use oblivio_splitmix::SplitMix64;

// The tests of what others see are in the binary of the unit tests: the crate is built once for
// both.
#[cfg(test)]
extern crate self as oblivio_testkit;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
