//! The servers of Oblivio's volumes: a mount through FUSE, a disk over NBD or the kernel's ublk
//! driver, a live page of what the storage sees.
//!
//! It takes plain options, and knows neither command lines nor terminals, exit codes or home
//! directories: the `oblivio` command is a thin layer over it. [`mount::within`] and
//! [`nbd::within`] serve a volume inside the process that uses it.
//!
//! The ten types that matter most:
//!
//! | type | what it is |
//! |---|---|
//! | `mount::MountOptions`, `mount::Mounted` | how a volume is mounted, and a mount that runs |
//! | `nbd::DiskOptions`, `nbd::Listener`, `nbd::TlsConfig` | a disk over NBD, and its clients |
//! | `privatefs::SharedMountOptions`, `privatefs::SharedMount` | the mount of a shared volume |
//! | `watch::Publisher` | what the live page hears of a volume |
//! | `Pulse` | a sign of life of a slow volume |
//! | `Error` | what happened; what to do about it is the program's to say |
#![allow(clippy::disallowed_methods, reason = "a server reads clocks, starts threads and waits")]

pub mod ending;
mod error;
mod fuse;
pub mod fuzzing;
mod judge;
mod lanes;
pub mod layers;
pub mod log;
mod lost;
pub mod memory;
pub mod mount;
pub mod nbd;
#[cfg(test)]
mod paired;
pub mod plain;
pub mod privatefs;
mod queue;
mod request_count;
mod server;
mod strangers;
mod threads;
#[cfg(all(feature = "ublk", target_os = "linux"))]
pub mod ublk;
pub mod watch;

pub use error::{Error, Result, Unsafe};
pub use lanes::LaneMedium;
pub use lost::damage_log;
pub use queue::Pulse;

// The tests of what others see are in the binary of the unit tests: the crate is built once for
// both.
#[cfg(test)]
extern crate self as oblivio_serve;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
