//! Records of the journal: one after the other, each of a length that follows from public numbers.
//!
//! A batch of n operations has an intent of 96 + 8n bytes, in whole pages and beyond eight of them
//! in eighths of a power of two; so have a round of maintenance and a change of size, with n = 0.
//! What a record of written bytes takes, the volume says; that it is a size class, the model
//! judges. A record that makes the journal longer brings zeros, by its length alone.

use std::collections::VecDeque;

const PAGE: u64 = 4096;
/// Bytes of an intent beside its operations.
const INTENT: u64 = 96;
/// An eighth of what is there, between these, is written ahead.
const LEAST_AHEAD: u64 = 64 << 10;
const MOST_AHEAD: u64 = 1 << 20;

/// The length of a record that needs so many bytes.
pub(crate) fn size_class(bytes: u64) -> u64 {
    let step = bytes.checked_next_power_of_two().map_or(PAGE, |power| (power / 8).max(PAGE));
    bytes.checked_next_multiple_of(step).unwrap_or(u64::MAX)
}

/// The length of the intent of so many operations.
pub(crate) fn intent(operations: u64) -> u64 {
    size_class(INTENT.saturating_add(operations.saturating_mul(8)))
}

/// The end of an object that was made longer for a record that ends here.
pub(crate) fn ahead(end: u64) -> u64 {
    end.saturating_add((end / 8).clamp(LEAST_AHEAD, MOST_AHEAD))
}

/// A record that was written here, of so many bytes; and what it was, once that is known.
#[derive(Clone, Debug)]
struct Appended {
    offset: u64,
    len: u64,
    was: Option<(u64, String)>,
}

/// The journal as the store saw it.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    appended: VecDeque<Appended>,
    /// Where the next record goes; `None` while that is not known.
    next: Option<u64>,
    /// How long the object is, if that is known.
    length: Option<u64>,
    synced: bool,
}

impl Journal {
    /// Bytes were written.
    pub(super) fn wrote(&mut self, offset: u64, len: u64) {
        self.appended.push_back(Appended { offset, len, was: None });
        self.synced = false;
    }

    /// It was made durable.
    pub(super) fn synced(&mut self) {
        self.synced = true;
    }

    /// It was cut.
    pub(super) fn cut(&mut self, len: u64) {
        self.length = Some(len);
    }

    /// Whether a record waits to be explained.
    pub(super) fn waits(&self) -> bool {
        self.appended.iter().any(|record| record.was.is_none())
    }

    /// Whether what is read now was said before, durably.
    pub(super) fn is_durable(&self) -> bool {
        self.synced
    }

    /// A session begins: where records go, and how long the object is, is not known yet.
    pub(super) fn begin(&mut self) {
        *self = Journal::default();
    }

    /// A commit is durable: records begin again. What is wrong with those before it.
    pub(super) fn restart(&mut self) -> Option<String> {
        self.next = Some(0);
        let left = self.appended.len();
        self.appended.clear();
        (left > 0).then(|| format!("{left} records before a commit are of nothing that was shown"))
    }

    /// The oldest record was this intent; what is wrong with it.
    pub(super) fn take_intent(&mut self, operations: u64) -> Option<String> {
        let Some(record) = self.appended.iter_mut().find(|record| record.was.is_none()) else {
            return Some("paths were read that no record announces".into());
        };
        let what = format!("the intent of {operations} operations");
        record.was = Some((intent(operations), what));
        self.explain()
    }

    /// The newest record was this one, of so many bytes; what is wrong with it.
    pub(super) fn take_newest(&mut self, bytes: u64, what: &str) -> Option<String> {
        let Some(record) = self.appended.iter_mut().rev().find(|record| record.was.is_none())
        else {
            return Some(format!("{what} was said to be written, and nothing was"));
        };
        record.was = Some((bytes, what.into()));
        self.explain()
    }

    /// Judges the records that are known, in the order in which they were written.
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
