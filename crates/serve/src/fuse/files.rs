//! What a file system is to the kernel's line.

use super::answer::KernelReply;
use super::op::FileOp;
use fuser::{InitFlags, KernelConfig};
use oblivio_volume::fs::Ino;

/// The largest read and write, and what the kernel reads ahead.
pub const MAX_IO: u32 = 1 << 20;
/// Requests that the kernel makes by itself, reading ahead above all.
const MAX_BACKGROUND: u16 = 32;

/// A file system as the kernel sees it.
pub trait KernelFiles: Send + Sync + 'static {
    /// What holds the bytes of a write: a copy where requests wait, and none where they are
    /// carried out at once.
    type Data<'r>: From<&'r [u8]>;

    /// Optional features of the kernel that suit it.
    fn capabilities(&self) -> InitFlags;

    /// Carries out a request, now or later, and answers it.
    fn carry_out(&self, op: FileOp<Self::Data<'_>>, reply: KernelReply);

    /// The kernel takes back references to an inode. It waits for no answer.
    fn forget(&self, ino: Ino, lookups: u64);
}

/// Turns on the kernel's optional features.
pub fn configure(config: &mut KernelConfig, capabilities: InitFlags) {
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
