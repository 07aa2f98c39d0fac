//! The jobs of a tree: batches, replays of a crashed session's batches, rounds of maintenance,
//! flushes. One at a time: each round depends on what the one before left in memory.

use super::{Condition, TreeOram};
use crate::memory::Batches;
use crate::tree::backend::Round;
use crate::tree::batch::{Batch, Intent};
use crate::{
    Action, BlockAnswer, BlockId, BlockOp, BlockOutcome, BucketId, EngineError, Job, Result, Step,
};

/// Bytes of buckets sealed in one step of a flush.
const FLUSH_BYTES: usize = 8 << 20;
/// Bytes of one partial flush ahead of a commit: what a store takes without waiting.
pub const AHEAD_BYTES: usize = 4 << 20;
/// The most paths of a round of maintenance.
const MOST_EXTRA: u64 = 1 << 16;

/// A job on a tree.
pub struct TreeJob {
    batch: Batch,
    phase: Phase,
    /// The buffers of the current step.
    round: Option<Round>,
}

/// The progress of a job.
#[derive(Debug)]
enum Phase {
    /// Plan the round of this level.
    Start(usize),
    /// Reading the round's paths.
    Reading(usize),
    /// Writing the round's paths.
    Writing(usize),
    /// Writing dirty cached buckets.
    Flushing(Vec<BucketId>),
    Done,
}

/// The next duty of the caller.
enum Due {
    Read,
    Write,
    Nothing,
}

impl TreeJob {
    fn new(batch: Batch, phase: Phase) -> Self {
        Self { batch, phase, round: None }
    }

    /// A round of maintenance that also puts these lost blocks back, with this content. Each must
    /// be on one of its paths. A replay does not.
    #[must_use]
    pub fn putting_back(mut self, blocks: Vec<(BlockId, Vec<u8>)>) -> Self {
        self.batch.back = blocks;
        self
    }

    /// The intent of a batch or a round of maintenance. Record it before the first step: what is
    /// not durable then may be shown again after a crash.
    pub fn intent(&self) -> &Intent {
        &self.batch.intent
    }

    /// The outcomes of a finished batch, in the order of its operations.
    pub fn into_outcomes(self) -> Vec<BlockOutcome> {
        self.batch.outcomes
    }

    /// The same, if no block of them is lost.
    ///
    /// # Errors
    /// `Lost` names the first one that is.
    pub fn into_answers(self) -> Result<Vec<BlockAnswer>> {
        let lost = |(outcome, id): (BlockOutcome, _)| outcome.map_err(|_| EngineError::Lost(id));
        self.batch.outcomes.into_iter().zip(self.batch.intent.ids).map(lost).collect()
    }

    fn advance(&mut self, engine: &mut TreeOram) -> Result<Due> {
        let batch = &mut self.batch;
        loop {
            match &mut self.phase {
                Phase::Done => return Ok(Due::Nothing),
                Phase::Start(level) => {
                    let level = *level;
                    if level > 0 && !engine.plan_map_round(batch, level) {
                        self.phase = Phase::Start(level - 1);
                        continue;
                    }
                    if level == 0 {
                        engine.plan_data_round(batch);
                    }
                    engine.begin_round(batch, level);
                    self.phase = Phase::Reading(level);
                    return Ok(Due::Read);
                }
                Phase::Reading(level) => {
                    let level = *level;
                    engine.finish_round(batch, level)?;
                    self.phase = Phase::Writing(level);
                    if engine.tree.writes_any() {
                        return Ok(Due::Write);
                    }
                }
                Phase::Writing(0) => self.phase = Phase::Done,
                Phase::Writing(level) => self.phase = Phase::Start(*level - 1),
                Phase::Flushing(dirty) if dirty.is_empty() => self.phase = Phase::Done,
                Phase::Flushing(dirty) => {
                    let most = engine.buckets_of(FLUSH_BYTES);
                    engine.tree.flush(dirty, most)?;
                    return Ok(Due::Write);
                }
            }
        }
    }
}

impl Job for TreeJob {
    type Engine = TreeOram;

