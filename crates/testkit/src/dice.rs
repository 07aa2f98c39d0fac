//! [`Dice`]: the choices of a test, repeated by their seed.

use oblivio_splitmix::SplitMix64;

/// Dice for the choices of a test.
///
/// They bound numbers by their remainder, where [`SplitMix64::below`] multiplies: the seeds of
/// crash states and schedules that documents and regressions name were recorded so, and each must
/// go on to mean the same run.
#[derive(Clone, Debug)]
pub struct Dice(SplitMix64);

impl Dice {
    /// The dice of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`, which is not zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next_u64() % end
    }

    /// True in `chance` percent of the throws.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// A position in something of `len` parts, which is not empty.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Puts the items into any order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// The next `len` bytes, which no compression shortens.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let words = (0..len.div_ceil(8)).flat_map(|_| self.next_u64().to_le_bytes());
        words.take(len).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the reference implementation for seed 1234567.
    #[test]
    fn splitmix_is_the_published_one() {
        let mut rng = SplitMix64::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    /// Recorded seeds name runs by these numbers.
    #[test]
    fn a_seed_keeps_its_throws() {
        let mut dice = Dice::new(1_234_567);
        assert_eq!(dice.below(1000), 317);
        assert_eq!(dice.below(1000), 973);
        let (mut one, mut two) = ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]);
        dice.clone().shuffle(&mut one);
        dice.shuffle(&mut two);
        assert_eq!(one, two);
    }

    #[test]
    fn bytes_are_whole_words_cut_to_length() {
        let first = Dice::new(1_234_567).next_u64().to_le_bytes();
        let bytes = Dice::new(1_234_567).bytes(13);
        assert_eq!((bytes.len(), &bytes[..8]), (13, &first[..]));
        assert!(Dice::new(0).bytes(0).is_empty());
    }
}
