//! A growing bit set, for facts about buckets and slots.

/// Bits, all clear at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitSet {
    words: Vec<u64>,
}

impl BitSet {
    /// Whether bit `index` is set.
    pub fn get(&self, index: u64) -> bool {
        self.words.get((index / 64) as usize).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Sets or clears bit `index`.
    pub fn set(&mut self, index: u64, value: bool) {
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

    /// The words, padded with zeros to hold `bits` bits, or cut where only zeros follow.
    pub fn to_words(&self, bits: u64) -> Vec<u64> {
        let mut words = self.words.clone();
        words.resize(bits.div_ceil(64) as usize, 0);
        words
    }

    /// The set with these words.
    pub fn from_words(words: Vec<u64>) -> Self {
        Self { words }
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

    /// Clears all bits from `bits` on.
    pub fn truncate(&mut self, bits: u64) {
        let whole = (bits / 64) as usize;
        if let Some(word) = self.words.get_mut(whole) {
            *word &= (1 << (bits % 64)) - 1;
        }
        self.words.truncate(bits.div_ceil(64) as usize);
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
