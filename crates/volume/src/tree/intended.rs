//! Carrying out what waits while a caller waits for it: for as long as that takes where the disk answers,
//! and where it stands still, not for the disk.
//!
//! A batch's intent must be durable before its first read (see `journal`). Of writes that wait the blocks
//! are known ahead, so their batch is *intended* first: its intent is on its way to the disk, the writes
//! still wait, and whoever brings more of them goes on. Every other batch comes after it, as in a replay.

use crate::Result;
use crate::options::ShownKind;
use crate::tree::space::MOST_WAITING;
use crate::tree::volume::TreeVolume;
use crate::volume::engine_error;
use oblivio_engine::tree::Intent;
use oblivio_engine::{BlockAnswer, BlockId, Engine};
use std::sync::Arc;
use std::time::Duration;

/// So long a caller waits for a disk that stands still, several operations' worth where it does not.
const PATIENCE: Duration = Duration::from_millis(40);
/// So many bytes may wait then, or a sixteenth of the budget, and no more blocks than that many bytes fill.
const MOST_STALLED: usize = 32 << 20;
/// In a quiet moment that little is waited for: mostly it is enough.
const MOMENT: Duration = Duration::from_millis(2);

/// What comes before any other batch: one of what waits, or a sweep.
pub(crate) struct Intended {
    intent: Intent,
    /// Its intent is.
    durable: bool,
}

impl Intended {
    fn is_sweep(&self) -> bool {
        self.intent.ids.is_empty()
    }
}

/// How far one call carries out what waits.
pub(crate) struct Effort {
    /// Operations, and the rest of a batch, while no more waits than may: three times what the call brings, so
    /// that what a disk that stood still left over becomes less again.
    ops: usize,
    patience: Duration,
}

impl Effort {
    /// For a call that brings so many operations.
    pub(crate) fn of(ops: usize) -> Self {
        Self { ops: 3 * ops, patience: PATIENCE }
    }
}

impl TreeVolume {
    /// Whether writes may be answered while the disk stands still. Not where the size of each operation
    /// shows, or its time, nor where room is scarce: what waits needs some when it is carried out.
    fn waits_for_nobody(&self) -> bool {
        self.commits_ahead() && self.roomy && !self.options.pad
    }

    fn most_stalled(&self) -> usize {
        MOST_STALLED.min(self.memory_bytes / 16)
    }

    fn most_stalled_ops(&self) -> usize {
        self.most_stalled() / self.engine.block_bytes()
    }

    fn may_wait_longer(&self) -> bool {
        self.deferred.bytes() < self.most_stalled() && self.deferred.len() < self.most_stalled_ops()
    }

    /// Whether a disk that stood still has left more than may wait otherwise.
    pub(crate) fn is_behind(&self) -> bool {
        let many = self.deferred.len() > MOST_WAITING;
        self.waits_for_nobody() && (many || self.deferred.bytes() > self.most_deferred_ever())
    }

    /// Scheduled paths by which a commit may be late, so that what was left is carried out by the operations that
    /// follow and not by the commit: as many as it would have at most.
    pub(crate) fn paths_late(&self) -> u64 {
        let most = self.most_stalled_ops() as u64;
        if self.is_behind() { self.engine.config().eviction.due(0, most) } else { 0 }
    }

    /// Carries out a batch of what waits; whether it did, or the rest is left to the next calls.
    pub(crate) fn carry_out_a_batch(&mut self, effort: &mut Effort) -> Result<bool> {
        if !self.waits_for_nobody() {
            let ops = self.deferred.drain(self.batch_limit());
            return self.serve_batch(ops).map(|_| true);
        }
        let must = !self.may_wait_longer();
        if effort.ops == 0 && !must {
            return Ok(false);
        }
        let clock = Arc::clone(&self.options.environment.clock);
        let begun = clock.now();
        let durable = self.intend(if must { Duration::ZERO } else { effort.patience })?;
        effort.patience = effort.patience.saturating_sub(clock.now() - begun);
        if durable || must {
            effort.ops = effort.ops.saturating_sub(self.serve_intended()?);
        }
        Ok(durable || must)
    }

    /// Has the intent of the next batch become durable, which may take so long; whether it is.
    fn intend(&mut self, patience: Duration) -> Result<bool> {
        if let Some(intended) = &mut self.intended {
            if !intended.durable {
                intended.durable = self.journal.is_durable(&*self.store, patience)?;
            }
            return Ok(intended.durable);
        }
        let ids = self.deferred.oldest(self.batch_limit());
        // All of them, for what waits for a block may be another thing by then.
        let fresh = ids.iter().filter(|&&id| !self.engine.is_live(BlockId(id))).count();
        self.grow_by(fresh as u64)?;
        let intent = self.engine.intend(ids);
        self.begin_intended(intent, patience)
    }

    fn begin_intended(&mut self, intent: Intent, patience: Duration) -> Result<bool> {
        let durable = self.record_intent_soon(&intent, patience)?;
        self.intended = Some(Intended { intent, durable });
        Ok(durable)
    }

    /// In a quiet moment: has the intent of a sweep of so many paths become durable. Nothing else may be intended.
    pub(crate) fn intend_sweep(&mut self, paths: u64) -> Result<()> {
        let intent = self.engine.intend_maintenance(paths.min(self.engine.shrink_left()));
        self.begin_intended(intent, MOMENT).map(drop)
    }

    /// In a quiet moment: serves what was intended, or a batch of what was left, if the disk is back. Whether that
    /// was a sweep.
    pub(crate) fn catch_up(&mut self) -> Result<bool> {
        let sweeps = self.intended.as_ref().is_some_and(Intended::is_sweep);
        let durable = self.intend(Duration::ZERO)?;
        if durable {
            self.serve_intended()?;
        }
        Ok(durable && sweeps)
    }

    /// Serves what was intended, if anything was: to be called before anything else is asked of the
    /// engine that a replay does in the same order. Gives the operations that were carried out.
    pub(crate) fn serve_intended(&mut self) -> Result<usize> {
        let Some(intended) = self.intended.take() else { return Ok(0) };
        if !intended.durable {
            self.journal.make_durable(&*self.store)?;
        }
        self.note_record()?;
        let intent = &intended.intent;
        if intended.is_sweep() {
            self.engine.replay(intent).map_err(engine_error)?;
            self.run(ShownKind::Maintenance)?;
            return Ok(0);
        }
        let ops = self.deferred.take_out(&intent.ids);
        self.accesses += ops.len() as u64;
        self.keep_little_towards_commit();
        self.engine.submit_intended(intent, ops).map_err(engine_error)?;
        Ok(self.run_batch()?.len())
    }

    /// Serves the batch that the engine has, with what follows each.
    pub(crate) fn run_batch(&mut self) -> Result<Vec<BlockAnswer>> {
        self.run(ShownKind::Batch)?;
        let answers = self.engine.take_answers();
        self.sweep_after_batch()?;
        Ok(answers)
    }
}
