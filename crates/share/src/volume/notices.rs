//! The newest notices: what each batch changed. They are in memory only. A client that misses one
//! sees that, and forgets all that it has in its caches.

use super::limits::MOST_NOTICES;
use oblivio_store::share::{MOST_ANSWERS, Number, SealedNotice};
use std::collections::VecDeque;

/// The notices, by their records.
#[derive(Debug, Default)]
pub(super) struct Notices(VecDeque<(Number, Vec<u8>)>);

impl Notices {
    /// Takes that of a new record.
    pub fn take(&mut self, number: Number, sealed: &[u8]) {
        self.0.push_back((number, sealed.to_vec()));
        if self.0.len() > MOST_NOTICES {
            self.0.pop_front();
        }
    }

    /// Those of the records from this one on, and before that one.
    pub fn of(&self, from: Number, before: Number) -> Vec<SealedNotice> {
        let first = self.0.partition_point(|(number, _)| *number < from);
        let some = self.0.range(first..).take_while(|(number, _)| *number < before);
        let notice = |(number, sealed): &(Number, Vec<u8>)| SealedNotice {
            number: *number,
            sealed: sealed.clone(),
        };
        some.take(MOST_ANSWERS).map(notice).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_given_in_order() {
        let mut notices = Notices::default();
        let count = MOST_NOTICES as u64 + 5;
        (0..count).for_each(|at| notices.take(Number(2 * at), &at.to_le_bytes()));
        let numbers = |from, before| -> Vec<u64> {
            notices.of(Number(from), Number(before)).iter().map(|it| it.number.0).collect()
        };
        assert_eq!(numbers(0, u64::MAX)[..2], [10, 12], "five are gone");
        assert_eq!(numbers(0, u64::MAX).len(), MOST_ANSWERS);
        assert_eq!(numbers(101, 106), [102, 104]);
        assert!(numbers(104, 104).is_empty());
        assert_eq!(numbers(2 * count - 3, u64::MAX), [2 * count - 2]);
        assert!(numbers(2 * count, u64::MAX).is_empty());
    }
}
