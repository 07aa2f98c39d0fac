//! The numbers that the policy gets, and what follows from its decisions.

use crate::Result;
use crate::tree::policy::{self, Commit, Flush, Progress};
use crate::tree::top;
use crate::tree::tuning::{OPERATION, ROOMY, most_kept};
use crate::tree::volume::TreeVolume;
use oblivio_store::Hint;

impl TreeVolume {
    /// The public numbers since the last commit.
    pub(crate) fn progress(&self) -> Progress {
        let interval = self.account.since.interval;
        // Commits come between operations, if they can, and not during one that a caller waits for.
        // With a pace they have their own time. From the early point on each path writes more of
        // the cached buckets than the one before.
        let early = self.options.short_pauses && self.account.pacer.is_none();
        let config = self.ledger.engine.config();
        let accesses = OPERATION * 3 / 2 / config.block_bytes;
        let ahead = config.eviction.due(0, accesses as u64).min(interval / 2);
        Progress {
            paths: self.ledger.engine.evictions() - self.account.since.paths,
            interval,
            journal: self.ledger.journal.bytes(),
            stored: self.ledger.slab.current_bytes(),
            ahead: early.then_some(ahead),
            top_is_short: top::is_short(self),
        }
    }

    /// Tells the store how much it may keep until the next commit.
    pub(crate) fn keep_little_towards_commit(&self) {
        if let Some(bytes) = self.progress().most_kept(most_kept(self.memory_bytes)) {
            self.ledger.store.hint(Hint::Keep(bytes));
        }
    }

    /// Whether enough paths or journal make a commit due.
    pub(crate) fn is_commit_due(&self) -> bool {
        self.progress().commit() == Commit::Due
    }

    /// Commits if one is due; says whether it did.
    pub(crate) fn commit_if_due(&mut self) -> Result<bool> {
        let due = self.is_commit_due();
        if due {
            self.checkpoint(Flush::Due)?;
        }
        Ok(due)
    }

    /// Whether the store has much room beside `more` bytes, when this much is stored. A store that
    /// cannot answer may be failing, which is no reason to give it up after a commit.
    pub(crate) fn finds_much_room(&self, stored: u64, more: u64) -> bool {
        let bucket_bytes = self.ledger.bucket_bytes();
        let taken = ROOMY * policy::interval(stored, true, bucket_bytes) * 2 * bucket_bytes + more;
        self.ledger.store.free_bytes().is_ok_and(|free| free.is_none_or(|free| free >= taken))
    }
}
