//! One batch while it is served.

use super::plb::PlbEntry;
use super::position_map::Counts;
use crate::{BlockAnswer, BlockOp};
use std::collections::BTreeMap;

/// Why a path is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// For a data block that operations are for.
    Data {
        /// Its address.
        id: u64,
        /// Where it was and where it goes.
        counts: Counts,
        /// Whether it is absent as far as the caller can tell.
        absent: bool,
    },
    /// For a position-map block that goes to the PLB.
    MapFetch {
        /// Its address.
        id: u64,
        /// Where it was and where it goes.
        counts: Counts,
    },
    /// For a position-map block that stays in its tree (recursion without PLB).
    MapInPlace {
        /// Its address.
        id: u64,
        /// Where it was and where it goes.
        counts: Counts,
    },
    /// For a block whose group's counters rolled over earlier (Freecursive §5.2.2).
    Remap {
        /// Its address.
        id: u64,
        /// Where it was and where it goes.
        counts: Counts,
    },
    /// For nothing: the path is random, so that the count of paths tells nothing.
    Idle,
}

/// What a replay after a crash needs: with the engine's state as it was, the same intent reads
/// the same paths again, in the same order, and remaps the same blocks. One without ids is a round
/// of maintenance; its seed is how many paths that had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The randomness of the batch.
    pub seed: u64,
    /// The blocks, one for each operation.
    pub ids: Vec<u64>,
}

/// A batch under way.
pub struct Batch {
    pub ops: Vec<BlockOp>,
    pub intent: Intent,
    /// Scheduled paths beyond those that are due.
    pub extra: u64,
    /// Draws made so far from the intent's seed.
    pub draws: u64,
    /// Why each path of the current round is read.
    pub targets: Vec<Target>,
    /// The access of the current round that serves each operation (data round only).
    pub access_of_op: Vec<u32>,
    /// Position-map blocks that this batch uses, by address.
    pub working: BTreeMap<u64, PlbEntry>,
    /// Counts that an in-place map round found for the next round, by address.
    pub next_counts: BTreeMap<u64, Counts>,
    pub answers: Vec<BlockAnswer>,
}

impl Batch {
    /// A batch that has not begun.
    pub fn new(ops: Vec<BlockOp>, seed: u64) -> Self {
        let ids = ops.iter().map(|op| op.id.0).collect();
        Self {
            answers: Vec::with_capacity(ops.len()),
            ops,
            intent: Intent { seed, ids },
            extra: 0,
            draws: 0,
            targets: Vec::new(),
            access_of_op: Vec::new(),
            working: BTreeMap::new(),
            next_counts: BTreeMap::new(),
        }
    }
}
