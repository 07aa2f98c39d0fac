//! Carries out deferred writes while a caller waits: it waits for that work, but not for a stalled
//! disk.
//!
//! A batch's intent must be durable before its first read (see `journal`). Deferred writes have
//! known blocks, so their batch is *intended* first: its intent is on its way to the disk, the
//! writes stay deferred, and new writes go on meanwhile. Every other batch comes after it, as in a
//! replay.

use crate::Result;
use crate::error::engine_error;
use crate::options::ShownKind;
use crate::tree::intent::Intended;
use crate::tree::tuning::{MOMENT, MOST_STALLED, MOST_WAITING, PATIENCE};
use crate::tree::volume::TreeVolume;
use oblivio_engine::tree::Intent;
use oblivio_engine::{BlockAnswer, BlockId, Engine};
use std::time::Duration;

/// How much deferred work one call carries out.
pub(crate) struct Effort {
    /// Operations, and the rest of a batch, while no more are deferred than may be. Three times the
    /// call's own number, so that the backlog of a stalled disk shrinks.
    ops: usize,
    patience: Duration,
}

impl Effort {
    /// For a call with this many operations.
    pub(crate) fn of(ops: usize) -> Self {
        Self { ops: 3 * ops, patience: PATIENCE }
    }
}

impl TreeVolume {
    /// Whether writes may be answered while the disk stalls. Not if the size of each operation
    /// shows, or its time, nor if room is scarce: deferred writes need some.
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

    /// Whether a stalled disk has left a backlog beyond the usual limit.
    pub(crate) fn is_behind(&self) -> bool {
        let many = self.deferred.len() > MOST_WAITING;
        self.waits_for_nobody() && (many || self.deferred.bytes() > self.most_deferred_ever())
    }

    /// Scheduled paths by which a commit may be late, so that the following operations carry out
    /// the backlog, and not the commit: as many as the commit's own at most.
    pub(crate) fn paths_late(&self) -> u64 {
        let most = self.most_stalled_ops() as u64;
        if self.is_behind() { self.engine.config().eviction.due(0, most) } else { 0 }
    }

    /// Carries out a batch of deferred writes; false if the rest is left to the next calls.
    pub(crate) fn carry_out_a_batch(&mut self, effort: &mut Effort) -> Result<bool> {
        if !self.waits_for_nobody() {
            let ops = self.deferred.drain(self.batch_limit());
            return self.serve_batch(ops).map(|_| true);
        }
        let must = !self.may_wait_longer();
        if effort.ops == 0 && !must {
            return Ok(false);
        }
        let begun = self.options.environment.clock.now();
        let durable = self.intend(if must { Duration::ZERO } else { effort.patience })?;
        effort.patience =
            effort.patience.saturating_sub(self.options.environment.clock.now() - begun);
        if durable || must {
            effort.ops = effort.ops.saturating_sub(self.serve_intended()?);
        }
        Ok(durable || must)
    }

    /// Makes the intent of the next batch durable, within `patience`; says whether it is.
    fn intend(&mut self, patience: Duration) -> Result<bool> {
        if let Some(intended) = &mut self.intended {
            if !intended.durable {
                intended.durable = self.journal.is_durable(&*self.store, patience)?;
            }
            return Ok(intended.durable);
        }
        let ids = self.deferred.oldest(self.batch_limit());
        // All of them: other writes may be deferred for a block by then.
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

    /// In an idle step: starts to make the intent of a sweep durable. Nothing else may be intended.
    pub(crate) fn intend_sweep(&mut self, paths: u64) -> Result<()> {
        let intent = self.engine.intend_maintenance(paths.min(self.engine.shrink_left()));
        self.begin_intended(intent, MOMENT).map(drop)
    }

    /// In an idle step: serves the intended work, or a batch of the backlog, if the disk answers
    /// again. Says whether that was a sweep.
    pub(crate) fn catch_up(&mut self) -> Result<bool> {
        let sweeps = self.intended.as_ref().is_some_and(Intended::is_sweep);
        let durable = self.intend(Duration::ZERO)?;
        if durable {
            self.serve_intended()?;
        }
        Ok(durable && sweeps)
    }

    /// Serves the intended work, if any. Call it before any other engine work that a replay does in
    /// the same order. Gives the number of operations carried out.
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

    /// Serves the engine's batch, with the sweep behind it.
    pub(crate) fn run_batch(&mut self) -> Result<Vec<BlockAnswer>> {
        self.run(ShownKind::Batch)?;
        let answers = self.engine.take_answers();
        self.sweep_after_batch()?;
        Ok(answers)
    }
}
