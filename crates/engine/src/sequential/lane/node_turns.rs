//! When the inner nodes of a lane's maps are written.
//!
//! A bucket may complete several nodes at once, or none. Each flush has one page for a node in each
//! level. So nodes wait for a page of their own, which follows from their place in the map.
//!
//! A node at height k that is full is complete with a bucket before a multiple of F^k, for nodes of
//! F children. Its page comes k - 1 flushes later: those at height 1 have the flushes before
//! multiples of F, and those at height k the ones k - 2 behind them. The nodes that are not full
//! are all complete with the last bucket. Theirs come behind these, in the begin of the generation
//! that follows. So F must be twice the height of the map.

use crate::sequential::map_shape::{MapShape, NodeAt};

/// The turn of an inner node, in buckets from the begin of its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeTurn {
    /// The bucket that completes it.
    pub complete: u64,
    /// The flush that has its page.
    pub written: u64,
}

/// Whether each node of such a map has a page of its own.
pub(super) fn has_pages(shape: &MapShape) -> bool {
    most_waiting(shape) as u64 <= shape.fan_out()
}

/// The most nodes that wait for their page.
pub(super) fn most_waiting(shape: &MapShape) -> usize {
    2 * shape.top()
}

/// The turn of a node.
pub(super) fn node_turn(shape: &MapShape, node: NodeAt) -> NodeTurn {
    let (complete, height) = (shape.last_leaf(node), node.height as u64);
    let is_full = (0..height).try_fold(complete + 1, |leaves, _| {
        leaves.is_multiple_of(shape.fan_out()).then_some(leaves / shape.fan_out())
    });
    let behind = if is_full.is_some() { 0 } else { shape.top() as u64 };
    NodeTurn { complete, written: complete + behind + height - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_node_has_a_page_of_its_own_soon_after_it_is_complete() {
        let (mut late, mut deepest) = (0, 0);
        for fan_out in 2..9 {
            for leaves in (1..260).chain([728, 729, 730, 1295, 1296, 1297, 4095, 4096, 4097]) {
                let shape = MapShape::new(leaves, fan_out);
                if !has_pages(&shape) {
                    continue;
                }
                deepest = deepest.max(shape.top());
                for period in [leaves, leaves + 1, leaves + 7] {
                    // Three generations, one after the other.
                    let (mut pages, mut waiting) = (BTreeSet::new(), Vec::new());
                    for generation in 0..3 {
                        let nodes = (0..leaves).flat_map(|leaf| shape.closed_by(leaf));
                        for turn in nodes.map(|node| node_turn(&shape, node)) {
                            assert!(turn.written >= turn.complete);
                            late = late.max(turn.written - turn.complete);
                            let begin = generation * period;
                            assert!(pages.insert(begin + turn.written), "{shape:?} {period}");
                            waiting.push((begin + turn.complete, begin + turn.written));
                        }
                    }
                    for at in 0..3 * period {
                        let waits = waiting.iter().filter(|it| it.0 <= at && at < it.1).count();
                        assert!(waits <= most_waiting(&shape), "{shape:?} {period}");
                    }
                }
            }
        }
        assert!(late > 2 && deepest > 2, "{late} {deepest}");
    }
}
