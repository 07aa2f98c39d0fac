//! Sealing a table: slots that are all written once, some of which hold nothing.
//!
//! A slot is `[ciphertext][tag 16]`. Each table has keys of its own, derived from a root and a
//! fresh random number, its *attempt*. So the nonce of a slot is its number, and no slot needs a
//! salt or a counter beside it. A slot that holds nothing is the sealing of zeros under a second
//! key: nobody else can tell it from the others, and its bytes can be computed again. So the holder
//! of the key takes such slots out of a sum (exclusive or) of slots, and finds any changed bit.

use crate::derive::{SealRoot, derive_key};
use crate::session::Cipher;
use crate::{CryptoError, Entropy, Secret, TAG_BYTES, VolumeId, labels};
use aws_lc_rs::aead::NONCE_LEN;
use std::fmt;

/// Bytes that sealing adds to a slot's plaintext.
pub const SLOT_OVERHEAD: usize = TAG_BYTES;

/// The number of a table's sealing: fresh for each, restarted ones too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(pub [u8; 16]);

/// The keys of one table, to read its slots.
pub struct TableKeys {
    volume: VolumeId,
    attempt: Attempt,
    slots: Cipher,
    empty: Cipher,
    /// From which the order of the slots is drawn.
    order: Secret<32>,
}

impl TableKeys {
    /// The keys of the table of this attempt.
    pub fn new(root: &SealRoot, volume: VolumeId, attempt: Attempt) -> Self {
        let key = |label| derive_key(label, &[root.expose(), &attempt.0]);
        let cipher = |label| Cipher::new(key(label).expose());
        Self {
            volume,
            attempt,
            slots: cipher(labels::TABLE_SLOTS),
            empty: cipher(labels::TABLE_EMPTY),
            order: key(labels::TABLE_ORDER),
        }
    }

    /// The attempt of which these are the keys.
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// Opens slot `slot` in place and returns the plaintext within `buf`.
    ///
    /// # Errors
    /// `Forged` if it holds something else than was sealed there; then `buf` is lost.
    pub fn open<'a>(&self, slot: u32, buf: &'a mut [u8]) -> Result<&'a mut [u8], CryptoError> {
        let (data, tag) = parts(buf)?;
        self.slots.open(nonce(slot), &self.aad(slot), data, tag)?;
        Ok(data)
    }

    /// Checks that slot `slot` holds nothing, as it was left; `buf` is lost.
    ///
    /// # Errors
    /// `Forged` if it is anything else.
    pub fn check_empty(&self, slot: u32, buf: &mut [u8]) -> Result<(), CryptoError> {
        let (data, tag) = parts(buf)?;
        self.empty.open(nonce(slot), &self.aad(slot), data, tag)
    }

    /// The bytes of slot `slot` if it holds nothing.
    ///
    /// # Errors
    /// `Malformed` for a slot shorter than a tag.
    pub fn empty(&self, slot: u32, buf: &mut [u8]) -> Result<(), CryptoError> {
        buf.fill(0);
        let (data, tag) = parts(buf)?;
        self.empty.seal(nonce(slot), &self.aad(slot), data, tag)
    }

    /// A random order of the numbers below `count`: where the table's entries stand.
    pub fn order(&self, count: u32) -> Vec<u32> {
        let mut stream = blake3::Hasher::new_keyed(self.order.expose()).finalize_xof();
        let mut below = |end: u32| {
            // 64 bits for at most 32: the excess of the first values is below 2^-32.
            let mut bytes = [0; 8];
            stream.fill(&mut bytes);
            ((u128::from(u64::from_le_bytes(bytes)) * u128::from(end)) >> 64) as usize
        };
        let mut order: Vec<u32> = (0..count).collect();
        for end in (1..count).rev() {
            order.swap(end as usize, below(end + 1));
        }
        order
    }

    /// Ties a slot to its volume, its table and its place.
    fn aad(&self, slot: u32) -> [u8; 36] {
        let mut out = [0; 36];
        out[..16].copy_from_slice(&self.volume.0);
        out[16..32].copy_from_slice(&self.attempt.0);
        out[32..].copy_from_slice(&slot.to_le_bytes());
        out
    }
}

impl fmt::Debug for TableKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableKeys").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

/// Seals the slots of one table, the first one first. It is used up with the table: no slot is ever
/// sealed twice under its keys.
pub struct TableSealer {
    keys: TableKeys,
    next: u32,
}

impl TableSealer {
    /// A sealer for a new table.
    pub fn new(root: &SealRoot, volume: VolumeId, entropy: &mut dyn Entropy) -> Self {
        let mut attempt = [0; 16];
        entropy.fill(&mut attempt);
        Self { keys: TableKeys::new(root, volume, Attempt(attempt)), next: 0 }
    }

    /// The table's keys.
    pub fn keys(&self) -> &TableKeys {
        &self.keys
    }

