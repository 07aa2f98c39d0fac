//! The kernel's line to a file system, for both of them.
//!
//! `decode` turns what the kernel asks into an [`Op`], which some [`KernelFiles`] carry out: the
//! `mount` of a volume queues it for its one server, and `privatefs` answers on the thread that
//! brought it.
//! `answer` hands the outcome to the kernel. `convert` and `xattr` are what both say alike.

mod answer;
pub mod convert;
mod decode;
pub mod errno;
mod files;
mod op;
mod part;
pub mod xattr;

use crate::error::{Doing, Result};
pub use answer::{FileAnswer, KernelReply, ListedName, Manner, Statfs, list_plus};
pub use decode::Decoder;
pub use errno::{Fail, Served, done};
pub use files::{KernelFiles, MAX_IO};
use fuser::{Config, Session, SessionACL};
pub use op::{
    Allocation, Caller, FileOp, FileOpKind, LockRequest, NamePlace, O_APPEND, O_EXCL, O_TRUNC,
};
pub use part::MountPart;
use std::os::fd::OwnedFd;

/// Begins to speak with the kernel; running the session serves its requests, on this number of
/// threads.
///
/// # Errors
/// The kernel is of another kind.
pub fn session<F: KernelFiles>(
    files: F,
    device: OwnedFd,
    threads: usize,
) -> Result<Session<Decoder<F>>> {
    let mut config = Config::default();
    config.n_threads = Some(threads);
    // The kernel decides who may enter: it knows, and it also writes in its own name.
    let all = SessionACL::All;
    Session::from_fd(Decoder(files), device, all, config).doing("the kernel does not speak to us")
}
