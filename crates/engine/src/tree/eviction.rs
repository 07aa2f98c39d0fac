//! The choice of paths to write back, and of their order.
//!
//! The schedule is public. It depends only on the number of accesses, never on stash occupancy.
//! (The demand-driven background eviction of the cloud paper's §V-D distinguishes re-reading one
//! file from reading many.)

use super::windows::Windows;
use crate::{BucketId, Leaf, Level};

/// The schedule of rewritten paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// Path ORAM: writes the read paths back. With `extra_every = k > 0`, every k accesses also
    /// read and write one more path, in reverse lexicographic order.
    ReadPaths {
        /// Accesses between extra paths; 0 for none.
        extra_every: u32,
    },
    /// Accesses only remove their block from its path. Every `every` accesses, one path is read and
    /// written, in reverse lexicographic order (Gentry et al.; Ring ORAM §3).
    Scheduled {
        /// Accesses between evictions (Ring ORAM's A).
        every: u32,
    },
    /// As `Scheduled`, many turns at a time ([`TreeOram::begin_window`](super::TreeOram)).
    Windows(Windows),
}

impl Eviction {
    /// Whether read paths are written back too.
    pub fn rewrites_reads(self) -> bool {
        matches!(self, Eviction::ReadPaths { .. })
    }

    /// The rule of windows, if it has one.
    pub fn windows(self) -> Option<Windows> {
        match self {
            Eviction::Windows(windows) => Some(windows),
            _ => None,
        }
    }

    /// The greatest mean number of blocks in a bucket well above the leaves, for any accesses. With
    /// a schedule: half of the blocks that come between two of its turns (Ring ORAM §4), and half a
    /// block in passing.
    pub fn passing_load(self) -> usize {
        match self {
            Eviction::ReadPaths { .. } => usize::MAX,
            Eviction::Scheduled { every } | Eviction::Windows(Windows { every, .. }) => {
                (every as usize + 1).div_ceil(2)
            }
        }
    }

    /// Scheduled paths due in the same round when the access counter moves from `before` to
    /// `after`.
    pub fn due(self, before: u64, after: u64) -> u64 {
        match self {
            Eviction::ReadPaths { extra_every: 0 } | Eviction::Windows(_) => 0,
            Eviction::ReadPaths { extra_every: every } | Eviction::Scheduled { every } => {
                after / u64::from(every) - before / u64::from(every)
            }
        }
    }
}

/// The `turn`-th leaf in reverse lexicographic order. Consecutive turns share as few buckets as
/// possible, and every bucket of a level has its turn equally often.
pub fn reverse_lexicographic(turn: u64, depth: Level) -> Leaf {
    if depth.0 == 0 {
        return Leaf(0);
    }
    Leaf(turn.reverse_bits() >> (64 - depth.0))
}

/// The first turn from `now` on whose path includes a bucket. Its next turn comes after one of
/// every other bucket of the level. The tree's depth makes no difference.
pub fn next_turn(bucket: BucketId, now: u64) -> u64 {
    let period = 1 << bucket.level().0;
    let place = bucket.0 - period;
    let phase = place.reverse_bits().checked_shr(64 - bucket.level().0).unwrap_or(0);
    now + (phase.wrapping_sub(now) & (period - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_leaf_has_its_turn_once_a_round() {
        let depth = Level(5);
        let mut seen = [0; 32];
        for turn in 0..64 {
            seen[reverse_lexicographic(turn, depth).0 as usize] += 1;
        }
        assert_eq!(seen, [2; 32]);
        assert_eq!(reverse_lexicographic(0, depth).0, 0);
        assert_eq!(reverse_lexicographic(1, depth).0, 16, "the other half of the tree comes next");
    }

    #[test]
    fn the_next_turn_is_the_first_whose_path_has_the_bucket() {
        let depth = Level(5);
        for bucket in 1..64 {
            let bucket = BucketId(bucket);
            let passes = |&turn: &u64| {
                let leaf = (32 + reverse_lexicographic(turn, depth).0) >> (5 - bucket.level().0);
                leaf == bucket.0
            };
            for now in 0..70 {
                assert_eq!(Some(next_turn(bucket, now)), (now..).find(passes), "{bucket:?}, {now}");
            }
        }
    }

    #[test]
    fn due_counts_whole_intervals() {
        let every_third = Eviction::Scheduled { every: 3 };
        assert_eq!(every_third.due(0, 1), 0);
        assert_eq!(every_third.due(2, 3), 1);
        assert_eq!(every_third.due(0, 64), 21);
        assert_eq!(Eviction::ReadPaths { extra_every: 0 }.due(0, 100), 0);
    }
}
