//! Invalidations that the kernel gets for one file system of a mount.

use crate::fuse::MountPart;
use fuser::{INodeNo, Notifier};
use oblivio_volume::fs::Ino;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The kernel's ear for one file system. It may have forgotten by itself what it is to forget, so
/// nothing here fails.
#[derive(Clone, Debug)]
pub struct KernelNotices {
    pub notifier: Notifier,
    pub part: MountPart,
}

impl KernelNotices {
    /// It forgets the attributes of an inode.
    pub fn forget(&self, ino: Ino) {
        let _ = self.notifier.inval_inode(INodeNo(self.part.mark(ino)), -1, 0);
    }

    /// It forgets the data of a file too, which it writes back before.
    pub fn write_back(&self, ino: Ino) {
        let _ = self.notifier.inval_inode(INodeNo(self.part.mark(ino)), 0, 0);
    }

    /// It forgets a name.
    pub fn forget_name(&self, parent: Ino, name: &[u8]) {
        let parent = INodeNo(self.part.mark(parent));
        let _ = self.notifier.inval_entry(parent, OsStr::from_bytes(name));
    }
}
