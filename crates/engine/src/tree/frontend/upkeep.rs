//! What is asked of the engine beside operations: what a crashed session showed once more, turns of the
//! schedule ahead, and parts of a flush.

use super::{Phase, TreeOram};
use crate::tree::batch::{Batch, Intent};
use crate::{Action, BlockId, BlockOp, Engine, EngineError, Result};

/// What is flushed at a time ahead of a commit, in bytes: no more than a store takes without waiting.
pub const AHEAD_BYTES: usize = 4 << 20;
/// The most paths of a round of maintenance.
const MOST_EXTRA: u64 = 1 << 16;

impl TreeOram {
    /// Serves a batch of a crashed session again: on the state of the last commit it shows the
    /// same paths in the same order, and remaps their blocks, so that no path is repeated later.
    ///
    /// # Errors
    /// As [`Engine::submit`].
    pub fn replay(&mut self, intent: &Intent) -> Result<()> {
        if intent.ids.is_empty() {
            return self.begin_maintenance(intent.seed);
        }
        let read = |&id| BlockOp { id: BlockId(id), action: Action::Read };
        self.submit_intended(intent, intent.ids.iter().map(read).collect())
    }

    /// What a batch of operations on these blocks will show, whatever they are: its intent may be made
    /// durable before they are submitted ([`Self::submit_intended`]), if no other batch comes before.
    pub fn intend(&mut self, ids: Vec<u64>) -> Intent {
        Intent { seed: self.draw_seed(), ids }
    }

    /// As [`Engine::submit`], with operations on the blocks of this intent, in its order.
    ///
    /// # Errors
    /// As [`Engine::submit`]; `Invalid` when they are others.
    pub fn submit_intended(&mut self, intent: &Intent, ops: Vec<BlockOp>) -> Result<()> {
        if !ops.iter().map(|op| &op.id.0).eq(&intent.ids) {
            return Err(EngineError::Invalid("other blocks were intended".into()));
        }
        self.submit(ops)?;
        self.batch.intent.seed = intent.seed;
        Ok(())
    }

    /// What a round of maintenance will show: its intent may be made durable before it begins, by a replay of it,
    /// if no batch comes before.
    pub fn intend_maintenance(&self, paths: u64) -> Intent {
        Intent { seed: paths, ids: Vec::new() }
    }

    /// Begins a round of `paths` scheduled evictions and nothing else, as if their turn had come:
    /// so a tree that shrinks gets done when there is little traffic. Run it as a batch.
    ///
    /// # Errors
    /// `Invalid` while a batch is under way, and for more paths than a tree has in any use.
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

    /// Begins to flush a part of what a flush would, ahead of it: [`AHEAD_BYTES`], the last buckets in
    /// heap order. Says whether it did; what is left is no more than such a part otherwise. Run it as
    /// a batch.
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
