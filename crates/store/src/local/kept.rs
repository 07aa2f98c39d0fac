//! What was written to a file and is not durable yet.
//!
//! When a sync fails, the system may have dropped what it could not write, and the next sync may
//! succeed without it. So a copy is kept until a sync has succeeded, and after one that failed all
//! of it is written again before anything else happens to the file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The most bytes that are kept of one file; more are synced first.
const MOST: usize = 24 << 20;

/// Copies of writes, in order.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The offset of each write, and its length.
    writes: Vec<(u64, usize)>,
    /// What they wrote, one after the other; it lasts, since fresh memory costs more than the copy.
    bytes: Vec<u8>,
}

impl Kept {
    /// Whether so many bytes more are too many.
    pub(super) fn is_full_with(&self, bytes: usize) -> bool {
        !self.writes.is_empty() && self.bytes.len() + bytes > MOST
    }

    /// Keeps what was just written.
    pub(super) fn add(&mut self, offset: u64, data: &[u8]) {
        self.writes.push((offset, data.len()));
        self.bytes.extend_from_slice(data);
    }

    /// Everything is durable.
    pub(super) fn forget(&mut self) {
        self.writes.clear();
        self.bytes.clear();
    }

    /// The file was cut to so many bytes.
    pub(super) fn cut(&mut self, len: u64) {
        let before = std::mem::take(self);
        for (offset, data) in before.each() {
            let left = usize::try_from(len.saturating_sub(offset)).unwrap_or(usize::MAX);
            self.add(offset, &data[..left.min(data.len())]);
        }
    }

    fn each(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut rest = self.bytes.as_slice();
        self.writes.iter().map(move |&(offset, len)| {
            let (data, others) = rest.split_at(len);
            rest = others;
            (offset, data)
        })
    }

    /// Writes everything again.
    pub(super) fn repeat(&self, file: &File) -> io::Result<()> {
        self.each().try_for_each(|(offset, data)| file.write_all_at(data, offset))
    }
}
