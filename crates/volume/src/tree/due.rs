//! When a commit is due, what comes shortly before it, and how much the store keeps until then.

use crate::Result;
use crate::tree::tuning::{
    LEAST_JOURNAL, LITTLE_KEPT, MOST_JOURNAL, NEARING, OPERATION, most_kept,
};
use crate::tree::volume::TreeVolume;
use oblivio_store::Hint;

impl TreeVolume {
    /// Whether commits come between operations, if they can, and not during one that a caller waits
    /// for. With a pace they have their own time.
    pub(crate) fn commits_ahead(&self) -> bool {
        self.options.short_pauses && self.pacer.is_none()
    }

    /// Scheduled paths before a commit is due at which it may come early. From there on each path
    /// writes more of the cached buckets than the one before.
    pub(crate) fn paths_ahead(&self) -> u64 {
        let config = self.engine.config();
        let accesses = OPERATION * 3 / 2 / config.block_bytes;
        config.eviction.due(0, accesses as u64).min(self.evictions_between_commits() / 2)
    }

    /// Whether a commit should come once all requests are answered.
    pub(crate) fn commit_is_near(&self) -> bool {
        self.commits_ahead()
            && (self.paths_to_commit() <= self.paths_ahead()
                || self.journal.bytes() * 4 > self.journal_limit() * 7)
    }

    /// Makes the store keep less, path by path, in the last operations before a commit, and little
    /// in the very last. Each operation then waits for a part of the kept data; neither the commit
    /// nor one of them waits for all.
    pub(crate) fn keep_little_towards_commit(&self) {
        if !self.commits_ahead() {
            return;
        }
        let most = most_kept(self.memory_bytes);
        let little = LITTLE_KEPT.min(most);
        let (interval, ahead) = (self.evictions_between_commits(), self.paths_ahead());
        let (first, last) = (interval.min(NEARING * ahead), (interval / 2).min(2 * ahead));
        let left = self.paths_to_commit().clamp(last, first) - last;
        let more = (most - little) * left as usize / (first - last).max(1) as usize;
        self.store.hint(Hint::Keep(little + more));
    }

    /// Scheduled paths until a commit is due.
    pub(crate) fn paths_to_commit(&self) -> u64 {
        self.evictions_between_commits().saturating_sub(self.paths_since_commit())
    }

    pub(crate) fn paths_since_commit(&self) -> u64 {
        self.engine.evictions() - self.committed_at
    }

    /// Commits if enough paths or journal make it due; says whether it did.
    pub(crate) fn commit_if_due(&mut self) -> Result<bool> {
        let due = self.is_commit_due(0);
        if due {
            self.checkpoint()?;
        }
        Ok(due)
    }

    pub(crate) fn journal_limit(&self) -> u64 {
        self.journal_limit_for(self.slab.current_bytes())
    }

    /// The limit for this many stored bytes.
    pub(crate) fn journal_limit_for(&self, stored: u64) -> u64 {
        (stored / 16).clamp(LEAST_JOURNAL, MOST_JOURNAL)
    }
}
