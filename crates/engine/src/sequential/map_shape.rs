//! The form of a buffer map (§4.1, level index): a tree with one leaf per bucket, built from the
//! leaves up (§5.1, bottom-up buffer map construction). So one flush writes a node and the last of
//! its children.

/// The number of nodes of a buffer map at each height. Height 0 is the leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapShape {
    fan_out: u64,
    counts: Vec<u64>,
}

/// A node of a buffer map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeAt {
    /// 0 for a leaf.
    pub height: usize,
    /// Its number at that height, from the lowest address.
    pub index: u64,
}

impl MapShape {
    /// The map of `leaves` buckets.
    pub fn new(leaves: u64, fan_out: u64) -> Self {
        let mut counts = vec![leaves];
        while let Some(&below) = counts.last().filter(|&&below| below > 1) {
            counts.push(below.div_ceil(fan_out));
        }
        Self { fan_out, counts }
    }

    /// Children of a full inner node.
    pub fn fan_out(&self) -> u64 {
        self.fan_out
    }

    /// Leaves.
    pub fn leaves(&self) -> u64 {
        self.counts[0]
    }

    /// The height of the root; 0 for a single bucket.
    pub fn top(&self) -> usize {
        self.counts.len() - 1
    }

    /// The root.
    pub fn root(&self) -> NodeAt {
        NodeAt { height: self.top(), index: 0 }
    }

    /// Inner nodes.
    pub fn inner_nodes(&self) -> u64 {
        self.counts[1..].iter().sum()
    }

    /// The place of an inner node among the inner nodes: height by height, so that neighbours are
    /// adjacent.
    pub fn inner_place(&self, node: NodeAt) -> u64 {
        self.counts[1..node.height].iter().sum::<u64>() + node.index
    }

    /// The inner node at such a place.
    pub fn node_at(&self, place: u64) -> NodeAt {
        let (mut height, mut index) = (1, place);
        while height < self.top() && index >= self.counts[height] {
            index -= self.counts[height];
            height += 1;
        }
        NodeAt { height, index }
    }

    /// The number of children of a complete inner node.
    pub fn children(&self, node: NodeAt) -> u64 {
        let from = node.index * self.fan_out;
        self.counts[node.height - 1].min(from + self.fan_out) - from
    }

    /// The ancestor of a leaf at a height.
    pub fn ancestor(&self, leaf: u64, height: usize) -> NodeAt {
        let index = (0..height).fold(leaf, |index, _| index / self.fan_out);
        NodeAt { height, index }
    }

    /// The leaf that completes a node.
    pub fn last_leaf(&self, node: NodeAt) -> u64 {
        let beyond = (0..node.height).fold(node.index + 1, |end, _| end * self.fan_out);
        beyond.min(self.leaves()) - 1
    }

    /// The inner nodes that this leaf completes, from the lowest up.
    pub fn closed_by(&self, leaf: u64) -> impl Iterator<Item = NodeAt> + use<'_> {
        let ancestors = (1..=self.top()).map(move |height| self.ancestor(leaf, height));
        ancestors.take_while(move |&node| self.last_leaf(node) == leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_node_is_closed_once_after_its_children() {
        for fan_out in 2..6 {
            for leaves in 1..200 {
                let shape = MapShape::new(leaves, fan_out);
                let mut closed: BTreeSet<NodeAt> = BTreeSet::new();
                for leaf in 0..leaves {
                    closed.insert(NodeAt { height: 0, index: leaf });
                    for node in shape.closed_by(leaf) {
                        let from = node.index * fan_out;
                        for index in from..from + shape.children(node) {
                            assert!(closed.contains(&NodeAt { height: node.height - 1, index }));
                        }
                        assert!(closed.insert(node), "{node:?} closed twice");
                    }
                }
                assert!(closed.contains(&shape.root()));
                assert_eq!(closed.len() as u64, leaves + shape.inner_nodes());
                let inner = closed.iter().filter(|node| node.height > 0);
                for &node in inner.clone() {
                    assert_eq!(shape.node_at(shape.inner_place(node)), node);
                }
                let places: BTreeSet<u64> = inner.map(|&node| shape.inner_place(node)).collect();
                assert_eq!(places, (0..shape.inner_nodes()).collect());
            }
        }
    }
}
