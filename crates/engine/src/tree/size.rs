//! How large the tree is: which ids there are, and how deep it must be for the blocks that exist.
//!
//! A tree grows by a level at once: labels have 64 bits, so nothing that is stored moves. It
//! shrinks by a level in one sweep of the eviction schedule: each path that has its turn leaves
//! nothing at the old leaves and its leaf bucket is dropped, so that after as many turns as there
//! are leaves the level is gone (docs/decisions/0006-shrinking.md). All of it is public.

use super::delta::distinct;
use super::frontend::{LEVEL_SHIFT, TreeOram};
use super::geometry::buckets_in;
use crate::{BucketId, EngineError, Result};

/// The size class that follows when `live` blocks exist and the tree is made for `class`.
///
/// Classes are powers of two. A tree grows when its class is exceeded, and shrinks to the next
/// class below when that would be filled to less than seven eighths. So between two changes in
/// opposite directions at least an eighth of the smaller class is written or discarded.
pub fn size_class_after(live: u64, class: u64) -> u64 {
    if live > class {
        return live.next_power_of_two();
    }
    let mut class = class.max(1);
    loop {
        let below = class.next_power_of_two() / 2;
        if below == 0 || live >= below - below / 8 {
            return class;
        }
        class = below;
    }
}

impl TreeOram {
    /// Makes all blocks below `blocks` addressable. The tree becomes deeper only as far as the
    /// map's own blocks need it; for what is to be stored there is [`Self::set_size_class`]. Ids
    /// are never taken back: a counter that began again would give a block a label that was shown.
    ///
    /// # Errors
    /// `Invalid` beyond the configured capacity or while a batch is under way.
    pub fn grow(&mut self, blocks: u64) -> Result<()> {
        self.expect_idle()?;
        self.check_capacity(blocks)?;
        if blocks <= self.blocks {
            return Ok(());
        }
        self.blocks = blocks;
        let entries = self.config.blocks_by_level(blocks)[self.levels - 1];
        let before = self.on_chip.len();
        let bytes = self.config.map_format.bytes_for(entries);
        if bytes > before {
            self.on_chip.resize(bytes, 0);
            let first = ((self.levels - 1) as u64) << LEVEL_SHIFT;
            self.config.map_format.fill_fresh(&mut self.on_chip, before, first, &self.prf);
        }
        self.fit_depth();
        Ok(())
    }

    /// Makes the tree as deep as so many existing blocks need; no more must exist at a time. A
    /// deeper tree is there at once. A shallower one comes with the eviction schedule, a level in
    /// as many scheduled paths as it has leaves; [`Self::shrink_left`] says how many are left.
    /// To be followed by a commit before the next batch, as a replay stands on the size it had,
    /// and by [`Self::set_cache_bytes`], as the same memory holds other buckets.
    ///
    /// # Errors
    /// `Invalid` beyond the configured capacity or while a batch is under way.
    pub fn set_size_class(&mut self, blocks: u64) -> Result<()> {
        self.expect_idle()?;
        self.check_capacity(blocks)?;
        self.size_class = blocks.max(1);
        self.fit_depth();
        Ok(())
    }

    /// The number of existing blocks that the tree is, or will be, made for.
    pub fn size_class(&self) -> u64 {
        self.size_class
    }

    /// Scheduled paths until the tree has the depth that its size class asks for.
    pub fn shrink_left(&self) -> u64 {
        let (depth, floor) = (self.depth().0, self.floor.0);
        if depth <= floor { 0 } else { (2 << depth) - (2 << floor) - self.swept }
    }

    /// Buckets that were dropped since [`Self::committed`] was called last, ascending: what is
    /// stored of them is not wanted once the next commit is durable. To be asked after the flush.
    pub fn dropped(&self) -> Vec<BucketId> {
        let tree = &self.trees[0];
        let mut buckets = distinct(&tree.changes.written);
        buckets.retain(|&bucket| !tree.present.get(bucket));
        buckets.into_iter().map(BucketId).collect()
    }

