//! The trace of operations on a block space that pads: the most that any of their kind and size may
//! need.
//!
//! An operation's need for blocks depends on what is in memory, on where a tail lies, on how the
//! metadata's B-trees split. So each operation declares its most, and the space pads it to that. A
//! read of a hole, a shared tail or a cached block costs as much as a fetch. Commits write tails
//! and metadata, in proportion to the operations since the last one; tails are also placed after a
//! number of operations that may have left one. That these bounds suffice is measured, not proved:
//! a greater need shows a power of two times as much.
//!
//! This holds while memory holds all metadata; fetches of it show, in powers of two.

use super::pool::Pool;
use super::state::State;
use crate::{Least, Result};

/// The most metadata blocks that a commit writes: a constant, and a share for each operation.
const COMMIT_WRITES: u64 = 28;
const OPERATION_WRITES: u64 = 2;
/// Bytes of names, targets and values that an operation may write without a further block.
const SMALL_BYTES: usize = 512;
/// The most blocks that the end of a session writes, and discards.
const END_WRITES: u64 = 32;
pub(super) const END_DISCARDS: u64 = 64;

impl Pool {
    /// Pads the work so far to what was declared.
    pub(super) fn bring_up(&mut self) -> Result<()> {
        let least = std::mem::take(&mut self.least);
        self.blocks()?.bring_up(least)
    }
}

/// Batches for `reads` reads.
fn batches(reads: u64) -> u64 {
    reads.div_ceil(Least::BATCH as u64)
}

impl State {
    fn expect(&mut self, least: Least) {
        let mut pool = self.pool.lock();
        let sum = &mut pool.least;
        sum.writes += least.writes;
        sum.reads += least.reads;
        sum.discards += least.discards;
    }

    /// The most blocks that `len` bytes touch.
    fn most_touched(&self, len: usize) -> u64 {
        match len {
            0 => 0,
            _ => ((len - 1).div_ceil(self.block_bytes) + 1) as u64,
        }
    }

    /// Declares a read with parts of these lengths.
    pub(super) fn expect_read(&mut self, lens: impl Iterator<Item = usize>) {
        let touched = lens.map(|len| self.most_touched(len)).sum();
        self.expect(Least { reads: batches(touched), ..Least::default() });
    }

    /// Declares a write of `len` bytes: their blocks, that of the old end, and the read of a tail.
    pub(super) fn expect_write(&mut self, len: usize) {
        let writes = self.most_touched(len) + 1;
        self.expect(Least { writes, reads: 1, ..Least::default() });
    }

    /// Declares writes at both ends of a range, which may lie in tails.
    pub(super) fn expect_edges(&mut self) {
        self.expect(Least { writes: 2, reads: 2, ..Least::default() });
    }

    /// Declares a name, target or value of `len` bytes: a long one takes blocks.
    pub(super) fn expect_long(&mut self, len: usize) {
        if len > SMALL_BYTES {
            // The database rounds the pages of a long value up to a power of two.
            let pages = 2 * len.next_power_of_two();
            self.owed.long += pages.div_ceil(self.block_bytes) as u64 + 1;
        }
    }

    /// Counts freed blocks.
    pub(super) fn freed(&mut self, blocks: u64) {
        self.owed.freed += blocks;
    }

    /// Counts an operation that may have left a tail; says whether to place all tails.
    pub(super) fn left_a_tail(&mut self) -> bool {
        self.owed.unplaced += 1;
        self.owed.unplaced >= self.tails.most(self.block_bytes)
    }

    /// Declares the placing of all tails: for each operation that may have left one, a block, and
    /// the read of a shared one.
    pub(super) fn expect_tails(&mut self) {
        let unplaced = std::mem::take(&mut self.owed.unplaced);
        self.expect(Least { writes: unplaced, reads: batches(unplaced), ..Least::default() });
    }

    /// Declares a commit of changed metadata.
    pub(super) fn expect_commit(&mut self) {
        let long = std::mem::take(&mut self.owed.long);
        let writes = COMMIT_WRITES + OPERATION_WRITES * self.progress.operations + long;
        self.expect(Least { writes, ..Least::default() });
    }

    /// Declares what a commit of `operations` freed. A tail may leave two shared blocks.
    pub(super) fn expect_freed(&mut self, operations: u64) {
        let discards = std::mem::take(&mut self.owed.freed) + 2 * operations;
        self.expect(Least { discards, ..Least::default() });
    }

    /// Declares the closing of the database.
    pub(super) fn expect_end(&mut self) {
        self.expect(Least { writes: END_WRITES, ..Least::default() });
    }
}
