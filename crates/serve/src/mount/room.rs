//! How the server accounts for the room that is left, and for what was lost for want of it.

use super::low_space::Need;
use super::server::MountServer;
use crate::fuse::{FileAnswer, FileOp, O_TRUNC, Served};
use fuser::Errno;
use oblivio_volume::Error;
use oblivio_volume::fs::{Ino, SetAttr};

/// Where less may wait in memory, a lane takes no more writes: the kernel has some already.
const LEAST_TO_WAIT: u64 = 32 << 20;

impl MountServer {
    /// The number of existing files that lost written data, and whether one did for want of room.
    /// Removed files do not count, also while the kernel still knows them.
    pub(super) fn lost_now(&self) -> (u64, bool) {
        let lost = self.tells.scarce.all_lost();
        let has_name = |ino| self.fs.attr(ino).is_ok_and(|attr| attr.nlink > 0);
        let there = lost.into_iter().filter(|(ino, _)| has_name(*ino));
        there.fold((0, false), |(files, any), (_, full)| (files + 1, any || full))
    }

    /// Checks how much room there is.
    pub(super) fn look(&self) {
        if let Ok(usage) = self.fs.usage() {
            let free = usage.free_blocks.saturating_mul(usage.block_bytes);
            let waits = self.carried.as_ref().map_or(u64::MAX, |lane| lane.tally.room());
            self.tells.scarce.saw(free.min(waits));
        }
    }

    /// A program is about to write, while room is short.
    pub(super) fn ask(&self, ino: Ino, fh: u64) -> Served {
        self.look();
        let attr = self.fs.attr(ino)?;
        let full = match self.tells.scarce.need(ino, fh, attr.size) {
            Need::Nothing => false,
            Need::Refused => true,
            Need::Bytes(bytes) => matches!(self.fs.expect_room(bytes), Err(Error::Full(_))),
        };
        let waits = || self.carried.as_ref().is_some_and(|lane| lane.tally.room() < LEAST_TO_WAIT);
        let refusal = match full {
            true => Errno::ENOSPC,
            false if waits() => Errno::EDQUOT,
            false => return Ok(FileAnswer::Attr(attr)),
        };
        self.tells.scarce.refuse(ino);
        Err(refusal.into())
    }

    /// The size of a file before the kernel writes back to it; only where room is short.
    pub(super) fn size_before(&self, op: &FileOp) -> Option<u64> {
        match op {
            FileOp::Write { ino, cached: true, .. } if self.tells.scarce.is_short() => {
                self.fs.attr(*ino).ok().map(|attr| attr.size)
            }
            _ => None,
        }
    }

    /// Accounts for bytes written, and for failed writes.
    pub(super) fn note_room(&self, op: &FileOp, before: Option<u64>, served: &Served) {
        match (op, served) {
            (FileOp::Write { ino, offset, data, cached: true, .. }, Ok(_)) => {
                let len = data.len() as u64;
                if let Some(before) = before {
                    self.tells.scarce.wrote(*ino, len, offset + len > before);
                }
                if self.tells.scarce.should_look(len) {
                    self.look();
                }
            }
            (FileOp::Write { ino, cached: true, .. }, Err(fail)) => {
                self.tells.scarce.lost(*ino, fail.errno().code() == Errno::ENOSPC.code());
                self.look();
            }
            (FileOp::Write { data, .. }, Ok(_))
                if self.tells.scarce.should_look(data.len() as u64) =>
            {
                self.look();
            }
            (FileOp::Allocate { .. }, Ok(_)) => self.look(),
            (FileOp::SetAttr { ino, change: SetAttr { size: Some(0), .. }, .. }, Ok(_)) => {
                self.tells.scarce.emptied(*ino);
            }
            (FileOp::Open { ino, flags, .. }, Ok(_)) if flags & O_TRUNC != 0 => {
                self.tells.scarce.emptied(*ino);
            }
            _ => {}
        }
    }
}
