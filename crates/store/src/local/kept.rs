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
    writes: Vec<(u64, Vec<u8>)>,
    bytes: usize,
}

impl Kept {
    /// Whether so many bytes more are too many.
    pub(super) fn is_full_with(&self, bytes: usize) -> bool {
        !self.writes.is_empty() && self.bytes + bytes > MOST
    }

    /// Keeps what was just written.
    pub(super) fn add(&mut self, offset: u64, data: &[u8]) {
        self.bytes += data.len();
        self.writes.push((offset, data.to_vec()));
    }

    /// The file was cut to so many bytes.
    pub(super) fn cut(&mut self, len: u64) {
        for (offset, data) in &mut self.writes {
            let left = usize::try_from(len.saturating_sub(*offset)).unwrap_or(usize::MAX);
            data.truncate(left);
        }
    }

    /// Writes everything again.
    pub(super) fn repeat(&self, file: &File) -> io::Result<()> {
        self.writes.iter().try_for_each(|(offset, data)| file.write_all_at(data, *offset))
    }
}
