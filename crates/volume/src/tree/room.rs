//! How much the store below has room for, with all that passes through it meanwhile.

use crate::tree::journal::MOST_AHEAD;
use crate::tree::size::{SWEEP_BATCH, SWEEP_IDLE};
use crate::tree::space::SYNC_BYTES;
use crate::tree::state::LEAST_LOG;
use crate::tree::volume::{TreeVolume, cache_bytes};
use oblivio_engine::Engine;
use oblivio_engine::tree::{Shape, TreeConfig, buckets_in};

/// Commit records, header, lock, and what file systems round up.
const SMALL: u64 = 1 << 20;

/// The tree of a size class.
struct Tree {
    /// Bytes when all of it is stored.
    bytes: u64,
    shape: Shape,
    levels: u64,
    buckets: u64,
    /// Those that are in memory once the cache is fitted to it.
    cached: u64,
    /// Those of the levels that are in memory whole.
    cached_levels: u64,
    /// Addressable blocks.
    blocks: u64,
}

impl TreeVolume {
    /// Blocks that may still come into being when the store has so many bytes left: up to the
    /// largest class whose whole tree fits. Less would do for a while, but the buckets of a tree
    /// are stored as paths come by, whatever is asked for, and must not be refused then.
    pub(crate) fn room_in(&self, free: u64) -> u64 {
        let capacity = self.limit.blocks();
        let slab = self.slab.current_bytes() + self.slab.free_bytes();
        let there = slab + self.journal.length() + self.state.length();
        let fits = |class| self.most_stored(class) <= free.saturating_add(there);
        let mut class = self.engine.size_class();
        if !fits(class) {
            return 0;
        }
        while class < capacity && fits(self.engine.config().size_class_above(class)) {
            class = self.engine.config().size_class_above(class);
        }
        class.min(capacity).saturating_sub(self.engine.live_blocks())
    }

    /// The most bytes that the store ever holds while the size class is at most this one.
    ///
    /// In the slab they are the tree and twice what is written between two commits: once because
    /// what a commit replaces stays until it is durable, and once because the slab becomes longer
    /// evenly, by as much as between the two commits before, although slots are free by then;
    /// what is free after that is more than it had grown by, so it does not go on. Where buckets
    /// of several lengths have objects of their own, those that are not written any more keep as
    /// much for a while, and where little room is left a commit leaves no more of what is free
    /// than that (see `give_back`).
    fn most_stored(&self, class: u64) -> u64 {
        let tree = self.tree_for(class);
        let written = self.written_between_commits(&tree);
        let passing = if self.slab.has_short() { 4 } else { 2 } * written;
        // Of the shape it has or of the one it comes to, or there would be less room there than was told.
        let stuck = [self.engine.shape(), tree.shape].map(|shape| self.slab.stuck_bytes(shape));
        let slab = tree.bytes + passing + stuck[0].max(stuck[1]);
        // Twice the limit and a record of the longest sync, with its padding and pages, and zeros.
        let (_, within) = self.within();
        let journal = within
            + 2 * self.journal_limit_for(tree.bytes + written)
            + SYNC_BYTES as u64 * 5 / 4
            + MOST_AHEAD;
        // It grows with the map, and by a slot number and some bits for each bucket that is stored.
        let map = |blocks| self.engine.config().map_format.bytes_for(blocks) as u64;
        let more = tree.buckets.saturating_sub(self.slab.table().len() as u64);
        let map = map(tree.blocks) - map(self.engine.capacity());
        let state = self.state.record().state_bytes() + map + 8 * more;
        // The checkpoint before and its log, each as long as it may be, then the next one.
        let states = 2 * (state + state.max(LEAST_LOG) + state);
        slab + journal + states + SMALL
    }

    fn tree_for(&self, class: u64) -> Tree {
        let config = self.engine.config();
        let blocks = self.engine.capacity().max(class.min(config.capacity));
        // One that becomes smaller is larger until it is done.
        let shape = config.shape_for_live(0, class, blocks).max(self.engine.shape());
        let depth = shape.depth;
        let memory = cache_bytes(config, self.memory_bytes, blocks, depth).unwrap_or(0);
        let cached = TreeConfig { cache_bytes: memory, ..*config }.cached_buckets(depth);
        // The cache is fitted to the tree with a commit: until then it is the one there is.
        let there = cached.min(self.engine.cached_buckets());
        let levels = u64::from(depth.0) + 1;
        Tree {
            bytes: self.slab.tree_bytes(shape),
            shape,
            levels,
            buckets: buckets_in(depth),
            cached,
            cached_levels: u64::from((there + 1).ilog2()).min(levels),
            blocks,
        }
    }

    /// The most bytes that go to the slab from one commit to the next.
    ///
    /// Each scheduled path writes its buckets of the levels that are not cached. A cached bucket is
    /// written once: at its last turn before the commit is due, or by the commit. Paths that come
    /// after that point, until the commit has carried out what waits, write all they have.
    fn written_between_commits(&self, tree: &Tree) -> u64 {
        let paths = self.least_interval(tree.bytes.max(self.stored_at_commit));
        let below = paths * (tree.levels - tree.cached_levels);
        let cached: u64 = (0..tree.cached_levels).map(|level| paths.min(1 << level)).sum();
        let late = self.paths_beyond_due(tree) * tree.levels;
        self.slab.most_bytes(below + cached + late)
    }

    /// Scheduled paths that may follow the one after which a commit is due: those of the batch that
    /// it belongs to, and of the batches that carry out what waits, with a sweep beside them.
    fn paths_beyond_due(&self, tree: &Tree) -> u64 {
        let batch = self.batch_limit_for(tree.shape, tree.cached);
        let ops = self.most_waiting().max(self.deferred.len()) + batch;
        // Batches of a fixed size are filled up, and a pace makes some although nothing waits.
        let batches = ops.div_ceil(batch) as u64 + 4;
        let ops = self.fixed_batch().map_or(ops as u64, |fixed| batches * fixed as u64);
        let (within, _) = self.within();
        let paths = within + self.engine.config().eviction.due(0, ops) + 1;
        (paths + batches * SWEEP_BATCH).max(SWEEP_IDLE)
    }
}
