//! A few byte ranges of a block, kept sorted and apart.

/// Disjoint ranges `start..end`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<(usize, usize)>);

impl Ranges {
    /// One range from 0.
    pub(crate) fn whole(len: usize) -> Self {
        Ranges(vec![(0, len)])
    }

    /// Adds a range and joins it with those it touches.
    pub(crate) fn add(&mut self, mut start: usize, mut end: usize) {
        self.0.retain(|&(s, e)| {
            let apart = e < start || end < s;
            if !apart {
                start = start.min(s);
                end = end.max(e);
            }
            apart
        });
        let at = self.0.partition_point(|&(s, _)| s < start);
        self.0.insert(at, (start, end));
    }

    /// Whether one range contains all of `start..end`.
    pub(crate) fn covers(&self, start: usize, end: usize) -> bool {
        self.0.iter().any(|&(s, e)| s <= start && end <= e)
    }

    /// The ranges in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;

    #[test]
    fn touching_ranges_join() {
        let mut ranges = Ranges::default();
        ranges.add(10, 20);
        ranges.add(30, 40);
        assert!(!ranges.covers(10, 40));
        ranges.add(20, 30);
        assert_eq!(ranges, {
            let mut joined = Ranges::default();
            joined.add(10, 40);
            joined
        });
        ranges.add(0, 5);
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [(0, 5), (10, 40)]);
    }
}
