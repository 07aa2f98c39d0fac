//! How a record stands in a file of the history: its length, a checksum, its bytes.

/// Bytes before a record's own.
pub(super) const RECORD_HEAD: usize = 12;

/// The first bytes of a hash of a record and its number.
pub(super) fn checksum(number: u64, bytes: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&number.to_le_bytes()).update(bytes);
    let mut sum = [0; 8];
    sum.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    sum
}
