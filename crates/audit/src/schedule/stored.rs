//! A set of buckets: the runs at the start of a trace, and the changes since.

use std::collections::HashMap;

/// Buckets by heap index. Its size follows from the number of entries in a trace, not from their
/// values.
#[derive(Clone, Debug, Default)]
pub(super) struct Stored {
    /// Ascending runs: the first, and one beyond the last.
    runs: Vec<(u64, u64)>,
    changed: HashMap<u64, bool>,
}

impl Stored {
    /// The set of these runs; `None` when they are not ascending.
    pub(super) fn of(runs: &[(u64, u64)]) -> Option<Self> {
        let mut stored = Stored::default();
        for &(first, count) in runs {
            if first < stored.runs.last().map_or(1, |run| run.1) {
                return None;
            }
            stored.runs.push((first, first.checked_add(count)?));
        }
        Some(stored)
    }

    /// The number of buckets.
    pub(super) fn count(&self) -> u64 {
        let before: u64 = self.runs.iter().map(|run| run.1 - run.0).sum();
        let is = |stored: bool| {
            let differs =
                move |&(&at, &now): &(&u64, &bool)| now == stored && now != self.began(at);
            self.changed.iter().filter(differs).count() as u64
        };
        before + is(true) - is(false)
    }

    /// Whether it was there at the start of the trace.
    fn began(&self, bucket: u64) -> bool {
        let after = self.runs.partition_point(|run| run.0 <= bucket);
        after > 0 && bucket < self.runs[after - 1].1
    }

    /// All of them, ascending.
    pub(super) fn all(&self) -> Vec<u64> {
        let began = self.runs.iter().flat_map(|&(first, end)| first..end);
        let added = self.changed.iter().filter(|change| *change.1).map(|change| *change.0);
        let mut all: Vec<u64> = began.filter(|&at| self.contains(at)).chain(added).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The last of them.
    pub(super) fn last(&self) -> Option<u64> {
        let added = self.changed.iter().filter(|change| *change.1).map(|change| *change.0).max();
        let kept = |&(first, end): &(u64, u64)| {
            // At most as far down as buckets were removed.
            (first..end).rev().find(|&at| self.contains(at))
        };
        added.max(self.runs.iter().rev().find_map(kept))
    }

    pub(super) fn contains(&self, bucket: u64) -> bool {
        self.changed.get(&bucket).copied().unwrap_or_else(|| self.began(bucket))
    }

    pub(super) fn set(&mut self, bucket: u64, stored: bool) {
        self.changed.insert(bucket, stored);
    }

    /// Forgets the buckets from `end` on.
    pub(super) fn cut(&mut self, end: u64) {
        self.changed.retain(|&bucket, _| bucket < end);
        self.runs.retain(|run| run.0 < end);
        if let Some(last) = self.runs.last_mut() {
            last.1 = last.1.min(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_changes_and_cuts() {
        let mut stored = Stored::of(&[(1, 3), (8, 4)]).expect("ascending");
        let all = |stored: &Stored| (0..20).filter(|&b| stored.contains(b)).collect::<Vec<_>>();
        assert_eq!(all(&stored), [1, 2, 3, 8, 9, 10, 11]);
        stored.set(5, true);
        stored.set(9, false);
        stored.set(12, false);
        stored.set(13, true);
        assert_eq!((stored.count(), all(&stored).len()), (8, 8));
        assert_eq!((stored.last(), stored.all()), (Some(13), all(&stored)));
        stored.cut(10);
        assert_eq!(all(&stored), [1, 2, 3, 5, 8]);
        assert_eq!(stored.count(), 5);
    }

    #[test]
    fn runs_that_overlap_or_overflow_are_no_set() {
        assert!(Stored::of(&[(1, 3), (3, 4)]).is_none());
        assert!(Stored::of(&[(0, 1)]).is_none());
        assert!(Stored::of(&[(2, u64::MAX)]).is_none());
    }
}
