//! Aligned windows of the eviction schedule, for stores of whole objects.
//!
//! Turn `t` goes through the bucket of level `l` whose place is `t mod 2^l`, bits reversed. A
//! window is `2^w` turns from a multiple of `2^w` on. At a level `l >= w`, window `k` rewrites
//! exactly the buckets whose place has `k mod 2^(l-w)` in its low bits, reversed: a fixed set. The
//! sets of a level are disjoint, and each comes again after `2^(l-w)` windows. So the newest
//! version of a bucket is in the object of its level and the newest window that had its set. The
//! window counter alone says which. Growth changes nothing at the levels above.

use super::geometry::Shape;
use crate::{BucketId, Level};

/// The rule of the windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Accesses for each turn (Ring ORAM's A).
    pub every: u32,
    /// The binary logarithm of the turns in a window (w).
    pub log_turns: u32,
    /// Levels of the tree that are in memory only, its *pool*; at least w.
    pub pool_levels: u32,
}

/// Where the newest stored version of a bucket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketSpot {
    /// Its level.
    pub level: Level,
    /// The window that wrote it.
    pub window: u64,
    /// Its number among the buckets that this window wrote at this level.
    pub index: u64,
}

impl Windows {
    /// Whether it can work.
    pub(super) fn is_possible(self) -> bool {
        (1..=64).contains(&self.every)
            && self.log_turns <= 10
            && (self.log_turns.max(1)..=20).contains(&self.pool_levels)
    }

    /// Turns in a window.
    pub fn turns(self) -> u64 {
        1 << self.log_turns
    }

    /// Accesses from one window to the next.
    pub fn accesses(self) -> u64 {
        u64::from(self.every) << self.log_turns
    }

    /// Buckets in the pool.
    pub fn pool_buckets(self) -> u64 {
        (1 << self.pool_levels) - 1
    }

    /// The first bucket below the pool.
    pub fn first_stored(self) -> BucketId {
        BucketId(1 << self.pool_levels)
    }

    /// Where a bucket below the pool is after `done` windows; `None` if none of them had its turn.
    pub fn spot(self, bucket: BucketId, done: u64) -> Option<BucketSpot> {
        let level = bucket.level();
        let place = bucket.0 - (1 << level.0);
        // The low bits of the turn are the high ones of the place.
        let turn = place.reverse_bits().checked_shr(64 - level.0).unwrap_or(0);
        let (index, set) = (turn & (self.turns() - 1), turn >> self.log_turns);
        let period = 1 << level.0.saturating_sub(self.log_turns);
        let last = done.checked_sub(set + 1)? / period * period + set;
        Some(BucketSpot { level, window: last, index })
    }

    /// The bucket of a level that is at this place of its window's object.
    pub fn bucket(self, spot: BucketSpot) -> BucketId {
        let bits = spot.level.0;
        let turn = (spot.window << self.log_turns | spot.index) & ((1 << bits) - 1);
        BucketId(1 << bits | turn.reverse_bits().checked_shr(64 - bits).unwrap_or(0))
    }

    /// The window before `window` that wrote the same buckets of a level, if there was one.
    pub fn before(self, level: Level, window: u64) -> Option<u64> {
        window.checked_sub(1 << level.0.saturating_sub(self.log_turns))
    }
}

/// The shapes that the tree had at its windows. With the counter of the windows, they say which
/// buckets are stored and with how many slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shapes(Vec<(u64, Shape)>);

impl Shapes {
    /// From what a state holds: ascending windows, each with the shape from it on.
    pub fn of(shapes: Vec<(u64, Shape)>) -> Option<Self> {
        shapes.windows(2).all(|two| two[0].0 < two[1].0).then_some(Self(shapes))
    }

    /// All of them.
    pub fn all(&self) -> &[(u64, Shape)] {
        &self.0
    }

    /// Notes the shape of a window: the depth, and the slots that it left in each leaf.
    pub fn note(&mut self, window: u64, shape: Shape) {
        if self.0.last().is_none_or(|last| last.1 != shape) {
            self.0.push((window, shape));
        }
        // A window before the last one of the deepest level has no set of its own any more.
        let deepest = self.0.iter().map(|it| it.1.depth.0).max().unwrap_or(0);
        let oldest = window.saturating_sub(1 << deepest.min(62));
        let void = self.0.iter().skip(1).take_while(|it| it.0 <= oldest).count();
        self.0.drain(..void);
    }

    /// The slots of the buckets of a level that a window wrote; 0 if it wrote none there.
    pub fn slots(&self, level: Level, window: u64, full: usize) -> usize {
        let later = self.0.partition_point(|it| it.0 <= window);
        let Some((_, shape)) = later.checked_sub(1).map(|at| self.0[at]) else { return 0 };
        match level.cmp(&shape.depth) {
            std::cmp::Ordering::Less => full,
            std::cmp::Ordering::Equal => shape.leaf_slots,
            std::cmp::Ordering::Greater => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::eviction::reverse_lexicographic;
    use std::collections::HashMap;

    /// Every bucket is where a table of all turns has it.
    #[test]
    fn the_counter_says_where_every_bucket_is() {
        for (log_turns, depth) in [(0, 6), (1, 7), (2, 7), (3, 9), (5, 11)] {
            let rule = Windows { every: 4, log_turns, pool_levels: log_turns.max(1) };
            let mut table = HashMap::new();
            for window in 0..3 << (depth - log_turns) {
                for turn in window << log_turns..(window + 1) << log_turns {
                    let leaf = reverse_lexicographic(turn, Level(depth));
                    for level in log_turns.max(1)..=depth {
                        let bucket = leaf.bucket_at(Level(level), Level(depth));
                        table.insert(bucket, (window, turn & (rule.turns() - 1)));
                    }
                }
                for bucket in (1 << rule.pool_levels..2u64 << depth).map(BucketId) {
                    let spot = rule.spot(bucket, window + 1);
                    let found = spot.map(|spot| (spot.window, spot.index));
                    assert_eq!(found, table.get(&bucket).copied(), "{bucket:?} after {window}");
                    assert!(spot.is_none_or(|spot| rule.bucket(spot) == bucket));
                }
            }
        }
    }

    #[test]
    fn shapes_say_what_a_window_wrote() {
        let shape = |depth, leaf_slots| Shape { depth: Level(depth), leaf_slots };
        let mut shapes = Shapes::default();
        shapes.note(0, shape(5, 2));
        shapes.note(1, shape(5, 2));
        shapes.note(3, shape(6, 1));
        shapes.note(9, shape(6, 0));
        let slots = |level, window| shapes.slots(Level(level), window, 4);
        assert_eq!([slots(4, 0), slots(5, 2), slots(6, 2)], [4, 2, 0]);
        assert_eq!([slots(5, 3), slots(6, 8), slots(6, 9), slots(7, 9)], [4, 1, 0, 0]);
        shapes.note(67, shape(6, 0));
        assert_eq!(shapes.all().len(), 2, "the first is void");
        shapes.note(73, shape(6, 0));
        assert_eq!(shapes.slots(Level(6), 9, 4), 0);
        assert!(Shapes::of(shapes.all().to_vec()).is_some());
        assert!(Shapes::of(vec![(3, shape(1, 1)), (3, shape(2, 1))]).is_none());
    }
}
