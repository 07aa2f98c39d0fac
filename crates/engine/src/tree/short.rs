//! The slots that each stored bucket lacks: as many as the leaves lacked at its last write.

use super::bitset::BitSet;

/// Bits per bucket that count its missing slots.
pub const PLANES: usize = 2;

/// The missing slots of each bucket, by heap index. Unset buckets lack none.
#[derive(Default)]
pub struct Missing([BitSet; PLANES]);

impl Missing {
    /// The number of slots that the stored version of a bucket lacks.
    pub fn get(&self, bucket: u64) -> usize {
        usize::from(self.0[0].get(bucket)) | usize::from(self.0[1].get(bucket)) << 1
    }

    /// Sets the missing slots of a written bucket, or 0 for a dropped one.
    pub fn set(&mut self, bucket: u64, missing: usize) {
        for (bit, plane) in self.0.iter_mut().enumerate() {
            plane.set(bucket, missing >> bit & 1 == 1);
        }
    }

    /// Forgets the buckets from heap index `first` on.
    pub fn truncate(&mut self, first: u64) {
        self.0.iter_mut().for_each(|plane| plane.truncate(first));
    }

    /// The bits of `buckets` buckets.
    pub fn to_words(&self, buckets: u64) -> Vec<u64> {
        self.0.iter().flat_map(|plane| plane.to_words(buckets)).collect()
    }

    /// From two words for each word of one bit per bucket.
    pub fn from_words(mut words: Vec<u64>) -> Self {
        let high = words.split_off(words.len() / PLANES);
        Self([BitSet::from_words(words), BitSet::from_words(high)])
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(BitSet::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_kept_through_words() {
        let mut missing = Missing::default();
        (0..200).for_each(|bucket| missing.set(bucket, bucket as usize % 4));
        missing.set(7, 0);
        let again = Missing::from_words(missing.to_words(200));
        missing.truncate(100);
        for bucket in 0..200 {
            let noted = if bucket == 7 { 0 } else { bucket as usize % 4 };
            assert_eq!(again.get(bucket), noted);
            assert_eq!(missing.get(bucket), if bucket < 100 { noted } else { 0 });
        }
    }
}
