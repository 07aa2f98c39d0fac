//! Block devices of Linux whose requests are answered by this process: ublk, from Linux 6.0 on.
//!
//! The kernel's driver (`ublk_drv`) talks with a process by commands of `io_uring`. A [`Device`] is
//! added; its [`Queue`] then hands out [`Request`]s on a thread of its own, and whoever answers
//! them does so by [`Answers`], on any thread and in any order. There is one queue, whose requests
//! may all be under way together: what is behind it takes one batch at a time in any case.
//!
//! All unsafe code here is in one module, `raw`: the memory that is shared with the
//! kernel, and the commands that name it. Numbers and layouts are those of the kernel's
//! `linux/ublk_cmd.h`.
#![cfg(target_os = "linux")]

mod abi;
mod device;
mod queue;
mod raw;

pub use abi::Parameters;
pub use device::{CONTROL, Device};
pub use queue::{Answers, Op, Queue, Request, Tag};

/// Requests of one device that can be under way together.
pub const DEPTH: u16 = 64;
/// The most bytes of one read or write.
pub const MOST_BYTES: u32 = 512 << 10;
