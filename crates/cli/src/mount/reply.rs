//! Handing answers to the kernel, and the settings agreed with it.

use super::convert;
use super::fuse::Kernel;
use super::request::{Answer, Op};
use fuser::{
    Errno, Generation, InitFlags, KernelConfig, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry,
    ReplyStatfs, ReplyWrite, ReplyXattr,
};
use oblivio_volume::fs::{Ino, NAME_BYTES, Usage};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SendError};
use std::time::Duration;

/// How long the kernel may cache entries and attributes.
pub const TTL: Duration = Duration::from_secs(3600);
/// Inode numbers are never reused, so each has one generation.
pub const GENERATION: Generation = Generation(0);
/// The largest read and write, and what the kernel reads ahead.
pub const MAX_IO: u32 = 1 << 20;
const MAX_BACKGROUND: u16 = 32;
/// From this size on, handing data over takes longer than waking a thread to do it.
const LONG: usize = 64 << 10;

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

impl Kernel {
    pub(super) fn entry(&self, op: Op, reply: ReplyEntry) {
        let (block, references) = (self.block_bytes, self.references.clone());
        let scarce = self.scarce.clone();
        self.queue.push(
            op,
            answer!(reply,
                Answer::Entry(Some(attr)) => {
                    references.told(attr.ino);
                    reply.entry(&TTL, &convert::attr(&attr, block), GENERATION);
                    scarce.told(attr.ino);
                },
                Answer::Entry(None) => reply.entry(&TTL, &convert::nothing(), GENERATION),
            ),
        );
    }

    pub(super) fn empty(&self, op: Op, reply: ReplyEmpty) {
        self.queue.push(op, answer!(reply, Answer::Done => reply.ok()));
    }

    pub(super) fn attr(&self, op: Op, reply: ReplyAttr) {
        let (block, scarce) = (self.block_bytes, self.scarce.clone());
        self.queue.push(
            op,
            answer!(reply, Answer::Attr(attr) => {
                reply.attr(&TTL, &convert::attr(&attr, block));
                scarce.told(attr.ino);
            }),
        );
    }

    /// A program is about to write: the kernel has already forgotten the attributes that it gets
    /// now.
    pub(super) fn asked(&self, ino: Ino, fh: u64, reply: ReplyAttr) {
        let (block, queue) = (self.block_bytes, Arc::clone(&self.queue));
        self.scarce.before(ino, move || {
            queue.push(
                Op::Ask { ino, fh },
                answer!(reply, Answer::Attr(attr) => reply.attr(&TTL, &convert::attr(&attr, block))),
            );
        });
    }

    pub(super) fn written(&self, op: Op, reply: ReplyWrite) {
        self.queue.push(op, answer!(reply, Answer::Written(bytes) => reply.written(bytes)));
    }

    pub(super) fn data(&self, op: Op, reply: ReplyData) {
        self.queue.push(op, answer!(reply, Answer::Data(data) => reply.data(&data)));
    }

    /// As [`Self::data`], for long data: the server goes on during the hand-over.
    pub(super) fn long_data(&self, op: Op, reply: ReplyData) {
        let long = self.long.clone();
        self.queue.push(
            op,
            answer!(reply,
                Answer::Data(data) if data.len() >= LONG => {
                    // Without the thread, hand it over here.
                    if let Err(SendError((reply, data))) = long.send((reply, data)) {
                        reply.data(&data);
                    }
                },
                Answer::Data(data) => reply.data(&data),
            ),
        );
    }

    pub(super) fn xattr(&self, op: Op, reply: ReplyXattr) {
        self.queue.push(
            op,
            answer!(reply,
                Answer::Data(data) => reply.data(&data),
                Answer::Size(size) => reply.size(size),
            ),
        );
    }
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
