//! Flushes, as an observer of a store can count them.

/// Counts flushes as an observer of the writes can: from the second turn of the queue on, each
/// flush writes one bucket of the top level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flushes {
    /// Flushes seen so far.
    pub seen: u64,
    /// Bytes of a bucket of the top level.
    pub bucket_bytes: u64,
    /// Buckets in a generation of the top level.
    pub buckets: u64,
    /// Bytes from one generation to the next.
    pub stride: u64,
    /// Bytes of the top level.
    pub end: u64,
}

impl Flushes {
    /// Notes a write to the disk.
    pub fn see(&mut self, offset: u64, len: u64) {
        self.seen += self.begun_before(offset + len) - self.begun_before(offset);
    }

    /// Buckets of the top level that begin before this place.
    fn begun_before(&self, place: u64) -> u64 {
        let place = place.min(self.end);
        let in_generation = (place % self.stride).div_ceil(self.bucket_bytes);
        place / self.stride * self.buckets + in_generation.min(self.buckets)
    }
}
