//! Reserved room, so that deletions work on a full volume and accepted data can be committed.

use super::state::State;
use super::types::Usage;
use crate::{Error, Result};

/// Metadata that one operation may rewrite: a leaf and a branch in each table.
const OPERATION_BYTES: u64 = 32 << 10;
/// The database's own writes in a commit.
const COMMIT_BYTES: u64 = 256 << 10;
/// Metadata that an unwritten block may still cost: each may become a run of its own.
const UNWRITTEN_BYTES: u64 = 128;

impl State {
    /// Blocks that metadata may still take until the next commit is done.
    fn metadata_reserve(&self, operations: u64) -> u64 {
        let bytes = operations * OPERATION_BYTES + COMMIT_BYTES;
        let mapped = self.pool.lock().metadata.map.mapped();
        bytes / self.block_bytes as u64 + mapped / 16 + 4
    }

    /// Blocks reserved so that deletions, and writes to blocks set aside, work on a full volume.
    fn kept_back(&self) -> u64 {
        let unwritten = self.unwritten_reserve(self.counters.unwritten);
        self.metadata_reserve(0) + unwritten
    }

    /// Blocks that metadata may take when `blocks` unwritten blocks are written, scattered.
    pub(super) fn unwritten_reserve(&self, blocks: u64) -> u64 {
        blocks.saturating_mul(UNWRITTEN_BYTES).div_ceil(self.block_bytes as u64)
    }

    /// Whether there is room for an empty file system.
    pub(super) fn has_room_for_metadata(&self) -> bool {
        self.has_room(self.metadata_reserve(0))
    }

    /// Whether `blocks` can be taken, beside everything that buffered tails and metadata may need.
    pub(super) fn has_room(&self, blocks: u64) -> bool {
        let pending = self.tails.len() as u64 + self.metadata_reserve(self.progress.operations + 1);
        let mut pool = self.pool.lock();
        pool.kept = blocks.saturating_add(pending);
        pool.allocator.free() >= pool.kept && !pool.metadata.map.is_scattered()
    }

    /// Whether `blocks` can be taken at once, and `operations` done, before a commit.
    pub(super) fn has_room_after(&self, blocks: u64, operations: u64) -> bool {
        let pending =
            self.tails.len() as u64 + self.metadata_reserve(self.progress.operations + operations);
        let mut pool = self.pool.lock();
        pool.kept = blocks.saturating_add(pending);
        pool.allocator.free() >= pool.kept
    }

    /// Called before an operation that grows changes anything: ensures `blocks` free ones. If they
    /// are short, here or in the store below, it commits, which frees what was deleted since the
    /// last commit.
    pub(super) fn make_room(&mut self, blocks: u64) -> Result<()> {
        self.find_room(blocks)?;
        self.progress.operations += 1;
        Ok(())
    }

    /// Finds room for `blocks` that operations will take later. A commit may come between them, and
    /// metadata may take another run of blocks with it. A block that is written in parts waits as a
    /// tail meanwhile, which counts as one more.
    pub(super) fn promise_room(&mut self, blocks: u64) -> Result<()> {
        let growth = {
            let pool = self.pool.lock();
            pool.metadata.map.growth(pool.allocator.free())
        };
        self.find_room(blocks.saturating_add(growth + 1))
    }

