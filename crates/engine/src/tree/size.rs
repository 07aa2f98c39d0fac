//! The size of the tree: the existing ids, and the depth that the existing blocks need.
//!
//! A tree grows by a level at once: labels have 64 bits, so no stored block moves. It shrinks by a
//! level in one sweep of the eviction schedule. Each path at its turn leaves nothing at the old
//! leaves and drops its leaf bucket. After as many turns as leaves, the level is gone
//! (docs/decisions/0006-shrinking.md). With leaf steps, it grows and shrinks by a slot of each leaf
//! in the same way: a leaf's bucket has more or fewer slots from its next turn on
//! (docs/decisions/0010-leaf-slots.md). All of it is public.

use super::config::TreeConfig;
use super::delta::distinct;
use super::frontend::TreeOram;
use super::geometry::{Shape, buckets_in};
use crate::{Address, BucketId, EngineError, Result};

/// The next size class of a tree of size class `class` with `live` existing blocks.
///
/// Classes are powers of two. A tree grows when it exceeds its class. It shrinks to the next class
/// below when that would be less than seven eighths full. So between two changes in opposite
/// directions, at least an eighth of the smaller class is written or discarded.
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

/// The least class that holds `live` blocks, where classes are eighths of a power of two: 5, 6, 7
/// and 8 of them, and each number below 8. With such a class, a tree whose leaves have 1, 2, 3 or 4
/// of 4 slots is about half full.
pub fn step_above(live: u64) -> u64 {
    let live = live.max(1);
    live.next_multiple_of((live.next_power_of_two() / 8).max(1))
}

/// The next class below `class`, which the capacity may have cut; 0 below 1.
fn step_below(class: u64) -> u64 {
    let step = (class.next_power_of_two() / 8).max(1);
    (class - 1) / step * step
}

/// As [`size_class_after`], for classes in steps: a tree shrinks when the class below would be less
/// than fifteen sixteenths full.
fn step_after(live: u64, class: u64) -> u64 {
    if live > class {
        return step_above(live);
    }
    let mut class = class.max(1);
    loop {
        let below = step_below(class);
        if below == 0 || live >= below - below / 16 {
            return class;
        }
        class = below;
    }
}

impl TreeConfig {
    /// The next size class of a tree of size class `class` with `live` existing blocks.
    pub fn size_class_after(&self, live: u64, class: u64) -> u64 {
        if self.leaf_steps { step_after(live, class) } else { size_class_after(live, class) }
    }

    /// The next larger size class.
    pub fn size_class_above(&self, class: u64) -> u64 {
        if self.leaf_steps { step_above(class + 1) } else { (class + 1).next_power_of_two() }
    }
}

impl TreeOram {
    /// Makes all blocks below `blocks` addressable. The tree deepens only as far as the map's own
    /// blocks need; [`Self::set_size_class`] makes room for data. Ids are never taken back: a
    /// restarted counter would repeat a shown label.
    ///
    /// The configured capacity grows too. A caller with a limit must check it first.
    ///
    /// # Errors
    /// `Invalid` for more blocks than a tree with this many levels of recursion can have, or while
    /// a batch is under way.
    pub fn grow(&mut self, blocks: u64) -> Result<()> {
        self.expect_idle()?;
        self.allow(blocks)?;
        if blocks <= self.size.blocks {
            return Ok(());
        }
        self.size.blocks = blocks;
        let entries = self.config.blocks_by_level(blocks)[self.levels - 1];
        let before = self.on_chip.len();
        let bytes = self.config.map_format.bytes_for(entries);
        if bytes > before {
            self.on_chip.resize(bytes, 0);
            let first = Address::new(self.levels - 1, 0);
            self.config.map_format.fill_fresh(&mut self.on_chip, before, first, &self.prf);
        }
        self.fit_shape();
        Ok(())
    }

    /// Sizes the tree for this many existing blocks; no more may exist at a time. Growth is
    /// immediate. The eviction schedule shrinks the tree by a level, or by some slots of all
    /// leaves, in as many scheduled paths as the tree has leaves. [`Self::shrink_left`] counts the
    /// remaining paths. The caller must commit before the next batch, because a replay depends on
    /// the old size. It must also call [`Self::set_cache_bytes`], because the same memory holds
    /// other buckets.
    ///
    /// # Errors
    /// As [`Self::grow`].
    pub fn set_size_class(&mut self, blocks: u64) -> Result<()> {
        self.expect_idle()?;
        self.allow(blocks)?;
        self.size.class = blocks.max(1);
        self.fit_shape();
        Ok(())
    }

