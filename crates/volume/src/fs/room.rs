//! The room that is kept free, so that what is deleted works on a full volume, and what is accepted
//! can be committed.

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

    /// Whether so many blocks can be taken at once, and so many operations done, before a commit.
    pub(super) fn has_room_after(&self, blocks: u64, operations: u64) -> bool {
        let pending = self.tails.len() as u64 + self.metadata_reserve(self.operations + operations);
        self.pool.lock().allocator.free() >= blocks.saturating_add(pending)
    }

    /// Called before anything is changed by an operation that grows: makes sure of `blocks` free
    /// ones. When they are short, here or in the store below, commits, which frees what was deleted
    /// since the last time.
    pub(super) fn make_room(&mut self, blocks: u64) -> Result<()> {
        self.find_room(blocks)?;
        self.operations += 1;
        Ok(())
    }

    /// Whether an operation that takes so many blocks would find them, with all that is done to
    /// find them.
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
        // Refused while it can still be: what was accepted must be stored.
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
        (self.removed, self.mergeable, self.unmerged) = (true, true, true);
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
            return Err(self.pool.lock().full());
        }
        self.operations += 1;
        Ok(())
    }

    /// Called before a tail is written anew that shares a block: it moves to another one, and the
    /// old one is free with the next commit. What is there must stay writable on a full volume, so
    /// this too may use half of what is kept back.
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
        self.operations += 1;
        Ok(())
    }

    /// Whether the store below has space for one block more, and for the tails that wait.
    fn store_takes_one(&self) -> Result<bool> {
        let waits = self.tails.len() as u64 + self.metadata_reserve(0) / 2;
        let room = self.pool.lock().blocks()?.room()?;
        Ok(room.is_none_or(|room| room > waits))
    }

    /// The least capacity with which all that is there can stay, and be removed.
    pub(super) fn least_capacity(&self) -> u64 {
        let kept = self.tails.len() as u64 + self.kept_back() + self.metadata_reserve(1);
        self.pool.lock().allocator.used() + kept
    }

    /// Where more is there than the capacity allows, since somebody put an older limit back, the
    /// volume is full, and what is there can be read and removed all the same.
    pub(super) fn allow_what_is_there(&self) {
        // One less than what something new would take.
        let least = self.least_capacity().saturating_sub(1);
        let mut pool = self.pool.lock();
        if pool.allocator.capacity() < least {
            let ids = pool.ids;
            pool.allocator.set_capacity(least.min(ids));
        }
    }

    /// All of this is at hand: nothing is counted or fetched.
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
        })
    }
}

/// So many of the free blocks are told as available: all that can be set aside at once, which takes
/// some for metadata. Who writes them one by one gets a little more.
fn to_be_had(free: u64, block_bytes: u64) -> u64 {
    let whole = u128::from(free.saturating_sub(2)) * u128::from(block_bytes);
    (whole / u128::from(block_bytes + UNWRITTEN_BYTES)) as u64
}

fn store_full() -> Error {
    Error::Full("the store has no space left; free some where the volume is".into())
}
