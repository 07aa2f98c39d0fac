//! The parts of a volume: its ledger, what waits for it, and the policy.

use super::lost::LostBlocks;
use super::waiting::Waiting;
use crate::block::Least;
use crate::latch::Latch;
use crate::options::OpenOptions;
use crate::{Error, Result};
use oblivio_engine::tree::{Intent, TreeOram};
use oblivio_engine::{BlockOp, BlockOutcome};
use std::time::Duration;

/// The smallest number of blocks in a tree.
pub(crate) const LEAST_BLOCKS: u64 = 64;
/// The most operations in a batch.
pub(crate) const MOST_OPS: usize = 256;
/// The largest record of written bytes.
pub(crate) const SYNC_BYTES: usize = 4 << 20;
/// The smallest one.
pub(crate) const LEAST_SYNC: usize = 16 << 10;

/// An engine and everything of it in one kind of store. It knows no policy.
pub trait Ledger: Send + 'static {
    /// What the policy remembers between two commits.
    type Account: Send;

    /// The engine.
    fn engine(&self) -> &TreeOram;
    /// The engine, to change it.
    fn engine_mut(&mut self) -> &mut TreeOram;
    /// The caller's bytes beside the blocks.
    fn root(&self) -> &[u8];
    /// Replaces them, in memory.
    fn set_root(&mut self, root: Vec<u8>);
    /// The most blocks that may exist.
    fn limit(&self) -> u64;
    /// Replaces the stored header by one with another limit.
    ///
    /// # Errors
    /// `Invalid` for a limit that the volume cannot have, and those of the store.
    fn set_limit(&mut self, blocks: u64) -> Result<()>;
    /// Records a new number of addressable blocks and a new size class, durably.
    ///
    /// # Errors
    /// Those of the store.
    fn record_resize(&mut self, blocks: u64, class: u64) -> Result<()>;
    /// Judges an outcome: a store may say more of it.
    ///
    /// # Errors
    /// That of the result, or what it means.
    fn judged<T>(&mut self, result: Result<T>) -> Result<T>
    where
        Self: Sized;
    /// Ends the session after a failure, so that nobody waits for it; once.
    fn give_up(&mut self);
}