    /// The number of existing blocks for which the tree is sized, or will be.
    pub fn size_class(&self) -> u64 {
        self.size.class
    }

    /// The shape of the tree. While it shrinks, its leaves have at most these slots.
    pub fn shape(&self) -> Shape {
        self.tree.shape()
    }

    /// The shape for the size class: the current one, or the goal of shrinking.
    pub fn floor(&self) -> Shape {
        self.size.floor
    }

    /// Whether the tree is shrinking.
    pub fn is_shrinking(&self) -> bool {
        self.shape() > self.size.floor
    }

    /// Scheduled paths of the current sweep, since its leaf level began to shrink.
    pub fn swept(&self) -> u64 {
        self.size.swept
    }

    /// The number of slots that the stored version of a bucket lacks.
    pub fn missing_slots(&self, bucket: BucketId) -> usize {
        self.tree.marks.missing.get(bucket)
    }

    /// Scheduled paths until the tree has the shape of its size class.
    pub fn shrink_left(&self) -> u64 {
        let (shape, floor) = (self.shape(), self.size.floor);
        if shape <= floor {
            return 0;
        }
        // The leaves of each dropped level, and those of the last once more for their slots.
        let levels = (2 << shape.depth.0) - (2 << floor.depth.0);
        let before = if shape.depth > floor.depth { self.full_leaf() } else { shape.leaf_slots };
        let last = if before > floor.leaf_slots { floor.leaves() } else { 0 };
        levels + last - self.size.swept
    }

    /// Slots of a full leaf.
    fn full_leaf(&self) -> usize {
        self.config.blocks_per_bucket
    }

    /// Slots that a leaf of the current depth keeps in a tree that becomes `floor`.
    fn kept(&self, floor: Shape) -> usize {
        if floor.depth < self.depth() { 0 } else { floor.leaf_slots }
    }

    /// Buckets dropped since the last [`Self::committed`], ascending. The store may delete them
    /// once the next commit is durable. Call it after the flush.
    pub fn dropped(&self) -> Vec<BucketId> {
        let tree = &self.tree;
        let mut buckets = distinct(&tree.changes.written);
        buckets.retain(|&bucket| !tree.marks.present.get(bucket));
        buckets
    }

    /// Announces the next flush after `evictions` scheduled paths; with `u64::MAX`, nothing is
    /// written before it. A cached bucket without another turn before the flush is then written at
    /// once. This moves no more bytes than leaving everything to the flush. A flush on time or late
    /// finds nothing left to write; an early one finds the rest. Call it after a flush: a bucket
    /// written at once must not be above a deferred one.
    ///
    /// # Errors
    /// `Invalid` while a batch is under way or a bucket is dirty.
    pub fn expect_flush_after(&mut self, evictions: u64) -> Result<()> {
        self.expect_idle()?;
        if !self.tree.cache.dirty().is_empty() {
            return Err(EngineError::Invalid("cached buckets wait for a flush".into()));
        }
        self.tree.clock.flush_at = self.schedule.turns.saturating_add(evictions);
        Ok(())
    }

    /// The number of scheduled paths at the next expected flush.
    pub fn flush_at(&self) -> u64 {
        self.tree.clock.flush_at
    }

    /// Scheduled paths so far: a public clock, by which a caller can schedule flushes.
    pub fn evictions(&self) -> u64 {
        self.schedule.turns
    }

    /// Operations so far. They determine the paths owed to group remaps.
    pub fn requests(&self) -> u64 {
        self.tree.meters.requests
    }

    /// Raises the configured capacity to this many blocks, if it is less. The stored state may
    /// exceed a configuration that the caller kept from before the capacity was raised.
    ///
    /// # Errors
    /// `Invalid` for a capacity that no tree with this many levels of recursion has.
    pub fn allow(&mut self, blocks: u64) -> Result<()> {
        if blocks > self.config.capacity {
            self.config = self.config.with_capacity(blocks)?;
        }
        Ok(())
    }

