//! Blocks that are known to be lost: a write of a part of one is refused.
//!
//! The write takes its turn all the same, so that the store sees nothing of it.

use oblivio_engine::{BlockOp, BlockOutcome};
use std::collections::HashSet;
use std::ops::Range;

/// The lost blocks that this session met and that nothing replaced since.
#[derive(Debug, Default)]
pub(crate) struct LostBlocks(HashSet<u64>);

impl LostBlocks {
    /// Notes what a batch said of its blocks. A lost one that waits for its replacement is none.
    pub fn note(
        &mut self,
        ids: &[u64],
        outcomes: &[BlockOutcome],
        is_replaced: impl Fn(u64) -> bool,
    ) {
        for (&id, outcome) in ids.iter().zip(outcomes) {
            match outcome {
                Ok(_) => self.0.remove(&id),
                Err(_) if is_replaced(id) => false,
                Err(_) => self.0.insert(id),
            };
        }
    }

    /// The first block of which these operations write a part though it is known to be lost. Those
    /// that they replace or remove are not lost any more.
    pub fn written_in_part(&mut self, ops: &[BlockOp], block_bytes: usize) -> Option<u64> {
        let mut first = None;
        for op in ops.iter().filter(|op| op.action.changes()) {
            if op.action.replaces(block_bytes) {
                self.0.remove(&op.id.0);
            } else if self.0.contains(&op.id.0) {
                first.get_or_insert(op.id.0);
            }
        }
        first
    }

    /// Forgets blocks that were removed.
    pub fn forget(&mut self, ids: &Range<u64>) {
        if !self.0.is_empty() {
            self.0.retain(|id| !ids.contains(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_engine::{Action, BlockId, Lost};

    fn op(id: u64, action: Action) -> BlockOp {
        BlockOp { id: BlockId(id), action }
    }

    #[test]
    fn a_lost_block_takes_no_part_until_it_is_replaced() {
        let mut lost = LostBlocks::default();
        lost.note(&[3, 4, 5], &[Err(Lost), Ok(None), Err(Lost)], |id| id == 5);
        let part = |id| op(id, Action::Patch { offset: 1, bytes: vec![7] });
        assert_eq!(lost.written_in_part(&[part(4), part(5), op(3, Action::Read)], 4), None);
        assert_eq!(lost.written_in_part(&[part(5), part(3)], 4), Some(3));
        let whole = op(3, Action::Patch { offset: 0, bytes: vec![7; 4] });
        assert_eq!(lost.written_in_part(&[whole, part(3)], 4), None);
        lost.note(&[3, 6], &[Err(Lost), Err(Lost)], |_| false);
        lost.forget(&(4..10));
        assert_eq!(lost.written_in_part(&[part(6), part(3)], 4), Some(3));
        lost.note(&[3], &[Ok(Some(vec![1; 4]))], |_| false);
        assert_eq!(lost.written_in_part(&[part(3)], 4), None);
    }
}
