//! The policy: public numbers in, a decision out. When a commit is due, how much may wait for it,
//! how much the store may keep until then, and how far the next one is. It reads nothing and does
//! nothing, so a table of cases tests it.

use crate::tree::tuning::{
    JOURNAL_WITHIN, LEAST_DEFERRED, LEAST_FLUSH, LEAST_JOURNAL, LITTLE_KEPT, MOST_FLUSH,
    MOST_JOURNAL, NEARING, PATHS_WITHIN,
};

/// What there is since the last commit, in public numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// Scheduled paths since the last commit.
    pub paths: u64,
    /// Scheduled paths at which the next one is due.
    pub interval: u64,
    /// Bytes of records in the journal.
    pub journal: u64,
    /// Bytes of stored buckets.
    pub stored: u64,
    /// How many paths before it is due a commit may come early, between operations; `None` if it
    /// may not.
    pub ahead: Option<u64>,
    /// Whether the log of the top has no places for much more.
    pub top_is_short: bool,
}

/// What a commit writes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// All that only memory has, but for a top that its log makes durable.
    Due,
    /// That too.
    All,
}

/// Whether a commit should come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    /// Not yet.
    Later,
    /// As soon as no request waits.
    Near,
    /// Before the next batch.
    Due,
}

impl Progress {
    /// Whether a commit should come.
    pub fn commit(&self) -> Commit {
        let early = |ahead: u64| {
            self.paths_left() <= ahead || self.journal * 4 > journal_limit(self.stored) * 7
        };
        if self.is_due(0, 0) {
            Commit::Due
        } else if self.ahead.is_some_and(early) {
            Commit::Near
        } else {
            Commit::Later
        }
    }

    /// Whether one must come within an operation whose end must not show.
    pub fn is_due_within(&self) -> bool {
        self.is_due(PATHS_WITHIN, JOURNAL_WITHIN)
    }

    fn is_due(&self, paths: u64, journal: u64) -> bool {
        self.top_is_short
            || self.paths >= self.interval + paths
            || self.journal > 2 * journal_limit(self.stored) + journal
    }

    /// Whether a sync may still be a record of the journal, and not a commit.
    pub fn syncs_to_journal(&self) -> bool {
        self.journal < journal_limit(self.stored)
    }

    /// Scheduled paths until a commit is due.
    pub fn paths_left(&self) -> u64 {
        self.interval.saturating_sub(self.paths)
    }

    /// The most deferred bytes now. A commit carries out all, and a caller that meets it waits. So
    /// when callers wait, the bound falls towards a commit and rises again after it: a quarter of
    /// what the paths up to it, or since the last, can carry out, three blocks each.
    pub fn most_deferred(&self, most: usize, block_bytes: usize) -> usize {
        let Some(ahead) = self.ahead else { return most };
        let left = self.paths_left().saturating_sub(ahead);
        let accesses = self.paths.min(left) as usize * 3;
        most.min((accesses * block_bytes / 4).max(LEAST_DEFERRED))
    }

    /// The bytes that the store may keep: less, path by path, in the last operations before a
    /// commit, and little in the very last. Each operation then waits for a part of the kept data;
    /// neither the commit nor one of them waits for all. `None` if commits do not come early.
    pub fn most_kept(&self, most: usize) -> Option<usize> {
        let ahead = self.ahead?;
        let little = LITTLE_KEPT.min(most);
        let first = self.interval.min(NEARING * ahead);
        let last = (self.interval / 2).min(2 * ahead);
        let left = self.paths_left().clamp(last, first) - last;
        Some(little + (most - little) * left as usize / (first - last).max(1) as usize)
    }
}

/// Bytes of journal that make a sync a commit; at twice as many any operation is one.
pub(crate) fn journal_limit(stored: u64) -> u64 {
    (stored / 16).clamp(LEAST_JOURNAL, MOST_JOURNAL)
}

/// Scheduled paths from a commit to the next: for a sixteenth of the stored bytes, or an eighth if
/// the store has much room. Each path leaves two buckets to write before the commit.
pub(crate) fn interval(stored: u64, roomy: bool, bucket_bytes: u64) -> u64 {
    let double = if roomy { 2 } else { 1 };
    let flush = (double * stored / 16).clamp(LEAST_FLUSH, double * MOST_FLUSH);
    (flush / (2 * bucket_bytes)).max(1)
}

