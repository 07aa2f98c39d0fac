//! Numbers and tags in serialized form: little-endian. Input that ends early is refused.

use crate::{EngineError, Result};
use oblivio_crypto::{TAG_BYTES, Tag};

/// Appends to a byte vector.
pub(crate) struct Writer<'a>(pub &'a mut Vec<u8>);

impl Writer<'_> {
    pub fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
    pub fn zeros(&mut self, count: usize) {
        let len = self.0.len() + count;
        self.0.resize(len, 0);
    }
    pub fn words(&mut self, words: &[u64]) {
        for &word in words {
            self.u64(word);
        }
    }
}

/// Takes from the front of a byte slice.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(EngineError::State("too short"))?;
        self.0 = rest;
        Ok(taken)
    }
    pub fn u64(&mut self) -> Result<u64> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(EngineError::State("too short"))?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*bytes))
    }
    pub fn words(&mut self, bits: u64) -> Result<Vec<u64>> {
        (0..bits.div_ceil(64)).map(|_| self.u64()).collect()
    }
    pub fn tag(&mut self) -> Result<Tag> {
        let mut tag = Tag::default();
        tag.0.copy_from_slice(self.bytes(TAG_BYTES)?);
        Ok(tag)
    }
}
