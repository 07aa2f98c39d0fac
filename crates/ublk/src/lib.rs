//! Block devices of Linux whose requests this process answers: ublk, from Linux 6.0 on.
//!
//! The kernel's driver (`ublk_drv`) talks with a process by commands of `io_uring`. After a
//! [`Device`] is added, its [`UblkQueue`] hands out [`UblkRequest`]s on a thread of its own.
//! [`Answers`] takes the answers on any thread and in any order. There is one queue, and all its
//! requests may be under way together: the volume behind it takes one batch at a time in any case.
//!
//! All unsafe code here is in one module, `raw`: the memory shared with the kernel, and the
//! commands that name it. Numbers and layouts are those of the kernel's `linux/ublk_cmd.h`.
//!
//! It must not know volumes. Its types: `Device` and `DeviceParameters`, a device and its shape;
//! `UblkQueue`,
//! `UblkRequest`, `UblkOp` and `RequestTag`, what the kernel wants; `Answers`, what it gets.
#![cfg(target_os = "linux")]

mod abi;
mod device;
mod queue;
mod raw;

pub use abi::DeviceParameters;
pub use device::{CONTROL, Device};
pub use queue::{Answers, RequestTag, UblkOp, UblkQueue, UblkRequest};

/// Limit of one device's requests under way.
pub const DEPTH: u16 = 64;
/// Limit of the bytes in one read or write.
pub const MOST_BYTES: u32 = 512 << 10;
