//! The log of the top of a tree: the entries that each round owes, and what a state stores of it.

use crate::trace::{TraceLogRule, TraceRule};

/// More entries than any round has.
const MOST_ENTRIES: u64 = 1 << 20;
/// Bytes of an index of the top for each bucket, for each of its slots, and besides: the numbers of
/// the log, and the homes of the stash.
const INDEX_BUCKET: u64 = 64;
const INDEX_SLOT: u64 = 40;
const INDEX_REST: u64 = 6 * 8 + 8 + 64 * 24;

/// What is known of a log.
#[derive(Clone, Debug, Default)]
pub(super) struct LogModel {
    /// The number of the next entry.
    next: u64,
    /// Quarters of an entry that are owed.
    quarters: u64,
}

impl LogModel {
    /// One that a session begins with.
    pub(super) fn begin(&mut self, log: &TraceLogRule) {
        *self = Self { next: log.next, quarters: log.owed };
    }

    /// The entries of a round, as offsets and bytes: one and a quarter for each access.
    pub(super) fn round(&mut self, rule: &TraceRule, accesses: u64) -> Vec<(u64, u64)> {
        let Some(log) = &rule.log else { return Vec::new() };
        self.quarters = self.quarters.saturating_add(accesses.saturating_mul(5));
        let due = self.quarters / 4;
        self.quarters %= 4;
        let first = self.next;
        self.next = first.saturating_add(due);
        let place = |number: u64| (number % log.places.max(1)).saturating_mul(log.slot_bytes);
        let numbers = first..first.saturating_add(due.min(MOST_ENTRIES));
        numbers.map(|number| (place(number), log.entry_bytes)).collect()
    }

    /// The fault of a log that goes on, begins or ends.
    pub(super) fn change(
        &mut self,
        (before, rule): (&TraceRule, &TraceRule),
        all_is_stored: bool,
        after_commit: bool,
    ) -> Option<String> {
        let of = |log: &TraceLogRule| (log.buckets, log.places, log.entry_bytes, log.slot_bytes);
        let whole = all_is_stored && after_commit;
        match (&before.log, &rule.log) {
            (None, None) => None,
            (Some(old), Some(log)) if of(old) == of(log) && log.next == self.next => {
                // One that begins anew owes what the stash may have.
                let right = log.owed == self.quarters || all_is_stored;
                self.begin(log);
                (!right).then(|| "the log of the top owes other entries".into())
            }
            (_, Some(log)) => {
                self.begin(log);
                (!whole).then(|| "a log of the top began where not all was written back".into())
            }
            (Some(_), None) => {
                (!whole).then(|| "the log of the top ended before all was written back".into())
            }
        }
    }
}

/// Bytes of a state's index of a top that has as many buckets to store.
pub(super) fn index_bytes(rule: &TraceRule, changed: u64) -> u64 {
    // A commit that finds nothing in the log ends it.
    if rule.log.is_none() || changed == 0 {
        return 0;
    }
    INDEX_REST + (INDEX_BUCKET + INDEX_SLOT * u64::from(rule.slots)) * changed
}
