//! Engine calls besides operations: replays of a crashed session's intents, early turns of the
//! schedule, and parts of a flush.

use super::{Phase, TreeOram};
use crate::tree::batch::{Batch, Intent};
use crate::{Action, BlockId, BlockOp, Engine, EngineError, Result};

/// Bytes of one partial flush ahead of a commit: what a store takes without waiting.
pub const AHEAD_BYTES: usize = 4 << 20;
/// The most paths of a round of maintenance.
const MOST_EXTRA: u64 = 1 << 16;

impl TreeOram {
    /// Replays a batch of a crashed session. On the state of the last commit, it shows the same
    /// paths in the same order and remaps their blocks, so no later access repeats a path.
    ///
    /// # Errors
    /// As [`Engine::submit`].
    pub fn replay(&mut self, intent: &Intent) -> Result<()> {
        if intent.ids.is_empty() {
            return self.begin_maintenance(intent.seed);
        }
        let read = |&id| BlockOp { id: BlockId(id), action: Action::Read };
        self.submit(intent.ids.iter().map(read).collect())?;
        self.batch.intent.seed = intent.seed;
        Ok(())
    }

    /// Begins a round of `paths` scheduled evictions and nothing else, ahead of their turn. So a
    /// shrinking tree finishes even with little traffic. Run it as a batch.
    ///
    /// # Errors
    /// `Invalid` while a batch is under way, and for more paths than any use of a tree needs.
    pub fn begin_maintenance(&mut self, paths: u64) -> Result<()> {
        self.expect_idle()?;
        if paths > MOST_EXTRA {
            let why = format!("a round has at most {MOST_EXTRA} paths of maintenance");
            return Err(EngineError::Invalid(why));
        }
        self.batch = Batch::new(Vec::new(), paths);
        self.batch.extra = paths;
        self.phase = Phase::Start(0);
        Ok(())
    }

    /// Begins a partial flush ahead of the full one: [`AHEAD_BYTES`], the last buckets in heap
    /// order. Returns whether it did. If not, no more than one such part is left. Run it as a
    /// batch.
    ///
    /// # Errors
    /// `Invalid` while a batch is under way.
    pub fn begin_flush_ahead(&mut self) -> Result<bool> {
        self.expect_idle()?;
        let (mut dirty, most) = (self.trees[0].cache.dirty(), self.buckets_of(0, AHEAD_BYTES));
        let more = dirty.len() > most;
        if more {
            dirty.truncate(most);
            self.phase = Phase::Flushing(0, dirty);
        }
        Ok(more)
    }
}