    /// Finds room for an operation that takes `blocks`, by every means.
    pub(super) fn find_room(&mut self, blocks: u64) -> Result<()> {
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
            self.merge_for(wanted)?;
        }
        if !self.has_room(wanted) {
            return Err(self.pool.lock().full());
        }
        // Refused while that is still possible: accepted data must be stored.
        let mut has_room = self.store_has_room(blocks)?;
        if !has_room && self.commit_frees() {
            self.commit()?;
            has_room = self.store_has_room(blocks)?;
        }
        if !has_room {
            return Err(store_full());
        }
        Ok(())
    }

    /// Whether a commit may free something.
    fn commit_frees(&self) -> bool {
        self.progress.operations > 0 || self.pool.lock().allocator.deferred() > 0
    }

    /// Whether the store below has space for `blocks` more, and for deferred writes.
    fn store_has_room(&self, blocks: u64) -> Result<bool> {
        let waits = self.tails.len() as u64 + self.metadata_reserve(self.progress.operations + 1);
        let room = self.pool.lock().blocks()?.room()?;
        Ok(room.is_none_or(|room| room >= blocks.saturating_add(waits)))
    }

    /// Called before an operation that frees or only renames changes anything. It never refuses,
    /// but commits when metadata could run out of blocks, so that metadata can reuse its own.
    pub(super) fn make_way(&mut self) -> Result<()> {
        if self.progress.operations > 0 && !self.has_room(0) {
            self.commit()?;
        }
        self.progress.operations += 1;
        self.cleaning.removals += 1;
        (self.cleaning.removed, self.cleaning.mergeable, self.cleaning.unmerged) =
            (true, true, true);
        Ok(())
    }

    /// Called before an operation that creates nothing, but may lengthen records, changes anything.
    /// It may use half of the reserve, and leaves the rest to deletions.
    pub(super) fn make_change(&mut self) -> Result<()> {
        let kept = self.kept_back() / 2;
        if self.progress.operations > 0 && !self.has_room(kept) {
            self.commit()?;
        }
        if !self.has_room(kept) && self.could_shrink() {
            self.shrink_metadata()?;
        }
        if !self.has_room(kept) {
            return Err(self.pool.lock().full());
        }
        self.progress.operations += 1;
        Ok(())
    }

    /// Called before a packed tail is rewritten: it moves to another block, and the next commit
    /// frees the old one. Existing data must stay writable on a full volume, so this too may use
    /// half of the reserve.
    pub(super) fn make_rewrite(&mut self) -> Result<()> {
        let kept = self.kept_back() / 2 + 1;
        if self.commit_frees() && (!self.has_room(kept) || !self.store_takes_one()?) {
            self.commit()?;
        }
        if !self.has_room(kept) && self.could_shrink() {
            self.shrink_metadata()?;
        }
        if !self.has_room(kept) {
            return Err(self.pool.lock().full());
        }
        if !self.store_takes_one()? {
            return Err(store_full());
        }
        self.progress.operations += 1;
        Ok(())
    }

    /// Whether the store below has space for one block more, and for the buffered tails.
    fn store_takes_one(&self) -> Result<bool> {
        let waits = self.tails.len() as u64 + self.metadata_reserve(0) / 2;
        let room = self.pool.lock().blocks()?.room()?;
        Ok(room.is_none_or(|room| room > waits))
    }

    /// The least capacity that keeps all existing data, and lets it be removed.
    pub(super) fn least_capacity(&self) -> u64 {
        let kept = self.tails.len() as u64 + self.kept_back() + self.metadata_reserve(1);
        self.pool.lock().allocator.used() + kept
    }

    /// Existing data may exceed the capacity if somebody restored an older limit. Then the volume
    /// is full, but its data can be read and removed.
    pub(super) fn allow_what_is_there(&self) {
        // One less than a new block would need.
        let least = self.least_capacity().saturating_sub(1);
        let mut pool = self.pool.lock();
        if pool.allocator.capacity() < least {
            let ids = pool.ids;
            pool.allocator.set_capacity(least.min(ids));
        }
    }

    /// Answers from memory: counts and fetches nothing.
    pub(super) fn usage(&self) -> Result<Usage> {
        let buffered = self.tails.bytes().div_ceil(self.block_bytes) as u64;
        // As `make_room` reckons, right after a commit.
        let reserved = buffered + self.kept_back() + self.metadata_reserve(1);
        let mut pool = self.pool.lock();
        let unused = pool.allocator.capacity().saturating_sub(pool.allocator.used());
        let free = pool.room_with_unwanted(unused)?;
        let block_bytes = self.block_bytes as u64;
        Ok(Usage {
            files: self.counters.files,
            directories: self.counters.directories,
            logical_bytes: self.counters.logical_bytes,
            data_blocks: pool.data_blocks() + buffered,
            metadata_blocks: pool.metadata.mapped_blocks(),
            free_blocks: to_be_had(free.saturating_sub(reserved), block_bytes),
            unused_blocks: unused.saturating_sub(reserved),
            capacity_blocks: pool.allocator.capacity(),
            block_bytes,
            commits_evenly: pool.blocks()?.commits_evenly(),
        })
    }
}

/// How many free blocks to report as available: those that can be set aside at once, which takes
/// some for metadata. Writing them one by one yields a few more.
fn to_be_had(free: u64, block_bytes: u64) -> u64 {
    let whole = u128::from(free.saturating_sub(2)) * u128::from(block_bytes);
    (whole / u128::from(block_bytes + UNWRITTEN_BYTES)) as u64
}

fn store_full() -> Error {
    Error::Full("the store has no space left; free some where the volume is".into())
}
