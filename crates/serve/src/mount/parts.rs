//! The file systems of a mount: the volume's own, and those of its open lanes.
//!
//! A lane is a directory in the root, under a name that no listing has. All that follows from the
//! volume's own requests is the same as without it.
//!
//! We are the only writer, so the kernel may cache for an hour: every change goes through it. For
//! the same reason it handles `copy_file_range` itself: data in its memory need not be fetched, and
//! it writes copies in large pieces.

use super::kernel::MountKernel;
use crate::fuse::{FileOp, KernelFiles, KernelReply, MountPart, NamePlace};
use fuser::{Errno, InitFlags};
use oblivio_volume::fs::{Ino, ROOT_INO};
use std::time::Duration;

/// How long the kernel may cache entries and attributes.
pub const TTL: Duration = Duration::from_secs(3600);

/// The name of a lane, counted from 0, in the root.
pub fn lane_name(number: usize) -> String {
    format!(".{}", number + 1)
}

/// The connection to the kernel.
pub struct MountParts {
    own: MountKernel,
    /// None if none is open: numbers of the volume alone have no marks.
    lanes: Vec<Option<MountKernel>>,
}

impl MountParts {
    /// A volume's own files, and those of its lanes, as far as they are open.
    pub fn of(own: MountKernel, mut lanes: Vec<Option<MountKernel>>) -> Self {
        if lanes.iter().all(Option::is_none) {
            lanes.clear();
        }
        Self { own, lanes }
    }

    fn part(&self, part: MountPart) -> Option<&MountKernel> {
        match part.as_lane() {
            None => Some(&self.own),
            Some(lane) => self.lanes.get(lane)?.as_ref(),
        }
    }

    /// The lane that is at this place.
    fn lane_at(&self, at: &NamePlace) -> Option<MountPart> {
        let open = |number: &usize| self.lanes.get(*number).is_some_and(Option::is_some);
        let is_it = |number: &usize| at.name == lane_name(*number).as_bytes();
        let number = (0..self.lanes.len()).find(is_it).filter(open);
        number.filter(|_| at.parent == ROOT_INO).and_then(MountPart::lane)
    }

    /// The part that a request is for, without its mark. The way in and out of a lane is a lookup.
    fn sorted(&self, op: &mut FileOp) -> Result<MountPart, Errno> {
        let part = op.unmark().ok_or(Errno::EXDEV)?;
        let named = op.names().find_map(|at| self.lane_at(at)).filter(|_| part == MountPart::OWN);
        match (op, part.as_lane(), named) {
            (FileOp::Lookup(at), None, Some(lane)) => {
                at.name = b".".to_vec();
                Ok(lane)
            }
            (_, None, Some(_)) => Err(Errno::EBUSY),
            (FileOp::Lookup(at), Some(_), _) if at.parent == ROOT_INO && at.name == b".." => {
                at.name = b".".to_vec();
                Ok(MountPart::OWN)
            }
            _ => Ok(part),
        }
    }
}

impl KernelFiles for MountParts {
    type Data<'r> = Vec<u8>;

    fn capabilities(&self) -> InitFlags {
        // Not FUSE_ASYNC_DIO: direct writes would then end without dropping what other readers
        // brought into the cache. With FUSE_EXPORT_SUPPORT the kernel may look up an inode by
        // number, so handles work, those of `open_by_handle_at` and NFS.
        InitFlags::FUSE_ASYNC_READ
            | InitFlags::FUSE_ATOMIC_O_TRUNC
            | InitFlags::FUSE_BIG_WRITES
            | InitFlags::FUSE_CACHE_SYMLINKS
            | InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_EXPORT_SUPPORT
            | InitFlags::FUSE_READDIRPLUS_AUTO
            | InitFlags::FUSE_HANDLE_KILLPRIV_V2
            | InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_WRITEBACK_CACHE
    }

    fn carry_out(&self, mut op: FileOp, reply: KernelReply) {
        if self.lanes.is_empty() {
            return self.own.carry_out(op, reply);
        }
        match self.sorted(&mut op).map(|part| self.part(part)) {
            Ok(Some(part)) => part.carry_out(op, reply),
            Ok(None) => reply.error(Errno::ESTALE),
            Err(errno) => reply.error(errno),
        }
    }

    fn forget(&self, ino: Ino, lookups: u64) {
        if self.lanes.is_empty() {
            return self.own.forget(ino, lookups);
        }
        let (part, ino) = MountPart::of(ino);
        if let Some(part) = self.part(part) {
            part.forget(ino, lookups);
        }
    }
}
