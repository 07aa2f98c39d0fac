//! A growing bit set, for facts about blocks, buckets and slots.

use crate::{BlockId, BucketId};
use std::marker::PhantomData;

/// A slot of a bucket of Z slots: `bucket * Z + slot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u64);

/// What a bit can be about.
pub trait Numbered: Copy {
    /// The number of its bit.
    fn number(self) -> u64;
}

impl Numbered for BlockId {
    fn number(self) -> u64 {
        self.0
    }
}

impl Numbered for BucketId {
    fn number(self) -> u64 {
        self.0
    }
}

impl Numbered for SlotId {
    fn number(self) -> u64 {
        self.0
    }
}

/// Bits, all clear at first, one for each `K`.
#[derive(Debug)]
pub struct BitSet<K> {
    words: Vec<u64>,
    of: PhantomData<K>,
}

impl<K> Default for BitSet<K> {
    fn default() -> Self {
        Self::from_words(Vec::new())
    }
}

impl<K> BitSet<K> {
    /// The set with these words.
    pub fn from_words(words: Vec<u64>) -> Self {
        Self { words, of: PhantomData }
    }

    /// The words, padded with zeros to hold `bits` bits, or cut where only zeros follow.
    pub fn to_words(&self, bits: u64) -> Vec<u64> {
        let mut words = self.words.clone();
        words.resize(bits.div_ceil(64) as usize, 0);
        words
    }

    /// Word number `at`: the bits from `64 * at` on.
    pub fn word(&self, at: u64) -> u64 {
        self.words.get(at as usize).copied().unwrap_or(0)
    }

    /// Replaces word number `at`.
    pub fn set_word(&mut self, at: u64, word: u64) {
        let at = at as usize;
        if at >= self.words.len() {
            self.words.resize(at + 1, 0);
        }
        self.words[at] = word;
    }

    /// The number of set bits.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.words.len() * 8
    }
}

impl<K: Numbered> BitSet<K> {
    /// Whether a bit is set.
    pub fn get(&self, key: K) -> bool {
        let index = key.number();
        self.words.get((index / 64) as usize).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Sets or clears a bit.
    pub fn set(&mut self, key: K, value: bool) {
        let index = key.number();
        let at = (index / 64) as usize;
        if at >= self.words.len() {
            if !value {
                return;
            }
            self.words.resize(at + 1, 0);
        }
        let bit = 1 << (index % 64);
        if value {
            self.words[at] |= bit;
        } else {
            self.words[at] &= !bit;
        }
    }

    /// Clears all bits from `first` on.
    pub fn truncate(&mut self, first: K) {
        let bits = first.number();
        let whole = (bits / 64) as usize;
        if let Some(word) = self.words.get_mut(whole) {
            *word &= (1 << (bits % 64)) - 1;
        }
        self.words.truncate(bits.div_ceil(64) as usize);
    }
}
