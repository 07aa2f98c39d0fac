//! Blocks that travel in groups on one path: Path ORAM counted exactly, without bytes.
//!
//! Two ways are modelled. The paper's reads a group's path and writes it back. While the stash
//! holds more than its maximum, a random path is read and written back too (background eviction,
//! Ren et al., ISCA 2013). Ours reads a group's path and takes its blocks out. After a fixed number
//! of blocks it rewrites the next path in reverse lexicographic order, whatever the stash holds.

use oblivio_audit::{Trace, TraceRequest, union_of_paths};
use oblivio_testkit::SplitMix64;

/// When paths are rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrites {
    /// The path just read, and random paths while the stash holds more blocks than this.
    OnDemand {
        /// The maximum.
        stash: usize,
    },
    /// One path of the schedule after a fixed number of blocks.
    Scheduled {
        /// Blocks.
        every: u64,
        /// Whether every group counts as full, which hides its size from the store.
        padded: bool,
    },
}

/// Extra paths of one access before the model gives up: the tree is too full for its groups.
const MOST_EXTRA: usize = 50;

/// A tree of groups.
#[derive(Clone)]
pub struct Groups {
    depth: u32,
    slots: usize,
    group: usize,
    rewrites: Rewrites,
    /// Groups of the blocks in each bucket; a block is identified by its group alone.
    buckets: Vec<Vec<u32>>,
    stash: Vec<u32>,
    /// The label of each group, and its blocks.
    labels: Vec<u64>,
    sizes: Vec<usize>,
    rng: SplitMix64,
    blocks_due: u64,
    turns: u64,
    /// The most blocks in the stash after an access.
    pub stash_peak: usize,
    /// Extra paths to drain the stash.
    pub extra: u64,
    /// All paths.
    pub paths: u64,
    /// Store calls that read.
    pub calls_read: u64,
    /// Store calls that write.
    pub calls_written: u64,
    /// Buckets read.
    pub read: u64,
    /// Buckets written.
    pub written: u64,
    /// Whether background eviction could not empty the stash.
    pub gave_up: bool,
}

impl Groups {
    /// An empty tree with leaves at `depth`; `sizes` are the blocks of each group, at most `group`.
    pub fn new(
        depth: u32,
        slots: usize,
        group: usize,
        rewrites: Rewrites,
        sizes: &[usize],
        seed: u64,
    ) -> Self {
        let mut rng = SplitMix64::new(seed);
        let labels = sizes.iter().map(|_| rng.below(1 << depth)).collect();
        let mut tree = Self {
            depth,
            slots,
            group,
            rewrites,
            buckets: vec![Vec::new(); (2 << depth) - 1],
            stash: Vec::new(),
            labels,
            sizes: sizes.to_vec(),
            rng,
            blocks_due: 0,
            turns: 0,
            stash_peak: 0,
            extra: 0,
            paths: 0,
            calls_read: 0,
            calls_written: 0,
            read: 0,
            written: 0,
            gave_up: false,
        };
        // As after long use: every block as deep as there is room.
        for (id, &size) in sizes.iter().enumerate() {
            for _ in 0..size {
                tree.settle(id as u32);
            }
        }
        tree
    }

    fn settle(&mut self, id: u32) {
        let leaf = self.labels[id as usize];
        for level in (0..=self.depth).rev() {
            let at = self.bucket(leaf, level);
            if self.buckets[at].len() < self.slots {
                self.buckets[at].push(id);
                return;
            }
        }
        self.stash.push(id);
    }

    fn bucket(&self, leaf: u64, level: u32) -> usize {
        ((1usize << level) - 1) + (leaf >> (self.depth - level)) as usize
    }

    /// Starts counting again.
    pub fn reset(&mut self) {
        (self.extra, self.paths, self.read, self.written) = (0, 0, 0, 0);
        (self.calls_read, self.calls_written, self.stash_peak) = (0, 0, self.stash.len());
    }

    /// Reads a group; returns the leaves shown, the group's first.
    pub fn access(&mut self, group: u32) -> Vec<u64> {
        let shown = match self.rewrites {
            Rewrites::OnDemand { stash } => self.on_demand(group, stash),
            Rewrites::Scheduled { every, padded } => self.scheduled(group, every, padded),
        };
        self.paths += shown.len() as u64;
        self.stash_peak = self.stash_peak.max(self.stash.len());
        shown
    }

    fn on_demand(&mut self, group: u32, most: usize) -> Vec<u64> {
        let leaf = self.labels[group as usize];
        self.take_path(leaf);
        self.labels[group as usize] = self.rng.below(1 << self.depth);
        self.put_path(leaf);
        let mut shown = vec![leaf];
        while self.stash.len() > most {
            if shown.len() > MOST_EXTRA {
                self.gave_up = true;
                break;
            }
            let leaf = self.rng.below(1 << self.depth);
            self.take_path(leaf);
            self.put_path(leaf);
            shown.push(leaf);
        }
        let paths = shown.len() as u64;
        self.extra += paths - 1;
        self.read += paths * u64::from(self.depth + 1);
        self.written += paths * u64::from(self.depth + 1);
        self.calls_read += paths;
        self.calls_written += paths;
        shown
    }

