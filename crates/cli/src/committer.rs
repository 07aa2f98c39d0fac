//! Commits during a long command: memory stays bounded and a crash loses little.

use anyhow::Result;
use oblivio_app::walk::WriteFiles;
use oblivio_volume::{CHANGE_BYTES, Commits};
use std::time::{Duration, Instant};

/// Limit of the bytes in one commit.
pub const COMMIT_BYTES: u64 = 64 << 20;
/// Longest time between commits.
const COMMIT_EVERY: Duration = Duration::from_secs(5);

/// Keeps count of uncommitted changes.
pub struct Committer<'f> {
    fs: &'f dyn WriteFiles,
    commits: Commits,
}

impl<'f> Committer<'f> {
    pub fn new(fs: &'f dyn WriteFiles) -> Self {
        let commits = Commits::after_bytes(COMMIT_BYTES).or_after(COMMIT_EVERY, Instant::now());
        Self { fs, commits }
    }

    /// Counts written bytes of data.
    pub fn wrote(&mut self, bytes: u64) {
        self.commits.wrote(bytes);
    }

    /// Counts a change of a name or an attribute.
    pub fn changed(&mut self) {
        self.commits.changed(CHANGE_BYTES);
    }

    /// Whether `more` bytes still fit this commit.
    pub fn has_room(&self, more: u64) -> bool {
        self.commits.has_room(more)
    }

    /// Whether a commit is due.
    pub fn due(&mut self) -> bool {
        self.commits.is_due(Instant::now())
    }

    /// Makes everything so far durable.
    pub fn commit(&mut self) -> Result<()> {
        if self.commits.waiting() > 0 {
            self.fs.commit()?;
        }
        self.commits.committed_at(Instant::now());
        Ok(())
    }

    /// Commits if it is due; returns whether it did.
    pub fn commit_if_due(&mut self) -> Result<bool> {
        let due = self.due();
        if due {
            self.commit()?;
        }
        Ok(due)
    }
}
