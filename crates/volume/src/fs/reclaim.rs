//! Reclaims room that metadata no longer needs.
//!
//! The database keeps freed pages for later metadata, and one page in use at the end of its file
//! keeps all before it. So before a volume counts as full, the database is compacted: it moves its
//! pages to the front. Closing it then cuts its file off.

use super::backend::open_database;
use super::cache::DataCache;
use super::state::State;
use super::tables::Meta;
use super::tails::Tails;
use super::twin_io::TwinIo;
use crate::{BlockSpace, Error, Result};

impl State {
    /// Commits, closes the database cleanly, and gives the block space back. A session that changed
    /// nothing writes nothing, unless the end of every session must look the same.
    pub(super) fn finish(&mut self) -> Result<Box<dyn BlockSpace>> {
        self.remove_orphans()?;
        self.commit()?;
        if self.should_shrink()? {
            self.shrink_metadata()?;
        }
        let untouched = {
            let pool = self.pool.lock();
            !pool.metadata.changed && !self.owed.pads
        };
        if !untouched {
            self.close_database()?;
        }
        TwinIo(&mut self.pool.lock()).end_twins()?;
        let blocks = self.pool.lock().take_blocks();
        let mut blocks =
            blocks.ok_or_else(|| Error::Closed("the file system was closed".into()))?;
        // Without blocks, closing it changes nothing.
        self.meta.close();
        blocks.end()?;
        Ok(blocks)
    }

    /// Closes the database cleanly, right after a commit, and frees the blocks behind its end.
    pub(super) fn close_database(&mut self) -> Result<()> {
        {
            let mut pool = self.pool.lock();
            pool.metadata.hold = true;
            pool.failure = None;
        }
        self.meta.close();
        self.expect_end();
        let mut pool = self.pool.lock();
        if let Some(error) = pool.failure.take() {
            return Err(error);
        }
        pool.metadata_commit()?;
        pool.metadata_trim()
    }

    /// Whether metadata takes much of the volume, and enough of it was removed. Otherwise a volume
    /// full of data would compact, in vain, at every write that does not fit.
    pub(super) fn could_shrink(&self) -> bool {
        let pool = self.pool.lock();
        let mapped = pool.metadata.map.mapped();
        mapped >= pool.allocator.capacity() / 16 && self.cleaning.removals > mapped / 16
    }

    /// Whether to shrink metadata before anybody needs room: after many removals, a volume with
    /// space would else report itself full.
    pub(super) fn should_shrink(&self) -> Result<bool> {
        if !self.cleaning.removed || self.latch.is_closed() || !self.could_shrink() {
            return Ok(false);
        }
        let usage = self.usage()?;
        Ok(usage.free_blocks < usage.capacity_blocks / 16)
    }

    /// Commits, and gives back the blocks that metadata no longer needs. Without room for that,
    /// everything stays as it was. Any other failure half way closes the file system, as the last
    /// commit left it.
    pub(super) fn shrink_metadata(&mut self) -> Result<()> {
        self.commit()?;
        (self.cleaning.removals, self.cleaning.removed) = (0, false);
        let shrunk = self.compact_and_reopen();
        let refused = self.pool.lock().failure.take_if(|cause| matches!(cause, Error::Full(_)));
        match refused {
            Some(_) if shrunk.is_err() => {
                let back = self.go_back();
                self.latch.closed_by(back)
            }
            _ => self.latch.closed_by(shrunk),
        }
    }

    fn compact_and_reopen(&mut self) -> Result<()> {
        self.pool.lock().metadata.in_steps = true;
        let compacted = self.meta.compact();
        self.pool.lock().metadata.in_steps = false;
        compacted?;
        self.close_database()?;
        self.open_again()
    }

    fn open_again(&mut self) -> Result<()> {
        let budget = self.pool.lock().blocks()?.cache_budget();
        self.meta = Meta::new(open_database(&self.pool, budget)?);
        self.meta.begin()
    }

    /// Goes back to the last commit, as a crash would.
    pub(super) fn go_back(&mut self) -> Result<()> {
        self.meta.close();
        self.pool.lock().go_back()?;
        let blocks = self.pool.lock().blocks()?.cache_budget() / 8;
        self.cache = DataCache::new(blocks / self.block_bytes);
        self.tails = Tails::new(blocks);
        self.packs.open.clear();
        self.packs.lost.clear();
        (self.progress.operations, self.progress.accepted, self.progress.pending) = (0, 0, false);
        self.open_again()?;
        self.counters = self.meta.counters()?;
        self.handles.close_newer(self.counters.next_ino);
        Ok(())
    }
}
