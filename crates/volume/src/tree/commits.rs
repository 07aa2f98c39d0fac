//! Commits, and what begins with each: the interval to the next one.

use crate::Result;
use crate::tree::account::Since;
use crate::tree::policy::{self, Flush, Progress};
use crate::tree::top;
use crate::tree::volume::TreeVolume;
use oblivio_engine::tree::TopView;

impl TreeVolume {
    /// A commit that leaves nothing deferred and an empty journal.
    pub(crate) fn checkpoint(&mut self, flush: Flush) -> Result<()> {
        self.carry_out_all()?;
        self.write_commit(flush)
    }

    /// Flushes the engine, stores the state, and makes all current. Nothing may be deferred.
    pub(crate) fn write_commit(&mut self, flush: Flush) -> Result<()> {
        self.shrink_if_due()?;
        match flush == Flush::Due && top::goes_on(self) {
            true => top::report_commit(self),
            false => top::flush_all(self)?,
        }
        self.ledger.commit()?;
        self.forget_unsynced();
        self.give_back()?;
        let Progress { paths, interval, .. } = self.progress();
        self.begin_interval(paths >= interval / 2)?;
        self.report_now();
        Ok(())
    }

    /// Begins an interval after a commit: everything is flushed, so the cache may change. The one
    /// before was `busy` or not.
    pub(crate) fn begin_interval(&mut self, busy: bool) -> Result<()> {
        let stored = self.ledger.slab.current_bytes();
        let roomy = self.finds_much_room(stored, 0);
        let interval = policy::interval(stored, roomy, self.ledger.bucket_bytes());
        let paths = self.ledger.engine.evictions();
        self.account.since = Since { paths, stored, roomy, interval, ..Since::default() };
        if TopView::of(&self.ledger.engine).rule().is_some() {
            return if top::goes_on(self) { self.fit_cache() } else { Ok(()) };
        }
        self.fit_cache()?;
        match top::rule(self, busy) {
            Some(rule) => top::begin(self, rule),
            None => Ok(self.ledger.engine.expect_flush_after(self.account.since.interval)?),
        }
    }
}
