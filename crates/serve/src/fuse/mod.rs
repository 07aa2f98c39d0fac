//! The kernel's line to a file system, for both of them.
//!
//! `decode` turns what the kernel asks into an [`Op`], which some [`Files`] carry out: the `mount`
//! of a volume queues it for its one server, and `privatefs` answers on the thread that brought it.
//! `answer` hands the outcome to the kernel. `convert` and `xattr` are what both say alike.

mod answer;
pub mod convert;
mod decode;
mod op;
pub mod xattr;

use crate::error::{Doing, Result};
pub use answer::{Answer, KernelReply, Listed, Manner, Statfs, list_plus};
pub use decode::Decoder;
use fuser::{Config, InitFlags, KernelConfig, Session, SessionACL};
use oblivio_volume::fs::Ino;
pub use op::{Allocation, Caller, LockRequest, O_APPEND, O_EXCL, O_TRUNC, Op, Place, RequestKind};
use std::os::fd::OwnedFd;

/// The largest read and write, and what the kernel reads ahead.
pub const MAX_IO: u32 = 1 << 20;
/// Requests that the kernel makes by itself, reading ahead above all.
const MAX_BACKGROUND: u16 = 32;

/// A file system as the kernel sees it.
pub trait Files: Send + Sync + 'static {
    /// What holds the bytes of a write: a copy where requests wait, and none where they are
    /// carried out at once.
    type Data<'r>: From<&'r [u8]>;

    /// Optional features of the kernel that suit it.
    fn capabilities(&self) -> InitFlags;

    /// Carries out a request, now or later, and answers it.
    fn carry_out(&self, op: Op<Self::Data<'_>>, reply: KernelReply);

    /// The kernel takes back references to an inode. It waits for no answer.
    fn forget(&self, ino: Ino, lookups: u64);
}

/// Begins to speak with the kernel; running the session serves its requests, on so many threads.
///
/// # Errors
/// The kernel is of another kind.
pub fn session<F: Files>(files: F, device: OwnedFd, threads: usize) -> Result<Session<Decoder<F>>> {
    let mut config = Config::default();
    config.n_threads = Some(threads);
    // The kernel decides who may enter: it knows, and it also writes in its own name.
    let all = SessionACL::All;
    Session::from_fd(Decoder(files), device, all, config).doing("the kernel does not speak to us")
}

/// Turns on the kernel's optional features.
fn configure(config: &mut KernelConfig, capabilities: InitFlags) {
    // One by one: an older kernel that lacks some gets the others.
    for flag in capabilities.iter() {
        let _ = config.add_capabilities(flag);
    }
    let _ = config.set_max_write(MAX_IO);
    if let Err(most) = config.set_max_readahead(MAX_IO) {
        let _ = config.set_max_readahead(most);
    }
    let _ = config.set_max_background(MAX_BACKGROUND);
}
