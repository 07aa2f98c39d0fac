//! Blocks that are known to be lost: a write of a part of one is refused.
//!
//! The write takes its turn all the same, so that the store sees nothing of it.

use super::ledger::{Core, Ledger};
use oblivio_engine::{BlockOp, BlockOutcome};
use std::collections::HashSet;
use std::ops::Range;

/// The lost blocks that this session met and that nothing replaced since.
#[derive(Debug, Default)]
pub(crate) struct LostBlocks(HashSet<u64>);

impl LostBlocks {
    /// Forgets blocks that were removed.
    pub fn forget(&mut self, ids: &Range<u64>) {
        if !self.0.is_empty() {
            self.0.retain(|id| !ids.contains(id));
        }
    }
}

impl<L: Ledger> Core<L> {
    /// Notes what a batch said of its blocks. A lost one that waits for its replacement is none.
    pub(crate) fn note_lost(&mut self, ids: &[u64], outcomes: &[BlockOutcome]) {
        let block_bytes = self.ledger.engine().block_bytes();
        for (&id, outcome) in ids.iter().zip(outcomes) {
            match outcome {
                Ok(_) => drop(self.lost.0.remove(&id)),
                Err(_) if self.waiting.deferred.replaces(id, block_bytes) => {}
                Err(_) => drop(self.lost.0.insert(id)),
            }
        }
    }

    /// The first block of which these operations write a part though it is known to be lost. Those
    /// that they replace or remove are not lost any more.
    pub(crate) fn written_in_part(&mut self, ops: &[BlockOp]) -> Option<u64> {
        let block_bytes = self.ledger.engine().block_bytes();
        let mut first = None;
        for op in ops.iter().filter(|op| op.action.changes()) {
            if op.action.replaces(block_bytes) {
                self.lost.0.remove(&op.id.0);
            } else if self.lost.0.contains(&op.id.0) {
                first.get_or_insert(op.id.0);
            }
        }
        first
    }
}
