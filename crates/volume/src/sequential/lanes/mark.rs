//! The mark behind each quantum that an open lane writes: a salt and a PRF of it. A quantum that
//! does not open and has a mark was damaged; one without was burnt.

use oblivio_crypto::{Prf, Randomness};

/// Bytes of a mark.
pub(super) const MARK_BYTES: usize = SALT + 16;
const SALT: usize = 16;
/// The domain of the marks among the uses of their PRF.
const MARK: u8 = 2;

/// The marks of a lane's quanta.
pub(super) struct QuantumMarks(Prf);

impl QuantumMarks {
    /// Of this function. A lane has no parity, whose pads a volume takes from it.
    pub fn new(prf: Prf) -> Self {
        Self(prf)
    }

    /// Marks quantum `number`. After a crash the same number may come again: a salt makes each mark
    /// another one.
    pub fn set(&self, number: u64, randomness: &Randomness, mark: &mut [u8]) {
        let (salt, proof) = mark.split_at_mut(SALT);
        oblivio_crypto::Entropy::fill(&mut randomness.clone(), salt);
        self.0.fill(MARK, &input(number, salt), proof);
    }

    /// Whether this is a mark of quantum `number`.
    pub fn is_set(&self, number: u64, mark: &[u8]) -> bool {
        let Some((salt, proof)) = mark.split_at_checked(SALT) else { return false };
        let mut expected = [0; MARK_BYTES - SALT];
        self.0.fill(MARK, &input(number, salt), &mut expected);
        proof == expected
    }
}

fn input(number: u64, salt: &[u8]) -> [u8; 8 + SALT] {
    let mut input = [0; 8 + SALT];
    input[..8].copy_from_slice(&number.to_le_bytes());
    input[8..].copy_from_slice(salt);
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_one_quantum_of_one_lane_and_never_the_same() {
        let marks = QuantumMarks::new(Prf::from_seed(1));
        let mut seen = std::collections::BTreeSet::new();
        for number in [3, 3, 4] {
            let mut mark = [0; MARK_BYTES];
            marks.set(number, &Randomness::default(), &mut mark);
            assert!(marks.is_set(number, &mark) && !marks.is_set(number + 1, &mark));
            assert!(!QuantumMarks::new(Prf::from_seed(2)).is_set(number, &mark));
            assert!(seen.insert(mark), "it came before");
            for at in 0..MARK_BYTES {
                let mut other = mark;
                other[at] ^= 1;
                assert!(!marks.is_set(number, &other), "byte {at}");
            }
        }
    }
}
