//! Traces of the memory that a program needs beyond its caches.
//!
//! QEMU's user mode runs the program and loads this crate as a plugin. Two levels of cache and the
//! clock of a simple core are inside: what comes out is one record for each miss of the second
//! level and for each line that it writes back. The lab replays such traces (`docs/traces.md`).
//!
//! All unsafe code is in `qemu`. Nothing here needs QEMU in order to be built or tested.

pub mod caches;
pub mod core;
pub mod options;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod qemu;
pub mod record;
pub mod tracer;
