//! Ranges of a file to punch.

use crate::medium::Medium;
use std::io;
use std::ops::Range;

/// Ranges that will become zero, none of them empty.
#[derive(Debug, Default)]
pub(super) struct Holes(Vec<Range<u64>>);

impl Holes {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, offset: u64, len: u64) {
        self.add_some(offset..offset.saturating_add(len));
    }

    fn add_some(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.0.push(range);
        }
    }

    /// Whether any overlaps this range.
    pub(super) fn touch(&self, begin: u64, end: u64) -> bool {
        self.0.iter().any(|hole| hole.start < end && begin < hole.end)
    }

    /// Excludes this range from the holes.
    pub(super) fn keep_out(&mut self, begin: u64, end: u64) {
        if self.touch(begin, end) {
            for hole in std::mem::take(&mut self.0) {
                self.add_some(hole.start..hole.end.min(begin.max(hole.start)));
                self.add_some(hole.start.max(end.min(hole.end))..hole.end);
            }
        }
    }

    /// Punches them.
    pub(super) fn punch(&self, medium: &impl Medium) -> io::Result<()> {
        self.0.iter().try_for_each(|hole| medium.punch(hole.start, hole.end - hole.start))
    }
}
