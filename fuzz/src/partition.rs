//! The table of contents of a store in one file or partition.

use oblivio_store::partition;

/// A table of any content with a right checksum: refused, or re-encoded byte for byte, which the
/// decoder itself checks.
pub fn partition_table(data: &[u8]) {
    let _ = partition::fuzz_table(data);
}
