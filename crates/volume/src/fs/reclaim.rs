//! Room that metadata took once and does not need any more.
//!
//! The database keeps the pages of what was removed, for metadata to come, and one page in use at
//! the end of its file keeps all before it. So when a volume would else be full, the database is
//! compacted: it moves its pages to the front. Then it is closed, which cuts its file off.

use super::backend::open_database;
use super::state::State;
use super::tables::Meta;
use crate::Result;

impl State {
    /// Closes the database cleanly, right after a commit, and lets go of the blocks behind its end.
    pub(super) fn close_database(&mut self) -> Result<()> {
        {
            let mut pool = self.pool.lock();
            pool.metadata.hold = true;
            pool.failure = None;
        }
        self.meta.close();
        let mut pool = self.pool.lock();
        if let Some(error) = pool.failure.take() {
            return Err(error);
        }
        pool.metadata_commit()?;
        pool.metadata_trim()
    }

    /// Whether metadata takes much of the volume, and enough of it was removed: on a volume that is
    /// full of data it would else be tried, in vain, each time that something does not fit.
    pub(super) fn could_shrink(&self) -> bool {
        let pool = self.pool.lock();
        let mapped = pool.metadata.mapped_blocks();
        mapped >= pool.allocator.capacity() / 16 && self.removals > mapped / 16
    }

    /// Commits, and gives the blocks back that metadata does not need any more. A failure half way
    /// closes the file system: it stays as the last commit left it.
    pub(super) fn shrink_metadata(&mut self) -> Result<()> {
        self.commit()?;
        self.removals = 0;
        let shrunk = self.compact_and_reopen();
        self.settle_closed(shrunk)
    }

    fn compact_and_reopen(&mut self) -> Result<()> {
        self.pool.lock().metadata.in_steps = true;
        let compacted = self.meta.compact();
        self.pool.lock().metadata.in_steps = false;
        compacted?;
        self.close_database()?;
        let budget = self.pool.lock().blocks()?.cache_budget();
        self.meta = Meta::new(open_database(&self.pool, budget)?);
        self.meta.begin()
    }
}
