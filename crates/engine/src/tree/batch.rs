//! The state of one batch.

use super::backend::PathAccess;
use super::plb::PlbEntry;
use super::position_map::CountChange;
use crate::{Address, BlockId, BlockOp, BlockOutcome};
use std::collections::BTreeMap;

/// The reason for reading a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathReason {
    /// For a data block of some operations.
    Data {
        /// The block.
        id: BlockId,
        /// Its old and new count.
        counts: CountChange,
        /// What there is of it.
        presence: Presence,
    },
    /// For a position-map block that goes to the PLB.
    MapFetch {
        /// Its address.
        id: Address,
        /// Its old and new count.
        counts: CountChange,
    },
    /// For a block whose group's counters rolled over earlier (Freecursive §5.2.2).
    Remap {
        /// Its address.
        id: Address,
        /// Its old and new count.
        counts: CountChange,
    },
    /// For nothing: the path is random, so the number of paths reveals nothing.
    Idle,
}

/// What there is of a data block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is in this round.
    Found,
    /// It does not exist.
    Absent,
    /// It exists, and the path of its label has it no more: what carried it was damaged.
    Lost,
}

/// The input of a replay after a crash. From the engine's old state, the same intent reads the same
/// paths in the same order and remaps the same blocks. An intent without ids is a round of
/// maintenance; its seed is the number of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The randomness of the batch.
    pub seed: u64,
    /// The blocks, one per operation.
    pub ids: Vec<BlockId>,
}

/// A batch under way.
pub struct Batch {
    pub ops: Vec<BlockOp>,
    pub intent: Intent,
    /// Lost blocks that a round of maintenance puts back, with their content.
    pub back: Vec<(BlockId, Vec<u8>)>,
    /// Scheduled paths beyond the due ones.
    pub extra: u64,
    /// Draws made so far from the intent's seed.
    pub draws: u64,
    /// The paths of the current round.
    pub plan: Vec<PathAccess>,
    /// The reason for each of them.
    pub targets: Vec<PathReason>,
    /// The access of the current round that serves each operation (data round only).
    pub access_of_op: Vec<u32>,
    /// Position-map blocks that this batch uses.
    pub working: BTreeMap<Address, PlbEntry>,
    pub outcomes: Vec<BlockOutcome>,
}

impl Batch {
    /// A batch that has not begun.
    pub fn new(ops: Vec<BlockOp>, seed: u64) -> Self {
        let ids = ops.iter().map(|op| op.id).collect();
        Self {
            outcomes: Vec::with_capacity(ops.len()),
            ops,
            intent: Intent { seed, ids },
            back: Vec::new(),
            extra: 0,
            draws: 0,
            plan: Vec::new(),
            targets: Vec::new(),
            access_of_op: Vec::new(),
            working: BTreeMap::new(),
        }
    }

    /// Plans the next round from nothing.
    pub fn clear_plan(&mut self) {
        self.plan.clear();
        self.targets.clear();
    }

    /// Adds a path to the round.
    pub fn plan(&mut self, target: PathReason, access: PathAccess) {
        self.targets.push(target);
        self.plan.push(access);
    }
}
