//! What is agreed with the kernel.

use crate::mount::reply::MAX_IO;
use fuser::{InitFlags, KernelConfig, ReplyStatfs};
use oblivio_privatefs::{NAME_BYTES, Space};

/// Requests that the kernel makes by itself, reading ahead above all.
const MAX_BACKGROUND: u16 = 32;

/// Turns on the kernel's optional features, but not that it keeps written data for itself: then
/// lengths and times of files would be its own, whatever other clients do.
pub fn configure(config: &mut KernelConfig, local_locks: bool) {
    let mut flags = vec![
        InitFlags::FUSE_ASYNC_READ,
        InitFlags::FUSE_BIG_WRITES,
        InitFlags::FUSE_PARALLEL_DIROPS,
    ];
    if !local_locks {
        flags.extend([InitFlags::FUSE_POSIX_LOCKS, InitFlags::FUSE_FLOCK_LOCKS]);
    }
    // One by one: an older kernel that lacks some gets the others.
    for flag in flags {
        let _ = config.add_capabilities(flag);
    }
    let _ = config.set_max_write(MAX_IO);
    if let Err(most) = config.set_max_readahead(MAX_IO) {
        let _ = config.set_max_readahead(most);
    }
    let _ = config.set_max_background(MAX_BACKGROUND);
}

/// Reports how full the volume is. Each file takes a block at least.
pub fn statfs(space: Space, block_bytes: u32, reply: ReplyStatfs) {
    let Space { total, free } = space;
    reply.statfs(total, free, free, total, free, block_bytes, NAME_BYTES as u32, block_bytes);
}