    /// Changes the shape to fit ids and size class, or begins to.
    pub(super) fn fit_shape(&mut self) {
        let needed = self.config.shape_for_live(self.size.class, self.size.blocks);
        let shape = self.shape();
        // Dropped leaves equal leaves that never existed, and leaves with fewer slots than allowed
        // do no harm. But if leaves must now keep less, those that had their turn have too many
        // slots.
        let stricter = self.kept(needed) < self.kept(self.size.floor);
        if needed >= shape || stricter {
            self.size.swept = 0;
        }
        self.size.floor = needed;
        let shape = shape.max(needed);
        let leaves = &mut self.tree.leaves;
        (leaves.depth, leaves.leaf_slots) = (shape.depth, shape.leaf_slots);
    }

    /// Counts the turns of a round's scheduled paths.
    pub(super) fn sweep(&mut self, turns: u64) {
        let shape = self.shape();
        self.tree.leaves.leaf_room = shape.leaf_slots;
        if shape > self.size.floor {
            self.tree.leaves.leaf_room = self.kept(self.size.floor);
            self.size.swept += turns;
        }
    }

    /// Ends the sweep once each leaf had its turn: the leaves have lost their slots, or are gone.
    /// Further turns of the same round do not count for the next level: they left blocks in it.
    pub(super) fn end_sweep(&mut self) {
        let full = self.full_leaf();
        let tree = &mut self.tree;
        if tree.leaves.leaf_room >= tree.leaves.leaf_slots
            || self.size.swept < 1 << tree.leaves.depth.0
        {
            return;
        }
        self.size.swept = 0;
        if tree.leaves.leaf_room > 0 {
            tree.leaves.leaf_slots = tree.leaves.leaf_room;
            return;
        }
        tree.leaves.depth.0 -= 1;
        tree.leaves.leaf_slots = full;
        let gone = BucketId(buckets_in(tree.leaves.depth) + 1);
        tree.forget_from(gone);
        tree.cache.forget_from(gone);
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

    #[test]
    fn steps_are_eighths_with_room_between() {
        assert_eq!([64, 65, 80, 81, 97, 113, 129].map(step_above), [64, 80, 80, 96, 112, 128, 160]);
        assert_eq!([0, 1, 2, 3, 5, 8, 9].map(step_above), [1, 1, 2, 3, 5, 8, 10]);
        assert_eq!([1, 2, 64, 65, 80, 128, 100].map(step_below), [0, 1, 56, 64, 64, 112, 96]);
        assert_eq!(step_after(113, 112), 128);
        assert_eq!(step_after(105, 128), 128, "the class below would be more than 15/16 full");
        assert_eq!(step_after(104, 128), 112);
        assert_eq!(step_after(20, 128), 24);
        assert_eq!(step_after(0, 1 << 40), 1);
        assert_eq!(step_after(95, 100), 100, "a class cut by the capacity");
        assert_eq!(step_after(89, 100), 96);
    }

    /// The tree of each class is about half full, and one slot per leaf larger than the one before.
    #[test]
    fn a_step_is_a_slot_of_each_leaf() {
        let config = TreeConfig { leaf_steps: true, ..TreeConfig::new(64, 1 << 30) };
        let mut class = 80;
        while class < 1 << 29 {
            let shape = config.shape_for_live(class, class);
            let slots = shape.slots(4);
            assert!(class.abs_diff(slots / 2) <= 2, "{class} of {slots}");
            let above = config.size_class_above(class);
            let next = config.shape_for_live(above, above);
            let steps = |shape: Shape| 4 * shape.depth.0 as usize + shape.leaf_slots;
            assert_eq!(steps(next), steps(shape) + 1);
            class = above;
        }
    }

    proptest! {
        /// As below, for steps and a sixteenth.
        #[test]
        fn steps_do_not_flap(
            at in 1u64..1 << 30,
            live in 0u64..1 << 31,
            later in 0u64..1 << 31,
            near in prop::bool::ANY,
        ) {
            let class = step_above(at);
            // Mostly they are far apart, so half of the cases bring them close.
            let [live, later] = [live, later].map(|x| if near { class / 2 + x % class } else { x });
            let next = step_after(live, class);
            prop_assert!(live <= next);
            prop_assert_eq!(step_after(live, next), next);
            prop_assert_eq!(step_above(next), next);
            let last = step_after(later, next);
            let turned = (class < next && last < next) || (class > next && last > next);
            if turned {
                prop_assert!(live.abs_diff(later) >= next.min(last) / 16);
            }
        }

        /// The class always holds the live blocks and settles at once. To turn back takes an eighth
        /// of the smaller class.
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