    /// Reads the group's path and the due scheduled ones in one call, like the engine's batch.
    fn scheduled(&mut self, group: u32, every: u64, padded: bool) -> Vec<u64> {
        let leaf = self.labels[group as usize];
        self.take_group(leaf, group);
        self.labels[group as usize] = self.rng.below(1 << self.depth);
        let mut leaves = vec![leaf];
        let blocks = if padded { self.group } else { self.sizes[group as usize] };
        self.blocks_due += blocks as u64;
        while self.blocks_due >= every {
            self.blocks_due -= every;
            leaves.push(match self.depth {
                0 => 0,
                depth => self.turns.reverse_bits() >> (64 - depth),
            });
            self.turns += 1;
        }
        for &leaf in &leaves[1..] {
            self.take_path(leaf);
        }
        // A later path must not fill slots that an earlier one could use: they share only buckets
        // near the root, which are filled last.
        for &leaf in &leaves[1..] {
            self.put_path(leaf);
        }
        self.read += u64::from(union_of_paths(&leaves, self.depth));
        self.calls_read += 1;
        if leaves.len() > 1 {
            self.written += u64::from(union_of_paths(&leaves[1..], self.depth));
            self.calls_written += 1;
        }
        leaves
    }

    fn take_path(&mut self, leaf: u64) {
        for level in 0..=self.depth {
            let at = self.bucket(leaf, level);
            self.stash.append(&mut self.buckets[at]);
        }
    }

    fn take_group(&mut self, leaf: u64, group: u32) {
        for level in 0..=self.depth {
            let at = self.bucket(leaf, level);
            let before = self.buckets[at].len();
            self.buckets[at].retain(|&id| id != group);
            self.stash.extend(std::iter::repeat_n(group, before - self.buckets[at].len()));
        }
    }

    /// Fills a path from the stash, deepest first.
    fn put_path(&mut self, leaf: u64) {
        // How deep each block may go, computed once for all levels.
        let deepest = |id: &u32| {
            let differs = self.labels[*id as usize] ^ leaf;
            self.depth - (u64::BITS - differs.leading_zeros())
        };
        let mut stash: Vec<(u32, u32)> = self.stash.iter().map(|id| (deepest(id), *id)).collect();
        stash.sort_unstable_by(|a, b| b.cmp(a));
        let mut next = stash.into_iter().peekable();
        let mut waiting: Vec<u32> = Vec::new();
        for level in (0..=self.depth).rev() {
            while let Some((_, id)) = next.next_if(|(deepest, _)| *deepest >= level) {
                waiting.push(id);
            }
            let at = self.bucket(leaf, level);
            let room = self.slots - self.buckets[at].len();
            let stay = waiting.len().saturating_sub(room);
            self.buckets[at].extend(waiting.drain(stay..));
        }
        self.stash.clear();
        self.stash.extend(waiting);
    }
}

/// The store's view of some requests, for the audit.
pub fn trace(depth: u32, requests: impl IntoIterator<Item = Vec<u64>>) -> Trace {
    let request = |leaves: Vec<u64>| {
        let buckets = union_of_paths(&leaves, depth);
        TraceRequest {
            leaves,
            depth,
            reads: buckets,
            writes: buckets,
            bytes_read: buckets.into(),
            bytes_written: buckets.into(),
            ..TraceRequest::default()
        }
    };
    Trace { depth, requests: requests.into_iter().map(request).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(tree: &Groups) -> usize {
        tree.stash.len() + tree.buckets.iter().map(Vec::len).sum::<usize>()
    }

    #[test]
    fn nothing_is_lost_and_everything_is_where_its_label_says() {
        for rewrites in
            [Rewrites::OnDemand { stash: 100 }, Rewrites::Scheduled { every: 3, padded: true }]
        {
            let sizes = [4, 4, 1, 4, 2, 4, 4, 3];
            let mut tree = Groups::new(3, 4, 4, rewrites, &sizes, 1);
            for access in 0..1000u32 {
                tree.access(access % 8);
                assert_eq!(count(&tree), 26);
            }
            for leaf in 0..8 {
                for level in 0..=3 {
                    for &id in &tree.buckets[tree.bucket(leaf, level)] {
                        let label = tree.labels[id as usize];
                        assert!(
                            (0..8)
                                .any(|other| tree.bucket(other, level) == tree.bucket(leaf, level)
                                    && tree.bucket(label, level) == tree.bucket(other, level))
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_schedule_does_not_look_at_the_stash() {
        let sizes = vec![8; 30];
        let mut tree =
            Groups::new(5, 4, 8, Rewrites::Scheduled { every: 3, padded: true }, &sizes, 2);
        let shown: Vec<usize> = (0..6).map(|_| tree.access(7).len()).collect();
        assert_eq!(shown, [3, 4, 4, 3, 4, 4]);
        assert_eq!(tree.extra, 0);
    }
}
