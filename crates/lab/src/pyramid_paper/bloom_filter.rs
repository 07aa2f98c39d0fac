//! Bloom filters in sealed segments: which of a level's items a query may ask for (§5.4).
//!
//! A wrong "yes" makes a query ask for a name that its level does not hold, which shows that the
//! query looked for something real. So the bound must hold for the lifetime of a volume. The paper
//! states 2^-64 for one lookup; at 40 lookups a query and 2^30 queries that is 2^-30.5 in all (E2).
//! Here a rule is made for 2^-104 a lookup: 2^-64 for 2^40 lookups.
//!
//! The design names two such rules: 8 hashes with 65,532 bits an item, and 104 hashes with 150. The
//! cheapest lies between them: what construction sorts is one element for each hash and one for
//! each segment, and that sum is smallest at 15 hashes with 1,826 bits. With the paper's own 2,400
//! bits, 14 hashes in place of 8 already give 2^-103.9.
//!
//! Smaller filters that can fail to build, such as xor filters, are not oblivious while positions
//! are shown (E3). Plain Bloom bits are: the positions of an item and those of a fake are the same
//! number of independent uniform draws.

use super::ids::{FakeNumber, ITEM_ID_BYTES, ItemId, LEVEL_BYTES, LevelId, SegmentNumber};
use oblivio_crypto::Prf;

/// Bytes of a segment: the unit that the server stores and a query reads.
pub const SEGMENT_BYTES: usize = 64;
const SEGMENT_BITS: u64 = SEGMENT_BYTES as u64 * 8;

/// Wrong answers of one lookup that a lifetime of 2^40 lookups allows: 2 to the minus this.
pub const FAILURE_BITS: u32 = 104;

/// PRF purposes; [`super::level`] has the others.
const ITEM_POSITIONS: u8 = 3;
const FAKE_POSITIONS: u8 = 4;

/// Bits and hash functions of a filter. A volume stores both numbers, so that rounding on another
/// computer cannot change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterRule {
    /// Hash functions: positions of an item.
    pub hashes: u32,
    /// Bits of the filter for each item that a level has room for.
    pub bits_per_item: u32,
}

impl FilterRule {
    /// The fewest bits with which this many hashes fail at most once in 2^`failure_bits` lookups.
    /// None if they do not fit a `u32`.
    pub fn with_hashes(hashes: u32, failure_bits: u32) -> Option<Self> {
        // A full filter has the bit of a random position set with probability p = 1 - e^(-k/b),
        // and p^k must be 2^-s.
        let k = f64::from(hashes);
        let set = (-f64::from(failure_bits) / k).exp2();
        let bits = (-k / (-set).ln_1p()).ceil();
        let fits = hashes > 0 && bits <= f64::from(u32::MAX);
        fits.then_some(Self { hashes, bits_per_item: bits as u32 })
    }

    /// The rule for this bound whose construction sorts the least.
    pub fn cheapest(failure_bits: u32) -> Self {
        let rules = (1..=failure_bits).filter_map(|k| Self::with_hashes(k, failure_bits));
        let cheapest = rules.min_by_key(|rule| rule.sorted_bits());
        cheapest.unwrap_or(Self { hashes: 1, bits_per_item: u32::MAX })
    }

    /// Elements of the list of §5.4 for each item, times the bits of a segment.
    fn sorted_bits(self) -> u64 {
        u64::from(self.hashes) * SEGMENT_BITS + u64::from(self.bits_per_item)
    }

    /// The failure bound: 2 to the minus this for a lookup in a full filter.
    pub fn failure_bits(self) -> f64 {
        let k = f64::from(self.hashes);
        -k * (-(-k / f64::from(self.bits_per_item)).exp_m1()).log2()
    }

    /// The filter of a level with room for `items`.
    pub fn shape(self, items: u64) -> FilterShape {
        let segments = (items * u64::from(self.bits_per_item)).div_ceil(SEGMENT_BITS);
        FilterShape { hashes: self.hashes, segments }
    }
}

impl Default for FilterRule {
    fn default() -> Self {
        Self::cheapest(FAILURE_BITS)
    }
}

/// The filter of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterShape {
    /// Positions of an item.
    pub hashes: u32,
    /// Segments.
    pub segments: u64,
}

/// A bit of a level's filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitPosition(pub u64);

impl BitPosition {
    /// Its segment, which the server sees.
    pub fn segment(self) -> SegmentNumber {
        SegmentNumber(self.0 / SEGMENT_BITS)
    }

    /// Its bit in the segment, which the server does not see.
    pub fn bit(self) -> u16 {
        (self.0 % SEGMENT_BITS) as u16
    }
}

impl FilterShape {
    /// The positions of an item.
    pub fn of_item(&self, prf: &Prf, level: LevelId, id: ItemId) -> Vec<BitPosition> {
        self.positions(prf, ITEM_POSITIONS, level, &id.0)
    }

