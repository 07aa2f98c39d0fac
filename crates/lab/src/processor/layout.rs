//! Where the buckets of a tree are in memory: subtrees in rows, or heap order.
//!
//! "Design Space Exploration and Optimization of Path Oblivious RAM in Secure Processors" (Ren et
//! al., ISCA 2013, the paper's reference 26) puts a subtree into a row of all channels, so that a
//! path opens few rows.

use super::dram::Shape;

/// A tree in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    levels: u32,
    /// Lines of 64 bytes in a bucket.
    bucket_lines: u64,
    order: Order,
}

/// An order of buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Level by level.
    Heap,
    /// Subtrees, each at the beginning of a row.
    Subtrees {
        /// Levels of a subtree; the first one has what is left over.
        levels: u32,
        /// Lines from the beginning of a subtree to that of the next.
        lines: u64,
    },
}

impl Layout {
    /// Level by level.
    pub fn heap(levels: u32, bucket_lines: u64) -> Self {
        Self { levels, bucket_lines, order: Order::Heap }
    }

    /// Subtrees as large as a row of all channels, or single buckets that are larger.
    pub fn subtrees(levels: u32, bucket_lines: u64, shape: &Shape) -> Self {
        let lines = shape.lines_in_row * shape.channels as u64;
        // 2^k - 1 buckets fit.
        let most = (lines / bucket_lines + 1).ilog2().clamp(1, levels);
        let lines = lines.max(bucket_lines);
        Self { levels, bucket_lines, order: Order::Subtrees { levels: most, lines } }
    }

    /// The leaves.
    pub fn leaves(&self) -> u64 {
        1 << (self.levels - 1)
    }

    /// The lines of the path to a leaf, from the root on.
    pub fn path(&self, leaf: u64) -> impl Iterator<Item = u64> {
        let layout = *self;
        (0..layout.levels).flat_map(move |level| {
            let first = layout.bucket(level, leaf >> (layout.levels - 1 - level));
            first..first + layout.bucket_lines
        })
    }

    /// The first line of the bucket with this number in its level.
    fn bucket(&self, level: u32, number: u64) -> u64 {
        match self.order {
            Order::Heap => ((1 << level) - 1 + number) * self.bucket_lines,
            Order::Subtrees { levels, lines } => {
                // The level of its subtree's root: the first subtree is the smaller one.
                let first = (self.levels - 1) % levels + 1;
                let root =
                    if level < first { 0 } else { (level - first) / levels * levels + first };
                let depth = level - root;
                let (subtree, below) = (number >> depth, number & ((1 << depth) - 1));
                (subtrees_before(root, first, levels) + subtree) * lines
                    + ((1 << depth) - 1 + below) * self.bucket_lines
            }
        }
    }
}

/// Subtrees whose root is above a level.
fn subtrees_before(root: u32, first: u32, levels: u32) -> u64 {
    let roots = std::iter::once(0).chain((first..).step_by(levels as usize));
    roots.take_while(|&above| above < root).map(|above| 1u64 << above).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_buckets_share_a_line() {
        for (levels, lines, channels) in
            [(1, 5, 1), (9, 5, 1), (11, 6, 2), (8, 3, 4), (12, 5, 8), (6, 257, 2)]
        {
            let shape = Shape::paper(channels);
            for layout in [Layout::heap(levels, lines), Layout::subtrees(levels, lines, &shape)] {
                let mut seen = BTreeSet::new();
                for level in 0..levels {
                    for number in 0..1 << level {
                        let first = layout.bucket(level, number);
                        assert!((first..first + lines).all(|line| seen.insert(line)), "{layout:?}");
                    }
                }
                assert_eq!(seen.len() as u64, ((1 << levels) - 1) * lines);
            }
        }
    }

    #[test]
    fn a_path_has_all_its_buckets_and_few_rows() {
        let shape = Shape::paper(2);
        let layout = Layout::subtrees(26, 5, &shape);
        let path: Vec<u64> = layout.path(layout.leaves() - 1).collect();
        assert_eq!(path.len(), 26 * 5);
        let rows: BTreeSet<_> = path.iter().map(|line| line / 256).collect();
        // Subtrees of 5 levels, and one level that is left over.
        assert_eq!(rows.len(), 6);
        assert!(path.iter().all(|line| line % 256 < 31 * 5));
    }
}
