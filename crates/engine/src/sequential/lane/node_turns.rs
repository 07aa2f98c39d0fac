//! When the inner nodes of a lane's maps are written.
//!
//! A bucket may complete several nodes at once, or none. Each flush has one page for a node in each
//! level. So nodes wait for their page, the first to be complete first. Which flush that is follows
//! from the form of the map alone.

use super::LaneLayout;
use crate::Level;
use crate::sequential::map_shape::{MapShape, NodeAt};
use std::collections::VecDeque;

/// The least children of an inner node in a lane. With two, a map may have more inner nodes than
/// leaves, and then a flush would need more than one page.
pub(super) const LEAST_FAN_OUT: u64 = 3;

/// The turn of an inner node, in buckets from the begin of its generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeTurn {
    /// The bucket that completes it.
    pub complete: u64,
    /// The flush that has its page.
    pub written: u64,
}

/// The turns of the inner nodes of a level's maps, by place.
pub(super) fn node_turns(lane: &LaneLayout, level: Level) -> Vec<NodeTurn> {
    turns(lane.shape(level), lane.schedule().flushes_of(level)).0
}

/// The most nodes of a level that wait after a flush.
pub(super) fn most_waiting(lane: &LaneLayout, level: Level) -> usize {
    turns(lane.shape(level), lane.schedule().flushes_of(level)).1
}

/// Those of maps of this form, of which one begins after every `period` flushes; and how many nodes
/// wait at most after a flush.
fn turns(shape: &MapShape, period: u64) -> (Vec<NodeTurn>, usize) {
    let mut turns = vec![NodeTurn::default(); shape.inner_nodes() as usize];
    let (mut waiting, mut most) = (VecDeque::<(u64, NodeAt)>::new(), 0);
    // The nodes that a generation leaves to the next one are the same from the second on. The
    // first has as many or fewer, so that it may leave pages out.
    for flush in 0..3 * period {
        let (generation, index) = (flush / period, flush % period);
        if index < shape.leaves() {
            waiting.extend(shape.closed_by(index).map(|node| (generation, node)));
        }
        let Some((of, node)) = waiting.pop_front() else { continue };
        most = most.max(waiting.len());
        if of == 1 {
            let turn = NodeTurn { complete: shape.last_leaf(node), written: flush - period };
            turns[shape.inner_place(node) as usize] = turn;
        }
    }
    (turns, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_node_has_a_page_of_its_own_soon_after_it_is_complete() {
        let mut late = 0;
        for fan_out in LEAST_FAN_OUT..7 {
            for leaves in (1..70).chain([124, 125, 126, 243, 256, 257]) {
                for period in [leaves, leaves + 1, leaves + 7] {
                    let shape = MapShape::new(leaves, fan_out);
                    let (turns, most) = turns(&shape, period);
                    assert_eq!(turns.len() as u64, shape.inner_nodes());
                    // Three generations, one after the other.
                    let pages: Vec<u64> = (0..3)
                        .flat_map(|at| turns.iter().map(move |turn| at * period + turn.written))
                        .collect();
                    assert_eq!(pages.iter().collect::<BTreeSet<_>>().len(), pages.len());
                    for turn in &turns {
                        let waits = turn.written - turn.complete;
                        assert!(waits as usize <= most, "{fan_out} {leaves} {period} {turn:?}");
                        late = late.max(waits);
                    }
                }
            }
        }
        assert!(late > 1, "some nodes wait");
    }
}