    /// Says that the next flush comes after `evictions` scheduled paths; with `u64::MAX` nothing is
    /// written before it. A cached bucket is then written back at once when it will not have
    /// another turn before the flush. That moves no byte more than leaving all to the flush, and
    /// the flush that comes when it is due finds nothing left to write; one that comes too late
    /// neither, one that comes early finds the rest. Must follow a flush: a bucket that is written
    /// at once must not stand over one that waits.
    ///
    /// # Errors
    /// `Invalid` while a batch is under way or something waits for a flush.
    pub fn expect_flush_after(&mut self, evictions: u64) -> Result<()> {
        self.expect_idle()?;
        if !self.trees[0].cache.dirty().is_empty() {
            return Err(EngineError::Invalid("cached buckets wait for a flush".into()));
        }
        self.trees[0].flush_at = self.turns[0].saturating_add(evictions);
        Ok(())
    }

    /// The number of scheduled paths before which the next flush is expected.
    pub fn flush_at(&self) -> u64 {
        self.trees[0].flush_at
    }

    /// Scheduled paths so far: a public clock, by which a caller can decide when a flush is due.
    pub fn evictions(&self) -> u64 {
        self.turns[0]
    }

    fn check_capacity(&self, blocks: u64) -> Result<()> {
        if blocks <= self.config.capacity {
            return Ok(());
        }
        let most = self.config.capacity;
        Err(EngineError::Invalid(format!("{blocks} blocks are more than the capacity of {most}")))
    }

    /// Brings depths to what ids and size class ask for, or begins to.
    pub(super) fn fit_depth(&mut self) {
        for (level, tree) in self.trees.iter_mut().enumerate() {
            let needed = self.config.depth_for_live(level, self.size_class, self.blocks);
            if level == 0 {
                self.floor = needed;
                if needed >= tree.depth {
                    // Leaves that were pruned are as good as leaves that never were.
                    self.swept = 0;
                }
            }
            tree.depth = tree.depth.max(needed);
        }
    }

    /// So many paths of the schedule have their turn now.
    pub(super) fn sweep(&mut self, tree: usize, turns: u64) {
        let shrinking = tree == 0 && self.trees[0].depth > self.floor;
        self.trees[tree].pruning = shrinking;
        if shrinking {
            self.swept += turns;
        }
    }

    /// The leaf level is gone once each of its buckets had its turn. Turns beyond that, in the
    /// same round, do not count for the next level: they left blocks in it.
    pub(super) fn drop_swept_level(&mut self, tree: usize) {
        let tree = &mut self.trees[tree];
        if !tree.pruning || self.swept < 1 << tree.depth.0 {
            return;
        }
        tree.depth.0 -= 1;
        self.swept = 0;
        let buckets = buckets_in(tree.depth) + 1;
        tree.present.truncate(buckets);
        tree.removed.truncate(buckets * tree.geometry.blocks_per_bucket as u64);
        tree.cache.forget_from(buckets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_are_powers_of_two_with_room_between() {
        assert_eq!(size_class_after(64, 64), 64);
        assert_eq!(size_class_after(65, 64), 128);
        assert_eq!(size_class_after(1000, 64), 1024);
        assert_eq!(size_class_after(56, 128), 128);
        assert_eq!(size_class_after(55, 128), 64);
        assert_eq!(size_class_after(0, 1 << 40), 1);
        assert_eq!(size_class_after(60, 100), 100, "a class cut by the capacity");
        assert_eq!(size_class_after(55, 100), 64);
    }

    proptest! {
        /// The class always holds what lives, settles at once, and to turn back it takes an
        /// eighth of the smaller class.
        #[test]
        fn classes_do_not_flap(
            class in (0u32..30).prop_map(|log| 1u64 << log),
            live in 0u64..1 << 31,
            later in 0u64..1 << 31,
        ) {
            let next = size_class_after(live, class);
            prop_assert!(live <= next);
            prop_assert_eq!(size_class_after(live, next), next);
            let last = size_class_after(later, next);
            let turned = (class < next && last < next) || (class > next && last > next);
            if turned {
                prop_assert!(live.abs_diff(later) >= next.min(last) / 8);
            }
        }
    }
}
