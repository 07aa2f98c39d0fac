//! Authentication without encryption: PMMAC over blocks, and the header's MAC.

use crate::{CryptoError, Secret, TAG_BYTES, Tag, derive::test_key, labels, secret::same_bytes};

/// Keyed BLAKE3 as a message authentication code.
#[derive(Debug)]
pub struct Mac(Secret<32>);

impl Mac {
    pub(crate) fn new(key: Secret<32>) -> Self {
        Self(key)
    }

    /// The MAC of `seed`, **for tests and the lab only**.
    pub fn from_seed(seed: u64) -> Self {
        Self(test_key("mac", seed))
    }

    /// The tag of `data` as block number `block` after `count` writes (Freecursive's PMMAC,
    /// `MAC_K(c || a || d)`). An older version of a block, or another block, has another tag.
    pub fn block(&self, count: u64, block: u64, data: &[u8]) -> Tag {
        // Count and number follow the data: in front, they would push the data off BLAKE3's chunk
        // boundaries, and 4 KiB would take twice as long. The suffix has a fixed length, so the
        // data's end is unambiguous. Its last byte distinguishes blocks from lists.
        let mut suffix = [labels::MAC_BLOCK; 17];
        suffix[..8].copy_from_slice(&count.to_le_bytes());
        suffix[8..16].copy_from_slice(&block.to_le_bytes());
        let mut hasher = blake3::Hasher::new_keyed(self.0.expose());
        hasher.update(data).update(&suffix);
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&hasher.finalize().as_bytes()[..TAG_BYTES]);
        Tag(tag)
    }

    /// Refuses a block whose tag is not `tag`, in constant time.
    pub fn verify_block(
        &self,
        count: u64,
        block: u64,
        data: &[u8],
        tag: &Tag,
    ) -> Result<(), CryptoError> {
        // `Tag` compares in constant time.
        if self.block(count, block, data) == *tag { Ok(()) } else { Err(CryptoError::Forged) }
    }

    /// The code of a list of byte strings. The input includes each length, so no two lists give the
    /// same input.
    pub fn bytes(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(self.0.expose());
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        hasher.update(&[labels::MAC_BYTES]);
        *hasher.finalize().as_bytes()
    }

    /// Refuses a list of byte strings whose code is not `code`, in constant time.
    pub fn verify_bytes(&self, parts: &[&[u8]], code: &[u8; 32]) -> Result<(), CryptoError> {
        if same_bytes(&self.bytes(parts), code) { Ok(()) } else { Err(CryptoError::Forged) }
    }

    #[cfg(test)]
    pub(crate) fn key(&self) -> &[u8; 32] {
        self.0.expose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac() -> Mac {
        Mac::new(Secret::new(|bytes| bytes.fill(3)))
    }

    #[test]
    fn the_input_encodings_are_pinned() {
        let input = b"data\x05\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0\x01";
        let whole = *blake3::keyed_hash(&[3; 32], input).as_bytes();
        assert_eq!(mac().block(5, 6, b"data").0, whole[..16]);
        let input = b"\x01\0\0\0\0\0\0\0a\x02\0\0\0\0\0\0\0bc\x02";
        assert_eq!(mac().bytes(&[b"a", b"bc"]), *blake3::keyed_hash(&[3; 32], input).as_bytes());
    }

    #[test]
    fn a_block_verifies_only_as_itself() {
        let (mac, data) = (mac(), [9; 100]);
        let tag = mac.block(1, 2, &data);
        assert_eq!(mac.verify_block(1, 2, &data, &tag), Ok(()));
        assert_eq!(mac.verify_block(0, 2, &data, &tag), Err(CryptoError::Forged), "replayed");
        assert_eq!(mac.verify_block(1, 3, &data, &tag), Err(CryptoError::Forged), "moved");
        assert_eq!(mac.verify_block(2, 1, &data, &tag), Err(CryptoError::Forged), "swapped");
        assert_eq!(mac.verify_block(1, 2, &data[1..], &tag), Err(CryptoError::Forged), "cut");
        let other = Mac::from_seed(1);
        assert_eq!(other.verify_block(1, 2, &data, &tag), Err(CryptoError::Forged), "other key");
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let (mac, data) = (mac(), [9; 40]);
        let (tag, code) = (mac.block(1, 2, &data), mac.bytes(&[&data]));
        for bit in 0..data.len() * 8 {
            let mut flipped = data;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(mac.verify_block(1, 2, &flipped, &tag), Err(CryptoError::Forged));
            assert_eq!(mac.verify_bytes(&[&flipped], &code), Err(CryptoError::Forged));
        }
        for bit in 0..TAG_BYTES * 8 {
            let mut flipped = tag;
            flipped.0[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(mac.verify_block(1, 2, &data, &flipped), Err(CryptoError::Forged));
        }
    }

    #[test]
    fn lists_that_join_to_the_same_bytes_differ() {
        let mac = mac();
        let code = mac.bytes(&[b"ab", b"c"]);
        assert_eq!(mac.verify_bytes(&[b"ab", b"c"], &code), Ok(()));
        for other in [&[b"a".as_slice(), b"bc"][..], &[b"abc"], &[b"ab", b"c", b""], &[]] {
            assert_eq!(mac.verify_bytes(other, &code), Err(CryptoError::Forged));
        }
    }
}