    /// Seals the bytes before the [`SLOT_OVERHEAD`] at the end in place, as the next slot.
    ///
    /// # Errors
    /// `KeyExhausted` for more slots than a table can have.
    pub fn seal(&mut self, buf: &mut [u8]) -> Result<(), CryptoError> {
        let slot = self.take()?;
        let (data, tag) = parts(buf)?;
        self.keys.slots.seal(nonce(slot), &self.keys.aad(slot), data, tag)
    }

    /// Leaves the next slot empty.
    ///
    /// # Errors
    /// As [`Self::seal`].
    pub fn seal_empty(&mut self, buf: &mut [u8]) -> Result<(), CryptoError> {
        let slot = self.take()?;
        self.keys.empty(slot, buf)
    }

    /// The keys, once the table is sealed.
    pub fn into_keys(self) -> TableKeys {
        self.keys
    }

    fn take(&mut self) -> Result<u32, CryptoError> {
        let slot = self.next;
        self.next = slot.checked_add(1).ok_or(CryptoError::KeyExhausted)?;
        Ok(slot)
    }
}

impl fmt::Debug for TableSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableSealer").field("next", &self.next).finish_non_exhaustive()
    }
}

fn parts(buf: &mut [u8]) -> Result<(&mut [u8], &mut [u8]), CryptoError> {
    let data = buf.len().checked_sub(TAG_BYTES);
    let data = data.ok_or(CryptoError::Malformed("too short for a slot"))?;
    Ok(buf.split_at_mut(data))
}

fn nonce(slot: u32) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    nonce[..4].copy_from_slice(&slot.to_le_bytes());
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeededEntropy;
    use std::collections::BTreeSet;

    const VOLUME: VolumeId = VolumeId([7; 16]);

    fn sealer(seed: u64) -> TableSealer {
        TableSealer::new(&SealRoot::from_seed(1), VOLUME, &mut SeededEntropy::new(seed))
    }

    fn slot(byte: u8) -> Vec<u8> {
        vec![byte; 64 + SLOT_OVERHEAD]
    }

    #[test]
    fn a_slot_opens_in_its_place_and_nowhere_else() {
        let mut table = sealer(1);
        let mut slots = [slot(1), slot(2)];
        slots.iter_mut().for_each(|slot| table.seal(slot).expect("two slots"));
        let keys = TableKeys::new(&SealRoot::from_seed(1), VOLUME, table.keys().attempt());
        assert_eq!(keys.open(1, &mut slots[1].clone()).expect("as sealed"), [2; 64]);
        assert_eq!(keys.open(0, &mut slots[1].clone()), Err(CryptoError::Forged), "moved");
        let other = sealer(2).into_keys();
        assert_eq!(other.open(1, &mut slots[1].clone()), Err(CryptoError::Forged), "other table");
        for at in 0..slots[0].len() {
            let mut changed = slots[0].clone();
            changed[at] ^= 1;
            assert_eq!(keys.open(0, &mut changed), Err(CryptoError::Forged), "byte {at}");
        }
    }

    #[test]
    fn empty_slots_are_computed_again_and_cancel_out() {
        let mut table = sealer(1);
        let (mut empty, mut full) = (slot(0), slot(3));
        table.seal_empty(&mut empty).expect("the first");
        table.seal(&mut full).expect("the second");
        let mut sum: Vec<u8> = empty.iter().zip(&full).map(|(a, b)| a ^ b).collect();
        let (keys, mut again) = (table.into_keys(), slot(9));
        keys.empty(0, &mut again).expect("long enough");
        assert_eq!(again, empty);
        keys.check_empty(0, &mut again.clone()).expect("as it was left");
        assert_eq!(keys.check_empty(1, &mut full.clone()), Err(CryptoError::Forged), "a block");
        assert_eq!(keys.check_empty(1, &mut empty.clone()), Err(CryptoError::Forged), "moved");
        sum.iter_mut().zip(&again).for_each(|(sum, byte)| *sum ^= byte);
        assert_eq!(keys.open(1, &mut sum).expect("as sealed"), [3; 64]);
        assert_eq!(keys.open(0, &mut empty), Err(CryptoError::Forged), "it holds nothing");
    }

    #[test]
    fn the_order_is_a_permutation_of_its_own() {
        let keys = sealer(1).into_keys();
        let order = keys.order(1000);
        assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 1000);
        assert_eq!(order, keys.order(1000));
        assert_ne!(order, sealer(2).into_keys().order(1000));
        assert_eq!(keys.order(0), []);
        // Every entry is as likely in each place: 8 places, 4,000 tables, 500 expected.
        let mut counts = [[0; 8]; 8];
        for seed in 0..4000 {
            for (entry, slot) in sealer(seed).into_keys().order(8).into_iter().enumerate() {
                counts[entry][slot as usize] += 1;
            }
        }
        // Seven standard deviations.
        assert!(counts.iter().flatten().all(|&count: &i32| (count - 500).abs() < 147));
    }
}
