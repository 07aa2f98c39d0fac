//! When a commit is due, what comes a little before it, and how much the store keeps until then.

use crate::Result;
use crate::tree::volume::TreeVolume;

/// Bytes of journal after which a commit is due: a sixteenth of the volume between these. A crash
/// makes the next opening serve as much again.
const LEAST_JOURNAL: u64 = 4 << 20;
const MOST_JOURNAL: u64 = 256 << 20;
/// Where somebody waits for each operation, a commit may come as soon as one with so many bytes, and half
/// as much that had waited, would not end before it is due.
const OPERATION: usize = 1 << 20;
/// So many times as early the store begins to keep less of what is not durable, down to this.
const NEARING: u64 = 8;
const LITTLE_KEPT: usize = 3 << 20;
/// The store keeps so much of an object, or an eighth of the budget, while the disk falls behind. It is
/// two of them that are written much at the same time.
const MOST_KEPT: usize = 96 << 20;

/// What the store may keep of an object, with so much memory.
pub(crate) fn most_kept(memory_bytes: usize) -> usize {
    MOST_KEPT.min(memory_bytes / 8)
}

impl TreeVolume {
    /// Whether a commit comes between two operations, if it can, and not in the midst of one that somebody
    /// waits for. With a pace it has its time.
    pub(crate) fn commits_ahead(&self) -> bool {
        self.options.short_pauses && self.pacer.is_none()
    }

    /// Scheduled paths before a commit is due, of which each writes more of the cached buckets than the one
    /// before, and from which on it may come ahead.
    pub(crate) fn paths_ahead(&self) -> u64 {
        let config = self.engine.config();
        let accesses = OPERATION * 3 / 2 / config.block_bytes;
        config.eviction.due(0, accesses as u64).min(self.evictions_between_commits() / 2)
    }

    /// Whether one should come as soon as everybody is answered.
    pub(crate) fn commit_is_near(&self) -> bool {
        self.commits_ahead()
            && self.paths_late() == 0
            && (self.paths_to_commit() <= self.paths_ahead()
                || self.journal.bytes() * 4 > self.journal_limit() * 7)
    }

    /// Has the store keep less, path by path, in the last operations before a commit, and little in the
    /// very last: so each waits for some of what it kept, and neither the commit nor one of them for all.
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
        self.store.may_keep(little + more);
    }

    /// Scheduled paths until a commit is due.
    pub(crate) fn paths_to_commit(&self) -> u64 {
        self.evictions_between_commits().saturating_sub(self.paths_since_commit())
    }

    pub(crate) fn paths_since_commit(&self) -> u64 {
        self.engine.evictions() - self.committed_at
    }

    /// Commits when there were so many paths or so much journal that it is due; whether it did.
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

    /// As it is when so many bytes are stored.
    pub(crate) fn journal_limit_for(&self, stored: u64) -> u64 {
        (stored / 16).clamp(LEAST_JOURNAL, MOST_JOURNAL)
    }
}