    /// The positions that a query asks for when it has already found its item, or those of an
    /// item slot without an item.
    pub fn of_fake(&self, prf: &Prf, level: LevelId, fake: FakeNumber) -> Vec<BitPosition> {
        let mut number = [0; ITEM_ID_BYTES];
        number[..8].copy_from_slice(&fake.0.to_le_bytes());
        self.positions(prf, FAKE_POSITIONS, level, &number)
    }

    fn positions(
        &self,
        prf: &Prf,
        purpose: u8,
        level: LevelId,
        of: &[u8; ITEM_ID_BYTES],
    ) -> Vec<BitPosition> {
        let mut input = [0; LEVEL_BYTES + ITEM_ID_BYTES];
        input[..LEVEL_BYTES].copy_from_slice(&level.encode());
        input[LEVEL_BYTES..].copy_from_slice(of);
        let mut words = vec![[0; 8]; self.hashes as usize];
        prf.fill(purpose, &input, words.as_flattened_mut());
        let bits = u128::from(self.segments * SEGMENT_BITS);
        // A product, not a remainder: its bias is below bits / 2^64 for every position.
        let position =
            |word| BitPosition(((u128::from(u64::from_le_bytes(word)) * bits) >> 64) as u64);
        words.into_iter().map(position).collect()
    }
}

/// A segment in the clear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment(pub [u8; SEGMENT_BYTES]);

impl Segment {
    /// A segment without items.
    pub const EMPTY: Self = Self([0; SEGMENT_BYTES]);

    /// Sets a bit, if the segment has it.
    pub fn set(&mut self, bit: u16) {
        if let Some(byte) = self.0.get_mut(usize::from(bit / 8)) {
            *byte |= 1 << (bit % 8);
        }
    }

    /// Whether a bit is set.
    pub fn has(&self, bit: u16) -> bool {
        self.0.get(usize::from(bit / 8)).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pyramid_paper::ids::{Generation, Height};

    /// The table of E2, the paper's choice first.
    #[test]
    fn bounds_are_those_of_the_table() {
        let paper = FilterRule { hashes: 8, bits_per_item: 2400 };
        assert!((paper.failure_bits() - 65.85).abs() < 0.01, "{}", paper.failure_bits());
        let bits = |hashes| FilterRule::with_hashes(hashes, 104).map(|rule| rule.bits_per_item);
        assert_eq!(bits(8), Some(65_532));
        assert_eq!(bits(104), Some(151), "150.04");
        assert_eq!(bits(14), Some(2_405), "the paper's size, but for 5 bits");
        assert_eq!(bits(1), None, "2^104 bits");
        assert_eq!(FilterRule::default(), FilterRule { hashes: 15, bits_per_item: 1_826 });
        for hashes in 4..200 {
            let Some(rule) = FilterRule::with_hashes(hashes, 104) else { continue };
            assert!(rule.failure_bits() >= 104.0);
            let less = FilterRule { bits_per_item: rule.bits_per_item - 1, ..rule };
            assert!(less.failure_bits() < 104.0, "the fewest bits");
            assert!(FilterRule::default().sorted_bits() <= rule.sorted_bits());
        }
    }

    fn level() -> LevelId {
        LevelId { height: Height(3), generation: Generation(5), star: false }
    }

    fn id(number: u64) -> ItemId {
        let mut id = [0; ITEM_ID_BYTES];
        id[..8].copy_from_slice(&number.to_le_bytes());
        ItemId(id)
    }

    /// A rule for a bound that can be measured: 2^-8 in a full filter.
    #[test]
    fn a_full_filter_fails_as_often_as_its_bound_says() {
        let rule = FilterRule::with_hashes(4, 8).expect("it fits");
        let (prf, items) = (Prf::from_seed(1), 4096);
        let shape = rule.shape(items);
        let mut segments = vec![Segment::EMPTY; shape.segments as usize];
        for item in 0..items {
            for at in shape.of_item(&prf, level(), id(item)) {
                segments[at.segment().0 as usize].set(at.bit());
            }
        }
        let says_yes = |positions: Vec<BitPosition>| {
            positions.iter().all(|at| segments[at.segment().0 as usize].has(at.bit()))
        };
        assert!((0..items).all(|item| says_yes(shape.of_item(&prf, level(), id(item)))));
        let absent = items..items + 100_000;
        let wrong = absent.filter(|&item| says_yes(shape.of_item(&prf, level(), id(item))));
        // 390.6 expected, with a standard deviation of 20: six of them never happen by chance.
        let wrong = wrong.count();
        assert!((270..=510).contains(&wrong), "{wrong}");
    }

    #[test]
    fn fakes_and_items_have_positions_of_their_own() {
        let shape = FilterRule::default().shape(64);
        let prf = Prf::from_seed(1);
        let item = shape.of_item(&prf, level(), id(1));
        assert_eq!(item.len(), 15);
        assert!(item.iter().all(|at| at.segment().0 < shape.segments));
        assert_ne!(item, shape.of_item(&prf, level(), id(2)));
        assert_ne!(item, shape.of_fake(&prf, level(), FakeNumber(1)));
    }
}
