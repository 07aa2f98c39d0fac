//! A flush: reads what is to be merged, seals it again with what is new, and writes one bucket to
//! each level (Algorithm 2, with its bytes).

use super::block_reads::BlockReads;
use super::engine::Sequential;
use super::ids::Bucket;
use super::layout::Extent;
use super::map_node::SealedAt;
use super::map_shape::NodeAt;
use super::map_walk::{Goal, MapWalk};
use super::merge_buffer::{Origin, Pick};
use super::placement::Planned;
use super::read::ReadBatch;
use super::step::{Step, total};
use crate::{EngineError, Result};

/// How far a flush is.
#[derive(Default)]
pub(super) enum Phase {
    #[default]
    Idle,
    /// Pages of access times that have their turn are on their way.
    Pages { batch: ReadBatch },
    /// Map leaves of what is merged are on their way.
    Leaves { wanted: Vec<Bucket>, walk: MapWalk, extents: Vec<Extent>, bytes: Vec<u8> },
    /// Blocks of what is merged are on their way.
    Blocks { plan: Vec<Planned<SealedAt>>, reads: BlockReads },
    /// The writes are on their way.
    Writing { extents: Vec<Extent>, bytes: Vec<u8> },
    /// An error ended it.
    Closed,
}

impl Sequential {
    /// Begins the flush that is due.
    ///
    /// # Errors
    /// `Invalid` when none is, or one is under way.
    pub fn begin_flush(&mut self) -> Result<()> {
        self.expect_idle()?;
        if !self.placement.flush_due() {
            return Err(EngineError::Invalid("no flush is due".into()));
        }
        self.phase = Phase::Pages { batch: ReadBatch::new(self.placement.pages_due()) };
        Ok(())
    }

    /// With the pages up to date and in the queue, what the flush reads is known.
    fn begin_merge(&mut self, batch: ReadBatch) -> Result<Phase> {
        for (page, content) in self.placement.pages_due().into_iter().zip(batch.into_answers()) {
            let content = content.unwrap_or_else(|| vec![0; self.config.block_bytes]);
            self.page_cache.forget(page);
            self.placement.push_page(page, content);
        }
        let wanted = self.placement.wanted();
        let goals: Vec<_> = wanted.iter().map(|it| (it.generation, Goal::Leaf(it.index))).collect();
        let walk = MapWalk::new(&self.vault, &goals, false)?;
        let nothing = Phase::Leaves { wanted, walk, extents: Vec::new(), bytes: Vec::new() };
        self.advance(nothing)
    }

    /// The next step of the flush; calling it again says that the step before was carried out.
    ///
    /// What [`Step::Write`] names must be written, whatever it takes: after a step that was not
    /// carried out the engine must be dropped and restored.
    ///
    /// # Errors
    /// `TamperedExtent` when what was read is not what was written last. The engine is then closed.
    pub fn step(&mut self) -> Result<Step<'_>> {
        let phase = std::mem::replace(&mut self.phase, Phase::Closed);
        self.phase = self.advance(phase)?;
        Ok(match &mut self.phase {
            Phase::Pages { batch } => batch.as_step(),
            Phase::Leaves { extents, bytes, .. } => Step::Read { extents, into: bytes },
            Phase::Blocks { reads, .. } => {
                let (extents, into) = reads.parts();
                Step::Read { extents, into }
            }
            Phase::Writing { extents, bytes } => Step::Write { extents, from: bytes },
            Phase::Idle | Phase::Closed => Step::Done,
        })
    }

    fn advance(&mut self, phase: Phase) -> Result<Phase> {
        match phase {
            Phase::Idle => Ok(Phase::Idle),
            Phase::Closed => Err(EngineError::Closed),
            Phase::Pages { mut batch } => {
                self.advance_batch(&mut batch)?;
                if batch.is_done() {
                    return self.begin_merge(batch);
                }
                Ok(Phase::Pages { batch })
            }
            Phase::Leaves { wanted, mut walk, mut bytes, .. } => {
                walk.supply(&mut self.vault, &mut bytes)?;
                let extents = walk.missing(&mut self.vault)?;
                if !extents.is_empty() {
                    bytes.resize(total(&extents), 0);
                    return Ok(Phase::Leaves { wanted, walk, extents, bytes });
                }
                for (bucket, (_, leaf)) in wanted.iter().zip(walk.leaves()) {
                    self.placement.supply(*bucket, &leaf.entries());
                }
                let plan = self.placement.plan();
                let reads = BlockReads::new(&mut self.vault, stored(&plan));
                if reads.is_empty() {
                    return self.seal(&plan, reads);
                }
                Ok(Phase::Blocks { plan, reads })
            }
            Phase::Blocks { plan, mut reads } => {
                reads.open(&mut self.vault)?;
                self.seal(&plan, reads)
            }
            Phase::Writing { bytes, .. } => {
                self.sealed = bytes;
                self.placement.done();
                Ok(Phase::Idle)
            }
        }
    }

    /// Seals everything that the flush writes.
    fn seal(&mut self, plan: &[Planned<SealedAt>], reads: BlockReads) -> Result<Phase> {
        let extents = self.vault.layout.writes(self.placement.flush());
        let mut bytes = std::mem::take(&mut self.sealed);
        bytes.resize(total(&extents), 0);
        let mut rest = &mut bytes[..];
        for Planned { bucket, slots } in plan {
            let generation = bucket.generation;
            let length = self.vault.layout.bucket(*bucket).bytes as usize;
            let (out, behind) = std::mem::take(&mut rest).split_at_mut(length);
            for (slot, out) in slots.iter().zip(out.chunks_mut(self.config.block_bytes)) {
                match slot.as_ref().and_then(|pick| self.content(pick, &reads)) {
                    Some(content) => out.copy_from_slice(content),
                    None => out.fill(0),
                }
            }
            if bucket.index == 0 {
                self.vault.maps(generation.level).begin(generation.number);
            }
            let blocks: Vec<_> =
                slots.iter().map(|slot| slot.as_ref().map(|it| (it.block, it.present))).collect();
            self.vault.seal_bucket(*bucket, &blocks, out)?;
            rest = behind;
            let shape = self.vault.layout.shape(generation.level);
            let closed: Vec<NodeAt> = shape.closed_by(bucket.index).collect();
            for node in closed {
                let length = self.vault.layout.node_bytes();
                let (out, behind) = std::mem::take(&mut rest).split_at_mut(length);
                self.vault.seal_closed(generation, node, out)?;
                rest = behind;
            }
        }
        reads.end(&mut self.vault);
        Ok(Phase::Writing { extents, bytes })
    }

    /// The content of a block that goes into a bucket; none when it was discarded.
    fn content<'a>(&'a self, pick: &Pick<SealedAt>, reads: &'a BlockReads) -> Option<&'a [u8]> {
        match pick.origin {
            Origin::Queue => self.placement.queue().back(pick.block)?.as_deref(),
            Origin::Slot(slot, _) => reads.content(&self.vault, slot),
        }
    }
}

/// The blocks of a plan that must be read. What was discarded has no content worth reading.
fn stored(plan: &[Planned<SealedAt>]) -> impl Iterator<Item = (super::Slot, SealedAt)> {
    let picks = plan.iter().flat_map(|planned| planned.slots.iter().flatten());
    picks.filter(|pick| pick.present).filter_map(|pick| match pick.origin {
        Origin::Slot(slot, sealed) => Some((slot, sealed)),
        Origin::Queue => None,
    })
}
