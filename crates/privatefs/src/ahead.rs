//! Reading ahead. Who reads a file from one end to the other waits for the server once for many
//! pages, however few each read is for.

use crate::transactions::TOGETHER;
use std::collections::BTreeMap;

/// A read follows the one before it if so many pages lie between them: those of a kernel may come
/// in another order than they were made.
const NEAR: u64 = 64;
/// Pages that are read ahead at first. Each time there are twice as many.
const FIRST: u64 = 32;

/// Pages of one file that were not read yet. They hold while its inode has the same stamp, which
/// any change of its content changes.
#[derive(Default)]
pub struct Ahead {
    stamp: [u8; 16],
    /// After the newest read.
    next: u64,
    window: u64,
    pages: BTreeMap<u64, Option<Vec<u8>>>,
}

impl Ahead {
    /// What to ask for, so that these pages can be taken: those that are not here, and if the read
    /// follows the one before it, some after them. The file has so many pages.
    pub fn plan(&mut self, read: &[u64], stamp: [u8; 16], end: u64) -> Vec<u64> {
        let (Some(&first), Some(&last)) = (read.first(), read.last()) else { return Vec::new() };
        if self.stamp != stamp {
            (self.stamp, self.pages) = (stamp, BTreeMap::new());
        }
        let follows = (self.next..=self.next + NEAR).contains(&first);
        self.next = last + 1;
        // What was passed over is not kept, so there are never more than two windows.
        self.pages.retain(|page, _| if follows { *page >= first } else { read.contains(page) });
        let mut wanted: Vec<u64> = read.to_vec();
        wanted.retain(|page| !self.pages.contains_key(page));
        if !follows {
            self.window = 0;
        } else if !wanted.is_empty() {
            let room = TOGETHER.saturating_sub(wanted.len()) as u64;
            self.window = (2 * self.window).max(FIRST).min(room);
            let after = last + 1..end.min(last + 1 + self.window);
            wanted.extend(after.filter(|page| !self.pages.contains_key(page)));
        }
        wanted
    }

    /// Keeps pages that were asked for.
    pub fn keep(&mut self, pages: impl Iterator<Item = (u64, Option<Vec<u8>>)>) {
        self.pages.extend(pages);
    }

    /// Takes pages that are read now; those that do not exist are left out.
    pub fn take(&mut self, read: &[u64]) -> BTreeMap<u64, Vec<u8>> {
        let taken = read.iter().map(|page| (*page, self.pages.remove(page)));
        taken.filter_map(|(page, content)| Some((page, content??))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ahead: &mut Ahead, pages: std::ops::Range<u64>, stamp: u8) -> Vec<u64> {
        let pages: Vec<u64> = pages.collect();
        let asked = ahead.plan(&pages, [stamp; 16], 1000);
        ahead.keep(asked.iter().map(|page| (*page, Some(vec![stamp]))));
        assert_eq!(ahead.take(&pages).len(), pages.len());
        asked
    }

    #[test]
    fn reads_in_a_row_ask_seldom_and_others_ask_for_what_they_read() {
        let mut ahead = Ahead::default();
        assert_eq!(read(&mut ahead, 0..4, 1), (0..36).collect::<Vec<_>>());
        for first in (4..36).step_by(4) {
            assert_eq!(read(&mut ahead, first..first + 4, 1), [0; 0]);
        }
        // Twice as many, and out of order.
        assert_eq!(read(&mut ahead, 40..44, 1), (40..108).collect::<Vec<_>>());
        assert_eq!(read(&mut ahead, 36..40, 1), (36..40).collect::<Vec<_>>());
        assert_eq!(read(&mut ahead, 500..501, 1), [500]);
        assert_eq!(read(&mut ahead, 44..48, 1), (44..48).collect::<Vec<_>>(), "they are gone");
        // To the end of the file.
        assert_eq!(read(&mut ahead, 990..991, 1), [990]);
        assert_eq!(read(&mut ahead, 991..992, 1), (991..1000).collect::<Vec<_>>());
        assert_eq!(read(&mut ahead, 992..993, 1), [0; 0]);
        // Somebody wrote.
        assert_eq!(read(&mut ahead, 993..994, 2), (993..1000).collect::<Vec<_>>());
    }

    #[test]
    fn it_keeps_no_more_than_a_window_or_two() {
        let mut ahead = Ahead::default();
        for first in 0..900 {
            read(&mut ahead, first..first + 1, 1);
            assert!(ahead.pages.len() <= 2 * TOGETHER);
        }
    }
}
