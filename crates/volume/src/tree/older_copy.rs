//! Lost blocks from an older copy of the same volume.
//!
//! A copy is a volume, opened like any other: it proves each of its blocks as ever, and its map has
//! the count of each block's accesses. A block there is the version that is lost here if, and only
//! if, that count is the one at which it was lost, and the copy is a state that led to this one.
//! Two histories that parted reach the same counts with different content; the table of computers
//! tells them apart. So nothing older and nothing of another history is taken, and it does not
//! matter in which bucket the copy has a block.
//!
//! What is put back goes into the rounds of a repair, each block into that of its path. So the
//! volume's store sees a repair and nothing else. The copy's sees the paths that are read there.

use super::ledger::TreeLedger;
use super::verify::verify;
use crate::scrub::{Inspection, Reached};
use crate::{BlockSpace, Result};
use oblivio_engine::tree::{TreeOram, current_labels, reverse_lexicographic};
use oblivio_engine::{Action, BlockId, BlockOp, Leaf, Level};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The lost blocks of a volume, all of which is stored, that a copy has in the version that is
/// lost. The copy is as a commit left it: what a replay made again may differ from what the session
/// that went on made. All is read without a copy, too: the store does not see what there is of one.
///
/// # Errors
/// Those of the stores.
pub fn found_in(
    volume: &mut TreeLedger,
    copy: Option<&TreeLedger>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<u64>> {
    let TreeLedger { store, slab, engine, trust, .. } = volume;
    let mut reached = |at: Reached| {
        progress(at.done, at.total);
        ControlFlow::Continue(())
    };
    let mut ignore = |_| {};
    let everything = Inspection::of_all(&mut reached, &mut ignore);
    let (found, versions) = verify(&**store, slab, engine, everything)?;
    let versions = versions.unwrap_or_default();
    let Some(copy) = copy.filter(|copy| trust.leads_on_from(&copy.trust)) else {
        return Ok(Vec::new());
    };
    let there = &copy.engine;
    let (now, then) = (current_labels(engine), current_labels(there));
    let is_same = |id: &u64| {
        let block = BlockId(*id);
        let lost = versions.get(id).copied().or_else(|| now.version(block));
        there.is_live(block) && lost.is_some() && then.version(block) == lost
    };
    Ok(found.lost.into_iter().flatten().filter(is_same).collect())
}

/// The blocks of a copy that are put back.
pub struct OlderCopy<'a> {
    copy: &'a mut dyn BlockSpace,
    wanted: Vec<u64>,
    /// Those that are still to come, by the leaf of their path in a tree of this depth.
    by_leaf: BTreeMap<Leaf, Vec<u64>>,
    depth: Option<Level>,
    given: Vec<u64>,
}

impl<'a> OlderCopy<'a> {
    /// All that [`found_in`] gave.
    pub fn new(copy: &'a mut dyn BlockSpace, ids: &[u64]) -> Self {
        let (by_leaf, depth) = (BTreeMap::new(), None);
        Self { copy, wanted: ids.to_vec(), by_leaf, depth, given: Vec::new() }
    }

    /// Those that belong on the next `paths` scheduled paths.
    ///
    /// # Errors
    /// Those of the copy. What it has lost itself is left out.
    pub fn blocks(&mut self, engine: &TreeOram, paths: u64) -> Result<Vec<(BlockId, Vec<u8>)>> {
        let (depth, first) = (engine.depth(), engine.evictions());
        if self.depth != Some(depth) {
            // Again, if the tree got another depth meanwhile.
            self.wanted.extend(std::mem::take(&mut self.by_leaf).into_values().flatten());
            let labels = current_labels(engine);
            for id in self.wanted.drain(..) {
                if let Some(leaf) = labels.leaf(BlockId(id), depth) {
                    self.by_leaf.entry(leaf).or_default().push(id);
                }
            }
            self.depth = Some(depth);
        }
        let leaves = (first..first + paths).map(|turn| reverse_lexicographic(turn, depth));
        let ids = leaves.filter_map(|leaf| self.by_leaf.remove(&leaf)).flatten();
        let ids: Vec<u64> = ids.collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let reads = ids.iter().map(|id| BlockOp { id: BlockId(*id), action: Action::Read });
        let outcomes = self.copy.access_each(reads.collect())?;
        let found =
            ids.iter().zip(outcomes).filter_map(|(id, outcome)| Some((*id, outcome.ok()??)));
        let found: Vec<_> = found.map(|(id, content)| (BlockId(id), content)).collect();
        self.given.extend(found.iter().map(|(id, _)| id.0));
        Ok(found)
    }

    /// The blocks that were put back.
    pub fn into_given(mut self) -> Vec<u64> {
        self.given.sort_unstable();
        self.given
    }
}
