//! How much the store below has room for, with all temporary data.

use crate::core::{Ledger as _, SYNC_BYTES};
use crate::records::journal::MOST_AHEAD;
use crate::records::state::LEAST_LOG;
use crate::tree::ledger::TreeLedger;
use crate::tree::policy::{interval, journal_limit};
use crate::tree::tuning::{BESIDE_SLAB, SWEEP_BATCH, SWEEP_IDLE};
use crate::tree::volume::{TreeVolume, cache_bytes};
use oblivio_engine::tree::{Shape, TopView, TreeConfig, buckets_in};

/// The tree of a size class.
struct Tree {
    /// Bytes when every bucket is stored.
    bytes: u64,
    shape: Shape,
    levels: u64,
    buckets: u64,
    /// Buckets in memory once the cache is fitted to it.
    cached: u64,
    /// Levels wholly in memory.
    cached_levels: u64,
    /// Addressable blocks.
    blocks: u64,
}

impl TreeVolume {
    /// Blocks that may still be added when the store has `free` bytes left: up to the largest class
    /// whose whole tree fits. Less would do for a while, but a tree stores its buckets as paths
    /// reach them, whatever is requested, and must not be refused then.
    pub(crate) fn room_in(&self, free: u64) -> u64 {
        let capacity = self.ledger.limit();
        let there = bytes_there(self);
        let fits = |class| self.most_stored(class) <= free.saturating_add(there);
        let mut class = self.ledger.engine.size_class();
        if !fits(class) {
            return 0;
        }
        while class < capacity && fits(self.ledger.engine.config().size_class_above(class)) {
            class = self.ledger.engine.config().size_class_above(class);
        }
        class.min(capacity).saturating_sub(self.ledger.engine.live_blocks())
    }

    /// The most bytes that the store ever holds while the size class is at most this one.
    ///
    /// The slab holds the tree and twice the writes between two commits. Once, because data that a
    /// commit replaces stays until the commit is durable. And once, because the slab grows evenly,
    /// by as much as between the last two commits, although slots are free by then; afterwards more
    /// is free than it had grown by, so the growth ends. If buckets of several lengths have objects
    /// of their own, the ones no longer written keep as much for a while. When room is short, a
    /// commit leaves no more free space than that (see `give_back`).
    fn most_stored(&self, class: u64) -> u64 {
        let tree = self.tree_for(class);
        let written = self.written_between_commits(&tree);
        let passing = if self.ledger.slab.has_short() { 4 } else { 2 } * written;
        // For the present shape or the future one: otherwise there would be less room than
        // reported.
        let stuck = [self.ledger.engine.shape(), tree.shape]
            .map(|shape| self.ledger.slab.stuck_bytes(shape));
        let slab = tree.bytes + passing + stuck[0].max(stuck[1]);
        // Twice the limit and a record of the longest sync, with its padding and pages, and zeros.
        let (_, within) = self.within();
        let journal = within
            + 2 * journal_limit(tree.bytes + written)
            + SYNC_BYTES as u64 * 5 / 4
            + MOST_AHEAD;
        // Grows with the map, and by a slot number and some bits for each stored bucket.
        let map = |blocks| self.ledger.engine.config().map_format.bytes_for(blocks) as u64;
        let more = tree.buckets.saturating_sub(self.ledger.slab.table().len() as u64);
        let map = map(tree.blocks) - map(self.ledger.engine.capacity());
        let state = self.ledger.state.record().first().state_bytes() + map + 8 * more;
        // Two checkpoints, each with a log that goes on until the one after the next: twice at its
        // longest, with a delta beyond that.
        let states = 2 * (state + 2 * (state.max(LEAST_LOG) + state));
        slab + journal + states + BESIDE_SLAB
    }

    fn tree_for(&self, class: u64) -> Tree {
        let config = self.ledger.engine.config();
        let blocks = self.ledger.engine.capacity().max(class.min(config.capacity));
        // A shrinking tree is larger until it is done.
        let shape = config.shape_for_live(class, blocks).max(self.ledger.engine.shape());
        let depth = shape.depth;
        let memory = cache_bytes(config, self.memory_bytes, blocks, depth).unwrap_or(0);
        let cached = TreeConfig { cache_bytes: memory, ..*config }.cached_buckets(shape, shape);
        // A commit fits the cache to the tree; until then it is the present one.
        let there = cached.min(self.ledger.engine.cached_buckets());
        let levels = u64::from(depth.0) + 1;
        Tree {
            bytes: self.ledger.slab.tree_bytes(shape),
            shape,
            levels,
            buckets: buckets_in(depth),
            cached,
            cached_levels: u64::from((there + 1).ilog2()).min(levels),
            blocks,
        }
    }

    /// The most bytes written to the slab from one commit to the next.
    ///
    /// Each scheduled path writes its buckets of the uncached levels. A cached bucket is written
    /// once: at its last turn before the commit is due, or by the commit. Paths after that point,
    /// until the commit has carried out the deferred writes, write all their buckets.
    fn written_between_commits(&self, tree: &Tree) -> u64 {
        let stored = tree.bytes.max(self.account.since.stored);
        let paths = interval(stored, false, self.ledger.bucket_bytes());
        let below = paths * (tree.levels - tree.cached_levels);
        let cached: u64 = (0..tree.cached_levels).map(|level| paths.min(1 << level)).sum();
        let late = self.paths_beyond_due(tree) * tree.levels;
        self.ledger.slab.most_bytes(below + cached + late)
    }

    /// Scheduled paths that may follow the one that makes a commit due: those of its batch, and of
    /// the batches that carry out deferred writes, each with a sweep.
    fn paths_beyond_due(&self, tree: &Tree) -> u64 {
        let batch = self.batch_limit_for(tree.shape, tree.cached);
        let ops = self.most_waiting().max(self.waiting.deferred.len()) + batch;
        // Batches of a fixed size are filled up, and a pace makes some even with nothing deferred.
        let batches = ops.div_ceil(batch) as u64 + 4;
        let ops = self.fixed_batch().map_or(ops as u64, |fixed| batches * fixed as u64);
        let (within, _) = self.within();
        let paths = within + self.ledger.engine.config().eviction.due(0, ops) + 1;
        (paths + batches * SWEEP_BATCH).max(SWEEP_IDLE)
    }
}

/// Whether the whole tree of the present class fits beside the log of its top, and its top once
/// more.
pub(crate) fn fits_beside_top(volume: &TreeVolume) -> bool {
    let top = TopView::of(&volume.ledger.engine).buckets().len() as u64;
    let most =
        volume.most_stored(volume.ledger.engine.size_class()) + top * volume.ledger.bucket_bytes();
    let fits = |free: u64| most <= free.saturating_add(bytes_there(volume));
    volume.ledger.store.free_bytes().is_ok_and(|free| free.is_none_or(fits))
}

fn bytes_there(volume: &TreeVolume) -> u64 {
    let TreeLedger { slab, journal, state, .. } = &volume.ledger;
    slab.current_bytes() + slab.free_bytes() + journal.length() + state.length()
}
