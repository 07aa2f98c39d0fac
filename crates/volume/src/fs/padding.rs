//! What operations show where the block space pads: as much as any of their kind and size may need.
//!
//! How many blocks an operation needs follows from what is in memory, from where a tail lies, from
//! how the metadata's B-trees split. So each says what it may need at the most, and the space
//! brings it up to that. Reading costs as much for a hole, a shared tail or a block in memory as
//! for a block that is fetched. Tails and metadata are written at a commit, which takes so much for
//! each operation since the one before; tails also after so many operations that may have left one.
//! That it is enough is measured, not proved: what needs more shows a power of two times as much.
//!
//! This holds as long as memory holds all metadata; what has to be fetched of it shows, in powers
//! of two.

use super::pool::Pool;
use super::state::State;
use crate::{Least, Result};

/// Blocks of metadata that a commit writes at the most: some, and so many for each operation.
const COMMIT_WRITES: u64 = 28;
const OPERATION_WRITES: u64 = 2;
/// Bytes of names, targets and values that an operation may write without another block.
const SMALL_BYTES: usize = 512;
/// Blocks that the end of a session writes at the most, and gives back.
const END_WRITES: u64 = 32;
pub(super) const END_DISCARDS: u64 = 64;

/// What has to be brought up with the next commit.
#[derive(Default)]
pub(super) struct Owed {
    /// Whether the space pads.
    pub(super) pads: bool,
    /// Operations since tails were placed that may have left one.
    unplaced: u64,
    /// Blocks that were let go since the last commit.
    freed: u64,
    /// Blocks more for long names and values.
    long: u64,
}

impl Owed {
    pub(super) fn new(pads: bool) -> Self {
        Self { pads, ..Self::default() }
    }
}

impl Pool {
    /// Brings what was done up to what was said.
    pub(super) fn bring_up(&mut self) -> Result<()> {
        let least = std::mem::take(&mut self.least);
        self.blocks()?.bring_up(least)
    }
}

/// Batches for so many reads.
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

    /// The most blocks that a range of so many bytes touches.
    fn most_touched(&self, len: usize) -> u64 {
        match len {
            0 => 0,
            _ => ((len - 1).div_ceil(self.block_bytes) + 1) as u64,
        }
    }

    /// So many bytes are answered, in parts of these lengths.
    pub(super) fn expect_read(&mut self, lens: impl Iterator<Item = usize>) {
        let touched = lens.map(|len| self.most_touched(len)).sum();
        self.expect(Least { reads: batches(touched), ..Least::default() });
    }

    /// So many bytes are written: their blocks, that of the old end, and the read of a tail.
    pub(super) fn expect_write(&mut self, len: usize) {
        let writes = self.most_touched(len) + 1;
        self.expect(Least { writes, reads: 1, ..Least::default() });
    }

    /// Both ends of a range are written, which may lie in tails.
    pub(super) fn expect_edges(&mut self) {
        self.expect(Least { writes: 2, reads: 2, ..Least::default() });
    }

    /// A name, a target or a value of so many bytes is kept: beyond a few it takes blocks.
    pub(super) fn expect_long(&mut self, len: usize) {
        if len > SMALL_BYTES {
            // The database rounds the pages of a long value up to a power of two.
            let pages = 2 * len.next_power_of_two();
            self.owed.long += pages.div_ceil(self.block_bytes) as u64 + 1;
        }
    }

    /// So many blocks were let go.
    pub(super) fn freed(&mut self, blocks: u64) {
        self.owed.freed += blocks;
    }

    /// Counts an operation that may have left a tail; whether all tails should be placed.
    pub(super) fn left_a_tail(&mut self) -> bool {
        self.owed.unplaced += 1;
        self.owed.unplaced >= self.tails.most(self.block_bytes)
    }

    /// All tails are placed: for each operation that may have left one, a block, and one that it
    /// shared.
    pub(super) fn expect_tails(&mut self) {
        let unplaced = std::mem::take(&mut self.owed.unplaced);
        self.expect(Least { writes: unplaced, reads: batches(unplaced), ..Least::default() });
    }

    /// A commit of changed metadata.
    pub(super) fn expect_commit(&mut self) {
        let long = std::mem::take(&mut self.owed.long);
        let writes = COMMIT_WRITES + OPERATION_WRITES * self.operations + long;
        self.expect(Least { writes, ..Least::default() });
    }

    /// What the commit of so many operations let go. A tail may leave two shared blocks.
    pub(super) fn expect_freed(&mut self, operations: u64) {
        let discards = std::mem::take(&mut self.owed.freed) + 2 * operations;
        self.expect(Least { discards, ..Least::default() });
    }

    /// The database is closed.
    pub(super) fn expect_end(&mut self) {
        self.expect(Least { writes: END_WRITES, ..Least::default() });
    }
}
