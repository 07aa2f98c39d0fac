//! Idle maintenance. A request that arrives during a step waits for its end, so each step does a
//! little.

use crate::Result;
use crate::core::Policy;
use crate::options::ShownKind;
use crate::tree::policy::{Flush, interval};
use crate::tree::tuning::SWEEP_IDLE;
use crate::tree::volume::TreeVolume;
use oblivio_engine::tree::AHEAD_BYTES;

impl TreeVolume {
    /// Sweeps a little; says whether there is more to do.
    pub(crate) fn sweep_when_idle(&mut self) -> Result<bool> {
        // Removed blocks are discarded after the commit that removed them: there may be no caller
        // to commit again.
        if self.shrink_is_due() || self.account.since.commit_wanted {
            self.commit_by_parts()?;
            return Ok(true);
        }
        if self.ledger.engine.shrink_left() == 0 {
            return self.reclaim();
        }
        // A step of its own, because a new request waits for its end.
        if self.commit_if_due()? {
            return Ok(true);
        }
        self.sweep(self.paths_for_a_moment())?;
        // The buckets of the last paths are free after a commit.
        self.account.since.commit_wanted = self.ledger.engine.shrink_left() == 0;
        self.reclaim_end()?;
        Ok(true)
    }

    /// Paths to sweep in one step. Towards the commit each writes more of the cached buckets, so
    /// there are fewer.
    fn paths_for_a_moment(&self) -> u64 {
        let levels = u64::from(self.ledger.engine.depth().0) + 1;
        let cached = u64::from((self.ledger.engine.cached_buckets() + 1).ilog2()).min(levels);
        let left = self.progress().paths_left();
        // A bucket has no other turn before the commit if its level has more buckets than paths are
        // left.
        let last_turns = cached.saturating_sub(u64::from(left.max(1).ilog2()));
        let others = levels - cached + 1;
        (SWEEP_IDLE * others / (others + last_turns)).max(1)
    }

    /// Commits early, or comes closer to it: all cached buckets may need writing, which takes
    /// several steps.
    fn commit_by_parts(&mut self) -> Result<()> {
        if !self.waiting.deferred.is_empty() {
            let ops = self.waiting.deferred.drain(self.batch_limit());
            self.serve_batch(ops)?;
            return self.commit_if_due().map(drop);
        }
        if self.may_flush_ahead()
            && let Some(mut part) = self.ledger.engine.begin_flush_ahead()?
        {
            self.account.since.flushed_ahead += 1;
            return self.run(&mut part, ShownKind::Flush);
        }
        self.checkpoint(Flush::Due)
    }

    /// Whether there is room for buckets that may be written once more before the commit: the
    /// longer interval's room is enough for all cached ones.
    fn may_flush_ahead(&self) -> bool {
        let ahead =
            self.account.since.flushed_ahead * AHEAD_BYTES as u64 / self.ledger.bucket_bytes();
        let little = interval(self.account.since.stored, false, self.ledger.bucket_bytes());
        self.account.since.interval > little && ahead < self.ledger.engine.cached_buckets()
    }
}
