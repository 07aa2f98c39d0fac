//! The union of the paths of one batch: each bucket once, parents before children.

use crate::{BucketId, Label, Leaf, Level};

/// "No node", in place of a node index.
pub const NONE: u32 = u32::MAX;

/// One bucket of the union.
#[derive(Clone, Copy, Debug)]
pub struct PathBucket {
    /// The bucket.
    pub bucket: BucketId,
    /// The node above, [`NONE`] for the root.
    pub parent: u32,
    /// Whether this batch writes the bucket back.
    pub evict: bool,
}

/// The union of some paths, ascending by bucket.
#[derive(Default)]
pub struct PathUnion {
    depth: u32,
    nodes: Vec<PathBucket>,
    /// The distinct leaves, ascending.
    leaves: Vec<u64>,
    /// The node of each leaf at each level: `leaf index * (depth + 1) + level`.
    node_of: Vec<u32>,
}

impl PathUnion {
    /// Builds the union of these paths; those with `true` are written back.
    pub fn build(&mut self, paths: &mut [(Leaf, bool)], depth: Level) {
        self.depth = depth.0;
        self.nodes.clear();
        self.leaves.clear();
        paths.sort_unstable();
        self.leaves.extend(paths.iter().map(|(leaf, _)| leaf.0));
        self.leaves.dedup();
        let levels = depth.0 as usize + 1;
        self.node_of.clear();
        self.node_of.resize(self.leaves.len() * levels, NONE);
        for level in 0..=depth.0 {
            self.add_level(Level(level), depth);
        }
        for &(leaf, evict) in paths.iter().filter(|(_, evict)| *evict) {
            let at = self.leaves.binary_search(&leaf.0).unwrap_or(0);
            for &node in &self.node_of[at * levels..(at + 1) * levels] {
                self.nodes[node as usize].evict |= evict;
            }
        }
    }

    fn add_level(&mut self, level: Level, depth: Level) {
        let levels = depth.0 as usize + 1;
        for (index, &leaf) in self.leaves.iter().enumerate() {
            let bucket = Leaf(leaf).bucket_at(level, depth);
            let last = self.nodes.last().map(|node| node.bucket);
            if last != Some(bucket) {
                let parent = match level.0 {
                    0 => NONE,
                    above => self.node_of[index * levels + above as usize - 1],
                };
                self.nodes.push(PathBucket { bucket, parent, evict: false });
            }
            self.node_of[index * levels + level.0 as usize] = self.nodes.len() as u32 - 1;
        }
    }

    /// The buckets of the union, ascending, so parents before children.
    pub fn nodes(&self) -> &[PathBucket] {
        &self.nodes
    }

    /// The deepest node on the path of `label` that is written back; `None` only when no path is
    /// written back.
    pub fn deepest(&self, label: Label) -> Option<u32> {
        let leaf = label.leaf(Level(self.depth)).0;
        // The neighbours in sorted order share the longest prefix.
        let above = self.leaves.partition_point(|&other| other < leaf);
        let (mut best, mut best_level) = (0, 0);
        for index in [above.wrapping_sub(1), above] {
            if let Some(&other) = self.leaves.get(index) {
                let differing = 64 - (leaf ^ other).leading_zeros();
                let level = self.depth - differing;
                if level >= best_level {
                    (best, best_level) = (index, level);
                }
            }
        }
        let levels = self.depth as usize + 1;
        let mut node = *self.node_of.get(best * levels + best_level as usize)?;
        while node != NONE && !self.nodes[node as usize].evict {
            node = self.nodes[node as usize].parent;
        }
        (node != NONE).then_some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_deepest_node_is_the_longest_shared_prefix(
            depth in 0u32..9,
            raw in proptest::collection::vec((any::<u64>(), any::<bool>()), 1..20),
            label in any::<u64>(),
        ) {
            let depth = Level(depth);
            let leaf_of = |x: u64| Label(x).leaf(depth);
            let mut paths: Vec<_> = raw.iter().map(|&(x, e)| (leaf_of(x), e)).collect();
            let mut union = PathUnion::default();
            union.build(&mut paths, depth);
            // Ascending, distinct, parents present.
            let buckets: Vec<_> = union.nodes().iter().map(|n| n.bucket).collect();
            prop_assert!(buckets.windows(2).all(|w| w[0] < w[1]));
            for node in union.nodes() {
                let parent = (node.parent != NONE).then(|| union.nodes()[node.parent as usize].bucket);
                prop_assert_eq!(parent, node.bucket.parent());
                let expected = paths.iter().any(|&(leaf, e)| {
                    e && leaf.bucket_at(node.bucket.level(), depth) == node.bucket
                });
                prop_assert_eq!(node.evict, expected);
            }
            let expected = (0..=depth.0).rev().map(|level| Label(label).bucket_at(Level(level)))
                .find(|bucket| union.nodes().iter().any(|n| n.bucket == *bucket && n.evict));
            let found = union.deepest(Label(label)).map(|n| union.nodes()[n as usize].bucket);
            prop_assert_eq!(found, expected);
        }
    }
}
