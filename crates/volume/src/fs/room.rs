//! The room that is kept free, so that what is deleted works on a full volume, and what is accepted
//! can be committed.

use super::pool::full;
use super::state::State;
use super::types::Usage;
use crate::{Error, Result};

/// How much metadata one operation may write anew: a leaf and a branch in each table.
const OPERATION_BYTES: u64 = 32 << 10;
/// What a commit may write of the database's own.
const COMMIT_BYTES: u64 = 256 << 10;
/// How much metadata an unwritten block may still cost: each may become a run of its own.
const UNWRITTEN_BYTES: u64 = 128;

impl State {
    /// Blocks that metadata may still take before the next commit is through.
    fn metadata_reserve(&self, operations: u64) -> u64 {
        let bytes = operations * OPERATION_BYTES + COMMIT_BYTES;
        let mapped = self.pool.lock().metadata.mapped_blocks();
        bytes / self.block_bytes as u64 + mapped / 16 + 4
    }

    /// Blocks kept back, so that what is deleted, and what is written to blocks that are set
    /// aside already, works on a full volume.
    fn kept_back(&self) -> u64 {
        let unwritten = self.unwritten_reserve(self.counters.unwritten);
        self.metadata_reserve(0) + unwritten
    }

    /// Blocks that metadata may take when so many unwritten blocks are written, one here and one
    /// there.
    pub(super) fn unwritten_reserve(&self, blocks: u64) -> u64 {
        blocks.saturating_mul(UNWRITTEN_BYTES).div_ceil(self.block_bytes as u64)
    }

    /// Whether an empty file system has a place.
    pub(super) fn has_room_for_metadata(&self) -> bool {
        self.has_room(self.metadata_reserve(0))
    }

    /// Whether `blocks` can be taken, with all that buffered tails and metadata may need.
    pub(super) fn has_room(&self, blocks: u64) -> bool {
        let pending = self.tails.len() as u64 + self.metadata_reserve(self.operations + 1);
        let pool = self.pool.lock();
        let enough = pool.allocator.free() >= blocks.saturating_add(pending);
        enough && !pool.metadata.map.is_scattered()
    }

    /// Called before anything is changed by an operation that grows: makes sure of `blocks` free
    /// ones. When they are short, here or in the store below, commits, which frees what was deleted
    /// since the last time.
    pub(super) fn make_room(&mut self, blocks: u64) -> Result<()> {
        let wanted = blocks.saturating_add(self.kept_back());
        if !self.has_room(wanted) {
            self.flush_all_tails()?;
        }
        if !self.has_room(wanted) && self.commit_frees() {
            self.commit()?;
        }
        if !self.has_room(wanted) && self.could_shrink() {
            self.shrink_metadata()?;
        }
        if !self.has_room(wanted) {
            return Err(full());
        }
        // Refused while it can still be: what was accepted must be stored.
        let mut has_room = self.store_has_room(blocks)?;
        if !has_room && self.commit_frees() {
            self.commit()?;
            has_room = self.store_has_room(blocks)?;
        }
        if !has_room {
            return Err(Error::Full("the store has no space left".into()));
        }
        self.operations += 1;
        Ok(())
    }

    /// Whether a commit may free something.
    fn commit_frees(&self) -> bool {
        self.operations > 0 || self.pool.lock().allocator.deferred() > 0
    }

    /// Whether the store below has space for so many blocks more, and for what waits.
    fn store_has_room(&self, blocks: u64) -> Result<bool> {
        let waits = self.tails.len() as u64 + self.metadata_reserve(self.operations + 1);
        let room = self.pool.lock().blocks()?.room()?;
        Ok(room.is_none_or(|room| room >= blocks.saturating_add(waits)))
    }

    /// Called before anything is changed by an operation that frees or only renames: it is never
    /// refused, but when metadata could run out of blocks, a commit lets it reuse its own.
    pub(super) fn make_way(&mut self) -> Result<()> {
        if self.operations > 0 && !self.has_room(0) {
            self.commit()?;
        }
        self.operations += 1;
        self.removals += 1;
        self.removed = true;
        Ok(())
    }

    /// Called before anything is changed by an operation that makes nothing new, but may make
    /// records a little longer: it may use half of what is kept back, and leaves the rest to
    /// deletions.
    pub(super) fn make_change(&mut self) -> Result<()> {
        let kept = self.kept_back() / 2;
        if self.operations > 0 && !self.has_room(kept) {
            self.commit()?;
        }
        if !self.has_room(kept) && self.could_shrink() {
            self.shrink_metadata()?;
        }
        if !self.has_room(kept) {
            return Err(full());
        }
        self.operations += 1;
        Ok(())
    }

    /// All of this is at hand: nothing is counted or fetched.
    pub(super) fn usage(&self) -> Result<Usage> {
        let buffered = self.tails.bytes().div_ceil(self.block_bytes) as u64;
        // As `make_room` reckons, right after a commit.
        let reserved = buffered + self.kept_back() + self.metadata_reserve(1);
        let mut pool = self.pool.lock();
        let unused = pool.allocator.capacity().saturating_sub(pool.allocator.used());
        let free = pool.room_with_unwanted(unused)?;
        Ok(Usage {
            files: self.counters.files,
            directories: self.counters.directories,
            logical_bytes: self.counters.logical_bytes,
            data_blocks: pool.data_blocks() + buffered,
            metadata_blocks: pool.metadata.mapped_blocks(),
            free_blocks: free.saturating_sub(reserved),
            unused_blocks: unused.saturating_sub(reserved),
            capacity_blocks: pool.allocator.capacity(),
            block_bytes: self.block_bytes as u64,
        })
    }
}