/// When what waits is carried out, in which batches, and what else is shown then. It follows from
/// public numbers. All of it runs under the rule that a failure closes the handle.
pub trait Policy {
    /// Ids below this one may be in use.
    fn addressable(&self) -> u64;
    /// The most operations of a batch now.
    fn batch_limit(&self) -> usize;
    /// Serves operations as one batch, with its record and what it makes due.
    ///
    /// # Errors
    /// Those of the store and of the engine, here and below.
    fn serve_batch(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>>;
    /// Serves operations in order, as soon as possible.
    fn serve(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>>;
    /// Accepts operations, and carries out what is too much to wait.
    fn accept(&mut self, ops: Vec<BlockOp>) -> Result<()>;
    /// Makes everything accepted durable.
    fn sync(&mut self) -> Result<()>;
    /// Makes everything durable, leaves nothing to replay, and ends the session.
    fn close(&mut self) -> Result<()>;
    /// Does a little; the time after which it wants another call.
    fn rest(&mut self) -> Result<Option<Duration>>;
    /// Notes that runs of blocks are gone; `asked` is the number to show.
    fn note_discards(&mut self, runs: &[(u64, u64)], asked: u64);
    /// The tree has more addressable blocks.
    fn grown(&mut self) -> Result<()> {
        Ok(())
    }
    /// Says by which public rule the next requests come: they changed.
    fn report_rule(&mut self);
    /// Shows again what a record says was shown.
    fn replay_intent(&mut self, intent: &Intent) -> Result<()>;
    /// Makes a batch that a replay showed once more, as a new one, with a record of its own. A tree
    /// in windows does not: recoveries that are cut off again and again must come to an end.
    fn renew(&mut self, _intent: &Intent) -> Result<()> {
        Ok(())
    }
    /// All records were replayed: carries out what they left, and commits.
    fn end_replay(&mut self) -> Result<()>;
    /// How many more blocks may exist before the store is full.
    fn room_left(&self) -> Result<Option<u64>> {
        Ok(None)
    }
    /// Pads the work since the last call to these public numbers, if each operation has a turn.
    fn pad_to(&mut self, least: Least) -> Result<()> {
        let _ = least;
        Ok(())
    }
    /// Ends one of the caller's operations: shows everything that it must show.
    fn pad_operation(&mut self) -> Result<()> {
        Ok(())
    }
    /// Whether a caller with no unanswered request should commit now.
    fn commit_is_near(&self) -> bool {
        false
    }
}

/// An open volume on an engine of trees.
pub struct Core<L: Ledger> {
    pub(crate) ledger: L,
    pub(crate) waiting: Waiting,
    pub(crate) account: L::Account,
    pub(crate) memory_bytes: usize,
    pub(crate) options: OpenOptions,
    /// Batches that were shown again.
    pub(crate) replayed: u64,
    pub(crate) lost: LostBlocks,
    latch: Latch,
    /// Whether the session has ended in order.
    ended: bool,
}

/// A command that fails somewhere else drops the volume as it is.
impl<L: Ledger> Drop for Core<L> {
    fn drop(&mut self) {
        if !self.ended && !self.latch.is_closed() {
            self.ledger.give_up();
        }
    }
}

impl<L: Ledger> Core<L> {
    /// A volume at its last commit.
    pub(crate) fn over(
        ledger: L,
        account: L::Account,
        (memory_bytes, options): (usize, OpenOptions),
    ) -> Self {
        let waiting = Waiting::after(ledger.root(), options.pad && options.pace.is_none());
        let (lost, latch) = (LostBlocks::default(), Latch::default());
        let (replayed, ended) = (0, false);
        Self { ledger, waiting, account, memory_bytes, options, replayed, lost, latch, ended }
    }

    /// Runs `work` unless an earlier failure closed this handle; a failure closes it.
    pub(crate) fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.latch.expect_open()?;
        self.ended = false;
        let result = work(self);
        let result = self.ledger.judged(result);
        let result = self.latch.judged(result);
        // Another computer need not wait for a handle that does nothing more. A store
        // that failed is asked for nothing.
        if self.latch.is_closed() && !matches!(&result, Err(Error::Store(_))) {
            self.ledger.give_up();
        }
        result
    }

    /// Notes whether the session has ended in order, and nothing was done since.
    pub(crate) fn note_ended(&mut self, ended: bool) {
        self.ended = ended;
    }

    /// As [`LostBlocks::note`].
    pub(crate) fn note_lost(&mut self, ids: &[u64], outcomes: &[BlockOutcome]) {
        let (deferred, block_bytes) = (&self.waiting.deferred, self.ledger.engine().block_bytes());
        self.lost.note(ids, outcomes, |id| deferred.replaces(id, block_bytes));
    }

    /// As [`LostBlocks::written_in_part`].
    pub(crate) fn written_in_part(&mut self, ops: &[BlockOp]) -> Option<u64> {
        self.lost.written_in_part(ops, self.ledger.engine().block_bytes())
    }

    /// What the limit refuses.
    pub(crate) fn used_up(&self) -> Error {
        Error::Full(format!(
            "the volume's limit of {} blocks of {} bytes is used up",
            self.ledger.limit(),
            self.ledger.engine().block_bytes()
        ))
    }
}

impl<L: Ledger> Core<L>
where
    Self: Policy,
{
    /// Carries out all deferred writes, the oldest first. Those of parts of lost blocks change
    /// nothing: the blocks stay lost, and are known to be so.
    pub(crate) fn drain(&mut self) -> Result<()> {
        while !self.waiting.deferred.is_empty() {
            let ops = self.waiting.deferred.drain(self.batch_limit());
            self.serve_batch(ops)?;
        }
        Ok(())
    }
}
