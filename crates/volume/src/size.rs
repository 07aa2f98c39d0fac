//! The tree follows what is stored: it grows when its size class is used up and shrinks, path by
//! path, when most of it has gone.

use crate::Result;
use crate::options::ShownKind;
use crate::volume::{LEAST_BLOCKS, Volume, engine_error};
use oblivio_engine::tree::size_class_after;
use oblivio_engine::{Action, BlockId, BlockOp, Engine, TreeId};
use std::ops::Range;

/// Written bytes after which a commit is due whatever else happens; beyond it, an eighth of the
/// volume. The rule looks at public numbers only.
const COMMIT_BYTES: u64 = 16 << 20;
/// Scheduled paths that follow each batch while the tree shrinks.
const SWEEP_BATCH: u64 = 2;
/// Scheduled paths at a time when nothing else is to be done, and at the end of a session.
const SWEEP_IDLE: u64 = 32;
const SWEEP_LAST: u64 = 4096;

impl Volume {
    /// Grows the tree when these operations make more blocks exist than it is made for.
    pub(crate) fn grow_for(&mut self, ops: &[BlockOp]) -> Result<()> {
        let writes = |op: &&BlockOp| !matches!(op.action, Action::Read | Action::Remove);
        let fresh = ops.iter().filter(writes).filter(|op| !self.engine.is_live(op.id)).count();
        let live = self.engine.live_blocks() + fresh as u64;
        if live <= self.engine.size_class() {
            return Ok(());
        }
        self.set_class(size_class_after(live, self.engine.size_class()))
    }

    /// Begins to shrink the tree when it has become much too large.
    pub(crate) fn shrink_if_due(&mut self) -> Result<()> {
        let class = self.engine.size_class();
        let after = size_class_after(self.engine.live_blocks(), class).max(LEAST_BLOCKS);
        if after < class { self.set_class(after) } else { Ok(()) }
    }

    fn set_class(&mut self, class: u64) -> Result<()> {
        let class = class.min(self.engine.config().capacity);
        if class == self.engine.size_class() {
            return Ok(());
        }
        self.journal.resize(&*self.store, self.engine.capacity(), class)?;
        self.engine.set_size_class(class).map_err(engine_error)
    }

    /// Takes the tree's old leaves away, `paths` of them at most.
    fn sweep(&mut self, paths: u64) -> Result<()> {
        let paths = paths.min(self.engine.shrink_left());
        if paths == 0 {
            return Ok(());
        }
        self.engine.begin_maintenance(paths).map_err(engine_error)?;
        self.journal.intent(&*self.store, self.engine.intent())?;
        self.run(ShownKind::Maintenance)
    }

    /// What follows each batch while the tree shrinks.
    pub(crate) fn sweep_after_batch(&mut self) -> Result<()> {
        self.sweep(SWEEP_BATCH)
    }

    /// Sweeps a little in a quiet moment; whether there is more to do.
    pub(crate) fn sweep_when_idle(&mut self) -> Result<bool> {
        self.sweep(SWEEP_IDLE)?;
        self.commit_if_due()?;
        Ok(self.engine.shrink_left() > 0)
    }

    /// Sweeps at the end of a session, by an amount that depends on the size class alone.
    pub(crate) fn sweep_at_end(&mut self) -> Result<()> {
        let mut left = SWEEP_LAST;
        while left > 0 && self.engine.shrink_left() > 0 {
            self.sweep(SWEEP_IDLE)?;
            self.commit_if_due()?;
            left -= SWEEP_IDLE;
        }
        Ok(())
    }

    /// The blocks are absent from now on.
    pub(crate) fn drop_blocks(&mut self, ids: Range<u64>) -> Result<()> {
        for id in ids.clone() {
            self.deferred.forget(id);
        }
        let ids: Vec<_> = ids.map(BlockId).collect();
        self.engine.discard(&ids).map_err(engine_error)
    }

    /// Levels of the tree that are not cached.
    pub(crate) fn stored_levels(&self) -> usize {
        let cached = self.engine.cached_buckets().checked_ilog2().unwrap_or(0);
        (self.engine.depth().0 + 1).saturating_sub(cached).max(1) as usize
    }

    /// Scheduled paths after which a commit is due.
    pub(crate) fn evictions_between_commits(&self) -> u64 {
        let path = self.stored_levels() * self.engine.bucket_bytes(TreeId::DATA);
        COMMIT_BYTES.max(self.slab.current_bytes() / 8) / path as u64
    }
}