#[cfg(test)]
mod tests {
    use super::Commit::{Due, Later, Near};
    use super::*;

    const MIB: u64 = 1 << 20;

    fn progress(paths: u64, journal: u64, ahead: Option<u64>) -> Progress {
        Progress { paths, interval: 1000, journal, stored: 320 * MIB, ahead, top_is_short: false }
    }

    /// 320 MiB are stored, so 20 MiB of journal are the limit.
    #[test]
    fn when_a_commit_comes() {
        let table = [
            // paths, journal in MiB, paths ahead, decision
            (0, 0, None, Later),
            (999, 0, None, Later),
            (1000, 0, None, Due),
            (0, 40, None, Later),
            (0, 41, None, Due),
            (899, 0, Some(100), Later),
            (900, 0, Some(100), Near),
            (999, 0, Some(100), Near),
            (1000, 0, Some(100), Due),
            (0, 35, Some(100), Later),
            (0, 36, Some(100), Near),
            (0, 41, Some(100), Due),
        ];
        for (paths, journal, ahead, decision) in table {
            let progress = progress(paths, journal * MIB, ahead);
            assert_eq!(progress.commit(), decision, "{progress:?}");
        }
    }

    #[test]
    fn a_long_journal_makes_a_sync_a_commit() {
        for (journal, short) in [(0, true), (20 * MIB - 1, true), (20 * MIB, false)] {
            assert_eq!(progress(0, journal, None).syncs_to_journal(), short, "{journal}");
        }
    }

    #[test]
    fn an_operation_ends_before_a_commit_unless_it_is_long() {
        let table = [
            (1000 + PATHS_WITHIN - 1, 0, false),
            (1000 + PATHS_WITHIN, 0, true),
            (0, 42 * MIB, false),
            (0, 42 * MIB + 1, true),
        ];
        for (paths, journal, due) in table {
            assert_eq!(progress(paths, journal, None).is_due_within(), due, "{paths} {journal}");
        }
    }

    #[test]
    fn less_and_less_may_wait_towards_a_commit() {
        let most = |paths| progress(paths, 0, Some(100)).most_deferred(2 << 20, 16 << 10);
        // 12 KiB a path: as many as since the last commit, or as are left before the early one.
        let table = [
            (0, LEAST_DEFERRED),
            (50, (50 * 12) << 10),
            (400, 2 << 20),
            (850, (50 * 12) << 10),
            (900, LEAST_DEFERRED),
            (2000, LEAST_DEFERRED),
        ];
        for (paths, bytes) in table {
            assert_eq!(most(paths), bytes, "after {paths}");
        }
        assert_eq!(progress(0, 0, None).most_deferred(2 << 20, 16 << 10), 2 << 20);
    }

    #[test]
    fn the_store_keeps_less_and_less_towards_a_commit() {
        let kept = |paths| progress(paths, 0, Some(50)).most_kept(96 << 20);
        let (most, little) = (96 << 20, LITTLE_KEPT);
        let table = [
            (0, most),
            (600, most),
            (750, little + (most - little) / 2),
            (900, little),
            (1000, little),
        ];
        for (paths, bytes) in table {
            assert_eq!(kept(paths), Some(bytes), "after {paths}");
        }
        assert_eq!(progress(0, 0, None).most_kept(most), None);
        assert_eq!(progress(0, 0, Some(50)).most_kept(1 << 20), Some(1 << 20), "little memory");
    }

    #[test]
    fn how_far_the_next_commit_is() {
        let bucket = 80 << 10;
        let table = [
            // stored, much room, bytes that the paths leave to write
            (0, false, 16 * MIB),
            (0, true, 16 * MIB),
            (320 * MIB, false, 20 * MIB),
            (320 * MIB, true, 40 * MIB),
            (100 << 30, false, 128 * MIB),
            (100 << 30, true, 256 * MIB),
        ];
        for (stored, roomy, flush) in table {
            assert_eq!(interval(stored, roomy, bucket), flush / (2 * bucket), "{stored} {roomy}");
        }
        assert_eq!(interval(0, false, 1 << 30), 1, "at least one path");
        assert_eq!([0, 320 * MIB, 1 << 40].map(journal_limit), [4 * MIB, 20 * MIB, 256 * MIB]);
    }
}
