//! Pseudo-random numbers from a key: block labels and other reproducible draws.

use crate::{Secret, derive::test_key, labels};

/// Keyed BLAKE3 as a pseudo-random function onto 64 bits.
#[derive(Debug)]
pub struct Prf(Secret<32>);

impl Prf {
    pub(crate) fn new(key: Secret<32>) -> Self {
        Self(key)
    }

    /// The function of `seed`, **for tests and the lab only**.
    pub fn from_seed(seed: u64) -> Self {
        Self(test_key("prf", seed))
    }

    /// The label of `block` after `count` remaps (Freecursive's `PRF_K(a || c)`). Its top bits are
    /// the leaf, so a growing tree moves nothing.
    #[inline]
    pub fn label(&self, block: u64, count: u64) -> u64 {
        let mut input = [labels::PRF_LABEL; 17];
        input[1..9].copy_from_slice(&block.to_le_bytes());
        input[9..].copy_from_slice(&count.to_le_bytes());
        self.first_word(&input)
    }

    /// The `n`-th number of the stream of `purpose`, independent of all labels.
    #[inline]
    pub fn draw(&self, purpose: u8, n: u64) -> u64 {
        let mut input = [labels::PRF_DRAW; 10];
        input[1] = purpose;
        input[2..].copy_from_slice(&n.to_le_bytes());
        self.first_word(&input)
    }

    /// The `n`-th number of the stream of `seed`, independent of all labels and draws.
    #[inline]
    pub fn of_seed(&self, seed: &[u8; 32], n: u64) -> u64 {
        let mut input = [labels::PRF_SEED; 41];
        input[1..33].copy_from_slice(seed);
        input[33..].copy_from_slice(&n.to_le_bytes());
        self.first_word(&input)
    }

    /// Fills `out` from `input` in the domain of `purpose`, independent of all labels and draws:
    /// names that a store may see, or as many numbers as a caller needs. Inputs of one purpose must
    /// have one length.
    #[inline]
    pub fn fill(&self, purpose: u8, input: &[u8], out: &mut [u8]) {
        let mut hasher = blake3::Hasher::new_keyed(self.0.expose());
        hasher.update(&[labels::PRF_FILL, purpose]).update(input).finalize_xof().fill(out);
    }

    #[inline]
    fn first_word(&self, input: &[u8]) -> u64 {
        let hash = blake3::keyed_hash(self.0.expose(), input);
        let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    #[cfg(test)]
    pub(crate) fn key(&self) -> &[u8; 32] {
        self.0.expose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn inputs_do_not_collide() {
        let prf = Prf::from_seed(1);
        let mut seen = BTreeSet::new();
        for a in 0..64 {
            for b in 0..64 {
                seen.insert(prf.label(a, b));
                seen.insert(prf.draw(a as u8, b));
            }
        }
        assert_eq!(seen.len(), 2 * 64 * 64);
        assert_ne!(prf.label(1, 2), Prf::from_seed(2).label(1, 2));
    }

    #[test]
    fn the_input_encoding_is_pinned() {
        let prf = Prf::new(Secret::new(|b| b.fill(3)));
        let word = |input: &[u8]| {
            let hash = blake3::keyed_hash(&[3; 32], input);
            u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("8 bytes"))
        };
        assert_eq!(prf.label(5, 6), word(&[1, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(prf.draw(9, 6), word(&[2, 9, 6, 0, 0, 0, 0, 0, 0, 0]));
        let (mut long, mut short) = ([0; 100], [0; 16]);
        prf.fill(9, b"name", &mut long);
        prf.fill(9, b"name", &mut short);
        assert_eq!(long[..16], short, "a longer output begins with the shorter one");
        let word = |bytes: &[u8]| u64::from_le_bytes(*bytes.first_chunk().expect("8 bytes"));
        let hash = blake3::keyed_hash(&[3; 32], b"\x04\x09name");
        assert_eq!(word(&short), word(hash.as_bytes()));
    }

    /// Bits of labels are balanced; a bound of 6 standard deviations never fails by chance.
    #[test]
    fn label_bits_are_balanced() {
        let prf = Prf::from_seed(4);
        let mut ones = [0i64; 64];
        const DRAWS: i64 = 10_000;
        for n in 0..DRAWS as u64 {
            let label = prf.label(n, 1);
            for (bit, count) in ones.iter_mut().enumerate() {
                *count += (label >> bit & 1) as i64;
            }
        }
        assert!(ones.iter().all(|count| (count - DRAWS / 2).abs() < 300));
    }
}
