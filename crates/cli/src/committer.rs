//! Commits while a long command is at work, so that memory stays bounded and little is lost.

use anyhow::Result;
use oblivio_volume::fs::FileSystem;
use std::time::{Duration, Instant};

/// So many bytes at the most go into one commit.
pub const COMMIT_BYTES: u64 = 64 << 20;
/// What one change of the tree counts for: about what its metadata takes.
pub const CHANGE_BYTES: u64 = 4 << 10;
/// So long at the most until the next commit.
const COMMIT_EVERY: Duration = Duration::from_secs(5);

/// Knows what is not yet committed.
pub struct Committer<'f> {
    fs: &'f FileSystem,
    bytes: u64,
    last: Instant,
}

impl<'f> Committer<'f> {
    pub fn new(fs: &'f FileSystem) -> Self {
        Self { fs, bytes: 0, last: Instant::now() }
    }

    /// So many bytes of data were written.
    pub fn wrote(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// A name or an attribute was changed.
    pub fn changed(&mut self) {
        self.bytes += CHANGE_BYTES;
    }

    /// Whether `more` bytes still go into this commit.
    pub fn has_room(&self, more: u64) -> bool {
        self.bytes.saturating_add(more) <= COMMIT_BYTES
    }

    /// Whether it is time.
    pub fn due(&self) -> bool {
        self.bytes >= COMMIT_BYTES || (self.bytes > 0 && self.last.elapsed() >= COMMIT_EVERY)
    }

    /// Makes everything so far durable.
    pub fn commit(&mut self) -> Result<()> {
        if self.bytes > 0 {
            self.fs.commit()?;
        }
        self.bytes = 0;
        self.last = Instant::now();
        Ok(())
    }

    /// Commits if it is time; tells whether it did.
    pub fn commit_if_due(&mut self) -> Result<bool> {
        let due = self.due();
        if due {
            self.commit()?;
        }
        Ok(due)
    }
}
