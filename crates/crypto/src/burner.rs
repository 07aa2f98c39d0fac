//! Bytes that stand where sealed ones may stand, and hold nothing.

use crate::{
    CryptoError, Entropy, Kind, Place, Randomness, SealRoot, Sealer, Secret, Tag, VolumeId,
};

/// The place of everything burnt. Nobody opens it, so it needs no other.
const PLACE: Place = Place { volume: VolumeId([0; 16]), kind: Kind::Burnt, index: 0, version: 0 };

/// Burns bytes: makes them ciphertext under a key that is drawn here and kept nowhere. Nobody can
/// tell them from sealed ones, and no other key leads to them. They cost as much as sealed ones.
pub struct Burner(Sealer);

impl Burner {
    /// A burner with a key of its own.
    pub fn new(randomness: &Randomness) -> Self {
        let mut entropy = randomness.clone();
        let key = Secret::new(|bytes| entropy.fill(bytes));
        Self(Sealer::new(SealRoot::new(key), Box::new(entropy)))
    }

    /// Burns bytes in pieces of at most `piece` bytes, whatever is in them.
    ///
    /// # Errors
    /// `KeyExhausted` when no key may seal that many bytes.
    pub fn burn(&mut self, bytes: &mut [u8], piece: usize) -> Result<(), CryptoError> {
        let mut group = self.0.begin_group(bytes.len().div_ceil(piece) as u64, piece as u64)?;
        bytes.chunks_mut(piece).try_for_each(|piece| group.seal(&PLACE, piece).map(drop))
    }

    /// Opens bytes in vain: it takes as long as to open as many that are sealed. What is in them is
    /// lost.
    ///
    /// # Errors
    /// As [`Self::burn`].
    pub fn open_in_vain(&mut self, bytes: &mut [u8], piece: usize) -> Result<(), CryptoError> {
        let mark = self.0.begin_group(1, 0)?.mark();
        let opener = self.0.opener();
        let mut run = opener.begin();
        for piece in bytes.chunks_mut(piece) {
            // It is of no key that is known here.
            let _ = run.open(&mark, 0, &PLACE, &Tag::default(), piece);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_burnt_looks_random_and_never_repeats() {
        let randomness = Randomness::default();
        let mut seen = std::collections::BTreeSet::new();
        for opened in [false, true, false] {
            let mut burner = Burner::new(&randomness);
            for _ in 0..4 {
                let mut bytes = vec![0; 100_001];
                if opened {
                    burner.open_in_vain(&mut bytes, 4096).expect("a fresh key");
                }
                burner.burn(&mut bytes, 4096).expect("a fresh key");
                let ones: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
                // Of 800,008 bits half are ones, give or take 447 (one deviation).
                assert!(ones.abs_diff(400_004) < 3_000, "{ones}");
                for piece in bytes.chunks(16) {
                    assert!(piece.len() < 16 || seen.insert(piece.to_vec()), "it repeats");
                }
            }
        }
    }

    /// Only the system's randomness leads to what is burnt: a volume's keys, which an inspector may
    /// have, do not.
    #[test]
    fn no_key_of_a_volume_reaches_it() {
        let text = include_str!("burner.rs");
        let code = text.split("#[cfg(test)]").next().expect("the code");
        for word in ["Master", "derive", "label", "seed"] {
            assert!(!code.to_lowercase().contains(&word.to_lowercase()), "{word}");
        }
    }
}
