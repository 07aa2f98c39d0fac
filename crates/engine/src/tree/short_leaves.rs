//! The slots that each stored bucket lacks: as many as the leaves lacked at its last write.

use super::bitset::BitSet;
use crate::BucketId;

/// Bits per bucket that count its missing slots.
pub const PLANES: usize = 2;

/// The missing slots of each bucket. Unset buckets lack none.
#[derive(Default)]
pub struct Missing([BitSet<BucketId>; PLANES]);

impl Missing {
    /// The number of slots that the stored version of a bucket lacks.
    pub fn get(&self, bucket: BucketId) -> usize {
        usize::from(self.0[0].get(bucket)) | usize::from(self.0[1].get(bucket)) << 1
    }

    /// Sets the missing slots of a written bucket, or 0 for a dropped one.
    pub fn set(&mut self, bucket: BucketId, missing: usize) {
        for (bit, plane) in self.0.iter_mut().enumerate() {
            plane.set(bucket, missing >> bit & 1 == 1);
        }
    }

    /// Forgets the buckets from `first` on.
    pub fn truncate(&mut self, first: BucketId) {
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
        self.0.iter().map(|plane| plane.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_kept_through_words() {
        let mut missing = Missing::default();
        (0..200).for_each(|bucket| missing.set(BucketId(bucket), bucket as usize % 4));
        missing.set(BucketId(7), 0);
        let again = Missing::from_words(missing.to_words(200));
        missing.truncate(BucketId(100));
        for bucket in 0..200 {
            let noted = if bucket == 7 { 0 } else { bucket as usize % 4 };
            assert_eq!(again.get(BucketId(bucket)), noted);
            assert_eq!(missing.get(BucketId(bucket)), if bucket < 100 { noted } else { 0 });
        }
    }
}
