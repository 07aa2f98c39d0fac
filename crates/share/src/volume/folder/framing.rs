//! How a file of the history begins, and how a record stands in it: its length, a checksum, its
//! bytes.

const MAGIC: &[u8; 8] = b"oblvshr1";
/// Bytes before a file's records.
pub(super) const FILE_HEAD: u64 = 16;

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

/// How a file begins whose first record has this number.
pub(super) fn file_head(first: u64) -> [u8; FILE_HEAD as usize] {
    let mut head = [0; FILE_HEAD as usize];
    head[..8].copy_from_slice(MAGIC);
    head[8..].copy_from_slice(&first.to_le_bytes());
    head
}
