//! Sources of randomness: the system in production, a seed in tests. Callers pass them explicitly.

use crate::labels;
use std::sync::{Arc, Mutex, PoisonError};

/// A source of random bytes. Each user gets one as an argument.
pub trait Entropy: Send {
    /// Fills `out` with random bytes.
    fn fill(&mut self, out: &mut [u8]);

    /// One random 64-bit number.
    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

impl<E: Entropy + ?Sized> Entropy for Box<E> {
    fn fill(&mut self, out: &mut [u8]) {
        (**self).fill(out);
    }
}

/// The operating system's generator.
///
/// # Panics
///
/// When the system has no randomness: without it, others could guess the keys.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the system")]
    fn fill(&mut self, out: &mut [u8]) {
        getrandom::fill(out).expect("the operating system gives randomness");
    }
}

/// Reproducible bytes from a seed, **for tests and simulation only**: the seed reveals every key
/// made from it. Keyed BLAKE3 as an extendable output.
pub struct SeededEntropy(blake3::OutputReader);

impl SeededEntropy {
    /// The byte stream of `seed`.
    pub fn new(seed: u64) -> Self {
        let key = blake3::derive_key(labels::TEST_ENTROPY, &seed.to_le_bytes());
        Self(blake3::Hasher::new_keyed(&key).finalize_xof())
    }
}

impl Entropy for SeededEntropy {
    fn fill(&mut self, out: &mut [u8]) {
        self.0.fill(out);
    }
}

impl std::fmt::Debug for SeededEntropy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SeededEntropy(..)")
    }
}

/// The randomness of a volume: the system's, unless a test gives a seed. Copies draw from one
/// stream.
#[derive(Clone, Debug, Default)]
pub struct Randomness(Option<Arc<Mutex<SeededEntropy>>>);

impl Randomness {
    /// Reproducible, **for tests and simulation only**.
    pub fn from_seed(seed: u64) -> Self {
        Self(Some(Arc::new(Mutex::new(SeededEntropy::new(seed)))))
    }
}

impl Entropy for Randomness {
    fn fill(&mut self, out: &mut [u8]) {
        match &self.0 {
            Some(seeded) => seeded.lock().unwrap_or_else(PoisonError::into_inner).fill(out),
            None => OsEntropy.fill(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_one_stream() {
        let (mut one, mut same, mut other) =
            (SeededEntropy::new(7), SeededEntropy::new(7), SeededEntropy::new(8));
        let mut whole = [0; 100];
        one.fill(&mut whole);
        let mut pieces = [0; 100];
        pieces.chunks_mut(7).for_each(|piece| same.fill(piece));
        assert_eq!(whole, pieces, "the stream does not depend on how it is read");
        assert_ne!(one.next_u64(), other.next_u64());
    }

    #[test]
    fn the_system_does_not_repeat_itself() {
        let mut os: Box<dyn Entropy> = Box::new(OsEntropy);
        let (mut a, mut b) = ([0; 32], [0; 32]);
        os.fill(&mut a);
        os.fill(&mut b);
        assert_ne!(a, b);
        assert_ne!(a, [0; 32]);
    }
}
