//! Records of the journal: consecutive, each of a length that follows from public numbers.
//!
//! A batch of n operations has an intent of 96 + 8n bytes, rounded up to whole pages, and beyond
//! eight pages to eighths of a power of two. A round of maintenance and a change of size have one
//! with n = 0. The volume states the length of a record of written bytes; the model checks that it
//! is a size class. A record that extends the journal has zeros after it, which only its length
//! shows.

use std::collections::VecDeque;

const PAGE: u64 = 4096;
/// Bytes of an intent besides its operations.
const INTENT: u64 = 96;
/// The journal grows ahead by an eighth of its size, between these bounds.
const LEAST_AHEAD: u64 = 64 << 10;
const MOST_AHEAD: u64 = 1 << 20;

/// The length of a record that needs this many bytes.
pub(crate) fn size_class(bytes: u64) -> u64 {
    let step = bytes.checked_next_power_of_two().map_or(PAGE, |power| (power / 8).max(PAGE));
    bytes.checked_next_multiple_of(step).unwrap_or(u64::MAX)
}

/// The length of the intent of this many operations.
pub(crate) fn intent(operations: u64) -> u64 {
    size_class(INTENT.saturating_add(operations.saturating_mul(8)))
}

/// The end of an object that grew for a record that ends here.
pub(crate) fn ahead(end: u64) -> u64 {
    end.saturating_add((end / 8).clamp(LEAST_AHEAD, MOST_AHEAD))
}

/// The most operations ahead of the durable records, and the most of a batch that adds to them.
const MOST_SHOWN: u64 = 256;
const MOST_UNSYNCED: u64 = 32;

/// A record at this offset, of this length; and its explanation, once known.
#[derive(Clone, Debug)]
struct Appended {
    offset: u64,
    len: u64,
    was: Option<(u64, String)>,
}

/// The store's view of the journal.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    appended: VecDeque<Appended>,
    /// The offset of the next record; `None` while unknown.
    next: Option<u64>,
    /// The length of the object, if known.
    length: Option<u64>,
    synced: bool,
    /// Operations shown since the last sync began.
    ahead: u64,
}

impl Journal {
    /// Records a write.
    pub(super) fn wrote(&mut self, offset: u64, len: u64) {
        self.appended.push_back(Appended { offset, len, was: None });
        self.synced = false;
    }

    /// Records a sync.
    pub(super) fn synced(&mut self) {
        (self.synced, self.ahead) = (true, 0);
    }

    /// Records that this many operations were shown; gives a fault if too many are ahead of their
    /// records.
    pub(super) fn showed(&mut self, operations: u64) -> Option<String> {
        if self.synced {
            return None;
        }
        self.ahead += operations;
        let most = MOST_SHOWN + MOST_UNSYNCED;
        (self.ahead > most).then(|| format!("{} operations ran ahead of a sync", self.ahead))
    }

    /// Records a cut.
    pub(super) fn cut(&mut self, len: u64) {
        self.length = Some(len);
    }

    /// Whether a record lacks an explanation.
    pub(super) fn waits(&self) -> bool {
        self.appended.iter().any(|record| record.was.is_none())
    }

    /// Whether the current reads were announced before, durably.
    pub(super) fn is_durable(&self) -> bool {
        self.synced
    }

    /// Begins a session: the next offset and the object's length are unknown.
    pub(super) fn begin(&mut self) {
        *self = Journal::default();
    }

    /// Restarts the records after a durable commit. Returns a fault in those before it.
    pub(super) fn restart(&mut self) -> Option<String> {
        self.next = Some(0);
        let left = self.appended.len();
        self.appended.clear();
        (left > 0).then(|| format!("{left} records before a commit are of nothing that was shown"))
    }

    /// Explains the oldest record as this intent. Returns its fault, if any.
    pub(super) fn take_intent(&mut self, operations: u64) -> Option<String> {
        let Some(record) = self.appended.iter_mut().find(|record| record.was.is_none()) else {
            return Some("paths were read that no record announces".into());
        };
        let what = format!("the intent of {operations} operations");
        record.was = Some((intent(operations), what));
        self.explain()
    }

    /// Explains the newest record, of this many bytes. Returns its fault, if any.
    pub(super) fn take_newest(&mut self, bytes: u64, what: &str) -> Option<String> {
        let Some(record) = self.appended.iter_mut().rev().find(|record| record.was.is_none())
        else {
            return Some(format!("{what} was said to be written, and nothing was"));
        };
        record.was = Some((bytes, what.into()));
        self.explain()
    }

    /// Judges the explained records, in the order of their writes.
    fn explain(&mut self) -> Option<String> {
        let mut wrong = None;
        while let Some(record) = self.appended.pop_front() {
            let Some((bytes, what)) = &record.was else {
                self.appended.push_front(record);
                break;
            };
            wrong = wrong.or(self.judge(&record, *bytes, what));
        }
        wrong
    }

    fn judge(&mut self, record: &Appended, bytes: u64, what: &str) -> Option<String> {
        let Appended { offset, len, .. } = *record;
        let end = offset.saturating_add(bytes);
        let before = self.next.replace(end);
        let grows = match self.length {
            Some(length) => end > length,
            None => len != bytes,
        };
        let right = if grows { ahead(end) - offset } else { bytes };
        if grows {
            self.length = Some(ahead(end));
        }
        if len != right {
            return Some(format!("{what} took {len} bytes at {offset}, not {right}"));
        }
        let follows = before.is_none_or(|before| offset == before);
        (!follows || !offset.is_multiple_of(PAGE))
            .then(|| format!("{what} went to {offset}, not to {before:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_operations_run_ahead_of_a_sync() {
        let mut journal = Journal::default();
        let mut show = |synced: bool, operations| {
            journal.wrote(0, 4096);
            if synced {
                journal.synced();
            }
            journal.showed(operations)
        };
        assert!(show(false, 288).is_none());
        assert!(show(false, 1).is_some(), "one more");
        assert!(show(true, 256).is_none());
        assert!(show(false, 288).is_none(), "the record of that batch was synced");
    }

    #[test]
    fn lengths_are_pages_and_then_eighths() {
        assert_eq!((intent(0), intent(256), intent(500), intent(501)), (4096, 4096, 4096, 8192));
        assert_eq!(size_class((1 << 20) + 1), (1 << 20) + (1 << 18));
        assert_eq!(
            (ahead(4096), ahead(1 << 20), ahead(1 << 30)),
            (69_632, 1_179_648, (1 << 30) + (1 << 20))
        );
    }

    #[test]
    fn a_record_is_explained_by_its_length_alone() {
        let mut journal = Journal::default();
        journal.restart();
        journal.cut(0);
        journal.wrote(0, ahead(4096));
        assert!(journal.take_intent(9).is_none());
        journal.wrote(4096, 4096);
        assert!(journal.take_intent(9).is_none());
        journal.wrote(8192, 8192);
        assert!(journal.take_intent(9).is_some(), "a page more");
        journal.wrote(8192 + 4096, 20_480);
        assert!(journal.take_newest(20_480, "a record").is_none());
        assert!(journal.take_intent(1).is_some(), "there is none");
        journal.wrote(65_536, 8192);
        assert!(journal.take_newest(8192, "a record").is_some(), "a gap, and it makes it longer");
        journal.wrote(1, 4096);
        assert!(journal.restart().is_some(), "of nothing");
    }
}