    fn step<'j>(&'j mut self, engine: &mut TreeOram) -> Result<Step<'j>> {
        if let Some(round) = self.round.take() {
            engine.tree.take_back(round);
        }
        if engine.condition == Condition::Closed {
            return Err(EngineError::Closed);
        }
        let due = self.advance(engine);
        engine.condition = match &due {
            Err(_) => Condition::Closed,
            Ok(Due::Nothing) => Condition::Idle,
            Ok(_) => Condition::UnderWay,
        };
        Ok(match due? {
            Due::Nothing => Step::Done,
            Due::Read => self.round.insert(engine.tree.lend_round()).as_read(),
            Due::Write => self.round.insert(engine.tree.lend_round()).as_write(),
        })
    }
}

impl TreeOram {
    /// Begins a batch. The engine serves it in order and shows it to the store as one.
    ///
    /// # Errors
    /// `Invalid` when a job is under way, an id is out of range or data is too long.
    pub fn begin_batch(&mut self, ops: Vec<BlockOp>) -> Result<TreeJob> {
        self.begin_again(ops, None)
    }

    fn begin_again(&mut self, ops: Vec<BlockOp>, seed: Option<u64>) -> Result<TreeJob> {
        self.expect_idle()?;
        ops.iter().try_for_each(|op| self.check_op(op))?;
        let seed = seed.unwrap_or_else(|| self.draw_seed());
        let mut batch = Batch::new(ops, seed);
        self.tree.changes.requests += batch.ops.len() as u64;
        self.take_from_plb(&mut batch);
        Ok(self.job(batch, Phase::Start(self.levels - 1)))
    }

    /// Begins the replay of a batch of a crashed session. On the state of the last commit, it shows
    /// the same paths in the same order and remaps their blocks, so no later access repeats a path.
    ///
    /// # Errors
    /// As [`Self::begin_batch`].
    pub fn begin_replay(&mut self, intent: &Intent) -> Result<TreeJob> {
        if intent.ids.is_empty() {
            return self.begin_maintenance(intent.seed);
        }
        let read = |&id| BlockOp { id, action: Action::Read };
        self.begin_again(intent.ids.iter().map(read).collect(), Some(intent.seed))
    }

    /// Begins a round of `paths` scheduled evictions and nothing else, ahead of their turn. So a
    /// shrinking tree finishes even with little traffic. With windows, it must be one of them.
    ///
    /// # Errors
    /// `Invalid` while a job is under way, and for more paths than any use of a tree needs.
    pub fn begin_maintenance(&mut self, paths: u64) -> Result<TreeJob> {
        self.expect_idle()?;
        if paths > MOST_EXTRA {
            let why = format!("a round has at most {MOST_EXTRA} paths of maintenance");
            return Err(EngineError::Invalid(why));
        }
        self.note_window(paths)?;
        let batch = Batch { extra: paths, ..Batch::new(Vec::new(), paths) };
        Ok(self.job(batch, Phase::Start(0)))
    }

    /// Begins to write back everything that is only in memory.
    ///
    /// # Errors
    /// `Invalid` while a job is under way.
    pub fn begin_flush(&mut self) -> Result<TreeJob> {
        self.expect_idle()?;
        let dirty = self.tree.cache.dirty();
        Ok(self.job(Batch::new(Vec::new(), 0), Phase::Flushing(dirty)))
    }

    /// Begins a partial flush ahead of the full one: [`AHEAD_BYTES`], the last buckets in heap
    /// order. None if no more than one such part is left.
    ///
    /// # Errors
    /// `Invalid` while a job is under way.
    pub fn begin_flush_ahead(&mut self) -> Result<Option<TreeJob>> {
        self.expect_idle()?;
        let (mut dirty, most) = (self.tree.cache.dirty(), self.buckets_of(AHEAD_BYTES));
        if dirty.len() <= most {
            return Ok(None);
        }
        dirty.truncate(most);
        Ok(Some(self.job(Batch::new(Vec::new(), 0), Phase::Flushing(dirty))))
    }

    fn job(&mut self, batch: Batch, phase: Phase) -> TreeJob {
        self.condition = Condition::UnderWay;
        TreeJob::new(batch, phase)
    }
}

impl Batches for TreeOram {
    type Batch = TreeJob;

    fn begin(&mut self, ops: Vec<BlockOp>) -> Result<TreeJob> {
        self.begin_batch(ops)
    }

    fn answers(batch: TreeJob) -> Result<Vec<BlockAnswer>> {
        batch.into_answers()
    }

    fn blocks(&self) -> u64 {
        self.capacity()
    }
}
