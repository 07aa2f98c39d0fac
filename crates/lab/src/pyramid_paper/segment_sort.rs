//! A filter by segment sort (§5.4): a list of sealed positions and of every segment's number is
//! sorted so that each segment's number follows its positions; one pass over it makes the segments.
//!
//! The paper writes a real or a dummy segment for each element, then sorts again by segment number
//! and cuts off the dummies. That second sort cannot be an oblivious merge sort, because its input
//! is sorted already (see [`super::merge_sort`]); a third would have to bring the list in random
//! order first. It is not needed either: the segments come in their order, and how far their places
//! in the list deviate from even spacing is bounded like everything here. So the pass puts segments
//! into a buffer and writes them at an even pace. This saves `k*m + S` sealed segments and the two
//! sorts of them, for a buffer of a few segments.
//!
//! The sort needs its input in random order too. Positions are: a PRF draws them. The numbers of
//! the segments are put in the order of their reversed bits, of which every part is spread evenly.

use super::bloom_filter::{BitPosition, FilterShape, Segment};
use super::ids::SegmentNumber;
use super::merge_sort::Element;
use super::pace::{Pace, deviation};
use std::collections::VecDeque;

/// Bytes of an element's payload; with its key, 32 bytes.
pub const POSITION_BYTES: usize = 16;

/// The element for a position. Of an item slot without an item, it sets nothing.
pub fn position(at: BitPosition, sets: bool) -> Element {
    let mut payload = vec![0; POSITION_BYTES];
    payload[..2].copy_from_slice(&at.bit().to_le_bytes());
    payload[2] = u8::from(sets);
    Element { key: u128::from(at.segment().0) << 1, payload }
}

/// The element for a segment's number; it follows the segment's positions.
pub fn number(segment: SegmentNumber) -> Element {
    Element { key: u128::from(segment.0) << 1 | 1, payload: vec![0; POSITION_BYTES] }
}

/// All segments' numbers, evenly spread.
pub fn spread(segments: u64) -> impl Iterator<Item = SegmentNumber> {
    let size = segments.next_power_of_two();
    let shift = 64 - size.trailing_zeros();
    // A shift by 64 is none of the language's: one segment has number 0.
    let reversed = move |n: u64| n.reverse_bits().checked_shr(shift).unwrap_or(0);
    (0..size).map(reversed).filter(move |&n| n < segments).map(SegmentNumber)
}

/// Elements of the list.
pub fn list_len(shape: FilterShape, items: u64) -> u64 {
    items * u64::from(shape.hashes) + shape.segments
}

/// The pass over the sorted list.
#[derive(Debug)]
pub struct Gather {
    pace: Pace,
    read: u64,
    written: u64,
    current: Segment,
    ready: VecDeque<Segment>,
}

/// The pass has no segment when one is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSegment;

impl Gather {
    /// A pass over the list of a filter for `items`.
    pub fn new(shape: FilterShape, items: u64, lambda_squared: u64) -> Self {
        let input = list_len(shape, items);
        // Segment s comes after the positions of all segments up to it: a binomial number, whose
        // deviation is that of halves at most. Its own positions are one segment's share more.
        let share = input.div_ceil(shape.segments.max(1));
        let lag = deviation(lambda_squared, input) + share;
        let pace = Pace { input, output: shape.segments, lag };
        let current = Segment::EMPTY;
        Self { pace, read: 0, written: 0, current, ready: VecDeque::new() }
    }

    /// Takes the next element of the list; the segments that are due.
    ///
    /// # Errors
    /// If none is there.
    pub fn take(&mut self, element: &Element) -> Result<Vec<Segment>, NoSegment> {
        if element.key & 1 == 1 {
            self.ready.push_back(std::mem::replace(&mut self.current, Segment::EMPTY));
        } else if let [low, high, 1, ..] = element.payload[..] {
            self.current.set(u16::from_le_bytes([low, high]));
        }
        self.read += 1;
        let due = self.pace.due(self.read) - self.written;
        self.written += due;
        (0..due).map(|_| self.ready.pop_front().ok_or(NoSegment)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pyramid_paper::bloom_filter::FilterRule;
    use crate::pyramid_paper::ids::{Generation, Height, ITEM_ID_BYTES, ItemId, LevelId};
    use oblivio_crypto::Prf;

    #[test]
    fn every_number_comes_once_and_every_part_is_spread() {
        for segments in [1, 2, 3, 100, 1000] {
            let all: Vec<u64> = spread(segments).map(|it| it.0).collect();
            let mut sorted = all.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..segments).collect::<Vec<_>>());
        }
        let all: Vec<u64> = spread(1000).map(|it| it.0).collect();
        for part in all.chunks(100) {
            let low = part.iter().filter(|&&n| n < 500).count();
            assert!((47..=53).contains(&low), "{low}");
        }
    }

    /// The filter that the sort makes is the one that set bits would make.
    #[test]
    fn the_segments_are_those_of_set_bits() {
        let prf = Prf::from_seed(2);
        let level = LevelId { height: Height(1), generation: Generation(1), star: false };
        for (items, real) in [(8u64, 8u64), (8, 0), (64, 40), (512, 512)] {
            let shape = FilterRule { hashes: 6, bits_per_item: 100 }.shape(items);
            let mut expected = vec![Segment::EMPTY; shape.segments as usize];
            let mut list: Vec<Element> = spread(shape.segments).map(number).collect();
            for item in 0..items {
                let mut id = [0; ITEM_ID_BYTES];
                id[..8].copy_from_slice(&item.to_le_bytes());
                for at in shape.of_item(&prf, level, ItemId(id)) {
                    list.push(position(at, item < real));
                    if item < real {
                        expected[at.segment().0 as usize].set(at.bit());
                    }
                }
            }
            assert_eq!(list.len() as u64, list_len(shape, items));
            list.sort_by_key(|element| element.key);
            let mut gather = Gather::new(shape, items, 23);
            let made: Result<Vec<_>, _> = list.iter().map(|it| gather.take(it)).collect();
            assert_eq!(made.expect("even enough").concat(), expected);
        }
    }

    /// Segments that come all at the end are not even: the pass stops, at its own pace.
    #[test]
    fn an_uneven_list_is_refused() {
        let shape = FilterRule { hashes: 6, bits_per_item: 100 }.shape(1 << 14);
        let mut gather = Gather::new(shape, 1 << 14, 23);
        let position = position(BitPosition(1), true);
        let refused = (0..list_len(shape, 1 << 14)).any(|_| gather.take(&position).is_err());
        assert!(refused);
    }
}
