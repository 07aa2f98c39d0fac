//! Handing answers to the kernel, and the settings agreed with it.

use fuser::{Generation, InitFlags, KernelConfig, ReplyData, ReplyStatfs};
use oblivio_volume::fs::{NAME_BYTES, Usage};
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// How long the kernel may cache entries and attributes.
pub const TTL: Duration = Duration::from_secs(3600);
/// Inode numbers are never reused, so each has one generation.
pub const GENERATION: Generation = Generation(0);
/// The largest read and write, and what the kernel reads ahead.
pub const MAX_IO: u32 = 1 << 20;
const MAX_BACKGROUND: u16 = 32;

/// Turns on the kernel's optional features.
pub fn configure(config: &mut KernelConfig) {
    // One by one: an older kernel that lacks some gets the others. Not FUSE_ASYNC_DIO: direct
    // writes would then end without dropping what other readers brought into the cache.
    for flag in [
        InitFlags::FUSE_ASYNC_READ,
        InitFlags::FUSE_ATOMIC_O_TRUNC,
        InitFlags::FUSE_BIG_WRITES,
        InitFlags::FUSE_CACHE_SYMLINKS,
        InitFlags::FUSE_DO_READDIRPLUS,
        // The kernel may look up an inode by number. So handles work, those of `open_by_handle_at`
        // and NFS.
        InitFlags::FUSE_EXPORT_SUPPORT,
        InitFlags::FUSE_READDIRPLUS_AUTO,
        InitFlags::FUSE_HANDLE_KILLPRIV_V2,
        InitFlags::FUSE_PARALLEL_DIROPS,
        InitFlags::FUSE_WRITEBACK_CACHE,
    ] {
        let _ = config.add_capabilities(flag);
    }
    let _ = config.set_max_write(MAX_IO);
    if let Err(most) = config.set_max_readahead(MAX_IO) {
        let _ = config.set_max_readahead(most);
    }
    let _ = config.set_max_background(MAX_BACKGROUND);
}

/// Hands the right kind of answer to the reply; any other kind is our bug.
macro_rules! answer {
    ($reply:ident, $($pattern:pat $(if $long:expr)? => $hand_over:expr),+ $(,)?) => {
        Box::new(move |result| match result {
            $(Ok($pattern) $(if $long)? => $hand_over,)+
            Ok(_) => $reply.error(Errno::EIO),
            Err(errno) => $reply.error(errno),
        })
    };
}

pub(super) use answer;

/// Data for the kernel that takes long to hand over.
pub type Long = (ReplyData, Vec<u8>);

/// Hands over long data, on a thread of its own.
pub fn hand_over(long: &Receiver<Long>) {
    while let Ok((reply, data)) = long.recv() {
        reply.data(&data);
    }
}

/// Bytes of metadata for an inode, about.
const INODE_BYTES: u64 = 512;

/// Reports the volume's usage. Blocks that the store has no room for are free but not available:
/// counted as used, they would make an empty volume on a small disk seem full.
pub fn statfs(usage: &Usage, reply: ReplyStatfs) {
    let used = usage.files + usage.directories;
    let free_inodes = usage.free_blocks.saturating_mul(usage.block_bytes) / INODE_BYTES;
    let block = u32::try_from(usage.block_bytes).unwrap_or(u32::MAX);
    reply.statfs(
        usage.capacity_blocks,
        usage.unused_blocks,
        usage.free_blocks,
        used + free_inodes,
        free_inodes,
        block,
        NAME_BYTES as u32,
        block,
    );
}
