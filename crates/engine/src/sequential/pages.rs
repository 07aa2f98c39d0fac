//! Where the pages of the access time map are (§6.3).

use super::ids::Flush;
use crate::BlockId;

/// Bytes of a time in a page.
pub(super) const TIME_BYTES: usize = 4;

/// The pages of an engine; there are none when the map is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pages {
    /// The address of the first page, after the last block of data.
    pub first: u64,
    pub count: u64,
    /// Pages that have their turn in each flush.
    pub each_flush: u64,
    pub times_per_page: u64,
}

impl Pages {
    /// The page with the time of a block.
    pub fn of(&self, block: BlockId) -> BlockId {
        BlockId(self.first + block.0 / self.times_per_page)
    }

    /// The pages that have their turn in a flush.
    pub fn due(&self, flush: Flush) -> impl Iterator<Item = BlockId> + use<> {
        let Pages { first, count, each_flush, .. } = *self;
        let from = u128::from(flush.0) * u128::from(each_flush);
        let due = from..from + u128::from(each_flush);
        due.filter(move |_| count > 0)
            .map(move |at| BlockId(first + (at % u128::from(count)) as u64))
    }

    /// The first flush from this one on in which a page has its turn.
    pub fn next_due(&self, page: BlockId, flush: Flush) -> Flush {
        let cursor = u128::from(flush.0) * u128::from(self.each_flush) % u128::from(self.count);
        let wait = (page.0 - self.first + self.count - cursor as u64) % self.count;
        Flush(flush.0 + wait / self.each_flush)
    }

    /// The data blocks whose times are in a page.
    pub fn blocks(&self, page: BlockId) -> std::ops::Range<u64> {
        let from = (page.0 - self.first) * self.times_per_page;
        from..(from + self.times_per_page).min(self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_due_when_it_has_its_turn_next() {
        for (count, each_flush) in [(1, 1), (1, 3), (4, 1), (5, 2), (7, 3), (3, 5)] {
            let pages = Pages { first: 100, count, each_flush, times_per_page: 16 };
            for (flush, page) in (0..20).flat_map(|flush| (0..count).map(move |it| (flush, it))) {
                let page = BlockId(100 + page);
                let due = |flush: &u64| pages.due(Flush(*flush)).any(|it| it == page);
                let next = (flush..).find(due).expect("it has its turn");
                assert_eq!(pages.next_due(page, Flush(flush)), Flush(next), "{pages:?}, {flush}");
            }
        }
    }
}
