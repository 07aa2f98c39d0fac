//! Where a file has data and where it has holes, by whole segments.

use super::state::State;
use super::types::{Handle, SeekWhence};
use crate::Result;

impl State {
    /// `None` behind the end, and when no data follows.
    pub(super) fn seek(
        &self,
        handle: Handle,
        offset: u64,
        whence: SeekWhence,
    ) -> Result<Option<u64>> {
        let ino = self.handles.file(handle)?;
        let inode = self.meta.inode(ino)?;
        if offset >= inode.size {
            return Ok(None);
        }
        let size = self.block_bytes as u64;
        let segment = offset / size;
        let tail = self.floats(ino, &inode).then_some(inode.size / size);
        let found = match whence {
            SeekWhence::Data => self.meta.next_segment(ino, segment, true)?.or(tail),
            // The end follows a tail.
            SeekWhence::Hole => {
                let hole = self.meta.next_segment(ino, segment, false)?;
                hole.map(|hole| if Some(hole) == tail { hole + 1 } else { hole })
            }
        };
        let at = found.map(|segment| segment.saturating_mul(size).max(offset));
        Ok(match whence {
            SeekWhence::Data => at.filter(|&at| at < inode.size),
            SeekWhence::Hole => at.map(|at| at.min(inode.size)),
        })
    }
}
