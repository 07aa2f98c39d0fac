//! A flush: it reads the blocks to merge, seals them again with the new blocks, and writes one
//! bucket to each level (Algorithm 2, with its bytes).

use super::block_reads::{BlockReads, OpenBlocks};
use super::buffer_map::BufferMaps;
use super::engine::{FlushState, Sequential};
use super::extents::{read, total};
use super::ids::{GenerationBucket, GenerationSlot};
use super::map_node::{Held, SealedAt};
use super::map_shape::NodeAt;
use super::map_walk::{Goal, MapWalk};
use super::merge_buffer::{Origin, Pick};
use super::placement::Planned;
use super::read::ReadBatch;
use super::sealing::{Content, Sealing};
use super::time_pages::Times;
use crate::{Data, EngineError, Extent, Job, Lost, Result, Step, WorkPart, Write};

/// A flush under way. It is not part of the engine, so reads can proceed between its steps.
pub struct Flushing(Phase);

/// The progress of a flush.
enum Phase {
    /// Reading the pages of access times that have their turn.
    Pages { batch: ReadBatch },
    /// Reading the map leaves of the generations to merge.
    Leaves { wanted: Vec<GenerationBucket>, walk: MapWalk, extents: Vec<Extent>, bytes: Vec<u8> },
    /// Reading pages of access times that say what a damaged leaf may have listed.
    Times { batch: ReadBatch },
    /// Reading the blocks to merge.
    Blocks { plan: Vec<Planned<SealedAt>>, reads: BlockReads },
    /// Sealing the blocks to write; the likely reads of the next flushes.
    Sealing { sealing: Sealing, expected: Vec<Extent> },
    /// Writing. The maps do not yet name these writes: a read that begins now must find its way
    /// through the stored maps.
    Writing { extents: Vec<Extent>, bytes: Vec<u8>, maps: Vec<BufferMaps> },
    /// Finished, or ended by an error.
    Over,
}

impl Flushing {
    fn as_step(&mut self) -> Step<'_> {
        match &mut self.0 {
            Phase::Pages { batch } | Phase::Times { batch } => batch.as_step(),
            Phase::Leaves { extents, bytes, .. } => read(extents, bytes),
            Phase::Blocks { reads, .. } => reads.as_step(),
            Phase::Sealing { expected, .. } => Step::Work { expected },
            Phase::Writing { extents, bytes, .. } => {
                Step::Write(Write { extents, data: Data::Together(bytes) })
            }
            Phase::Over => Step::Done,
        }
    }
}

/// The caller must write everything that [`Step::Write`] names. If a step was not carried out, the
/// engine must be dropped and restored.
impl Job for Flushing {
    type Engine = Sequential;

    fn step<'j>(&'j mut self, engine: &mut Sequential) -> Result<Step<'j>> {
        let phase = std::mem::replace(&mut self.0, Phase::Over);
        match engine.advance(phase) {
            Ok(phase) => self.0 = phase,
            Err(error) => {
                engine.flushing = FlushState::Closed;
                return Err(error);
            }
        }
        Ok(self.as_step())
    }

    fn parts(&mut self, count: usize) -> Vec<WorkPart<'_>> {
        match &mut self.0 {
            Phase::Pages { batch } | Phase::Times { batch } => batch.parts(count),
            Phase::Blocks { reads, .. } => reads.parts(count),
            Phase::Sealing { sealing, .. } => sealing.parts(count),
            _ => Vec::new(),
        }
    }
}

impl Sequential {
    /// Begins the flush that is due.
    ///
    /// # Errors
    /// `Invalid` when none is, or one is under way.
    pub fn begin_flush(&mut self) -> Result<Flushing> {
        self.expect_idle()?;
        if !self.placement.flush_due() {
            return Err(EngineError::Invalid("no flush is due".into()));
        }
        self.flushing = FlushState::UnderWay;
        Ok(Flushing(Phase::Pages { batch: ReadBatch::new(self.placement.pages_due()) }))
    }

    /// The likely reads of the next flushes. They follow from what flushes read before.
    fn expected_reads(&mut self) -> Vec<Extent> {
        let (merged, swept) = self.placement.expect();
        let layout = &self.vault.layout;
        let leaf = |generation, index| layout.node(generation, NodeAt { height: 0, index });
        let mut reads = Vec::new();
        for (generation, slots) in merged {
            let each = layout.schedule().bucket_blocks(generation.level);
            for index in slots.start / each..slots.end.div_ceil(each) {
                let first = slots.start.max(index * each);
                let count = slots.end.min((index + 1) * each) - first;
                let Extent { offset, bytes } =
                    layout.slot(GenerationSlot { generation, index: first });
                reads.push(Extent { offset, bytes: count * bytes });
                // The leaf says what is in a bucket.
                reads.extend((first == index * each).then(|| leaf(generation, index)));
            }
        }
        reads.extend(swept.map(|bucket| leaf(bucket.generation, bucket.index)));
        reads
    }

    /// Puts the current pages into the queue; the flush's reads are then known.
    fn begin_merge(&mut self, batch: ReadBatch) -> Result<Phase> {
        for (page, content) in self.placement.pages_due().into_iter().zip(batch.into_answers()) {
            let none = || vec![0; self.config.block_bytes];
            let content = match content {
                Ok(content) => content.unwrap_or_else(none),
                Err(Lost) => {
                    self.met_damage = true;
                    Times::lost_page(self.config.block_bytes)
                }
            };
            self.page_cache.forget(page);
            self.placement.push_page(page, content);
        }
        self.begin_leaves(Vec::new())
    }

    /// Reads the leaves that are wanted now.
    fn begin_leaves(&mut self, bytes: Vec<u8>) -> Result<Phase> {
        let wanted = self.placement.wanted();
        let goals: Vec<_> = wanted.iter().map(|it| (it.generation, Goal::Leaf(it.index))).collect();
        let walk = MapWalk::new(&self.vault, &goals, false)?;
        self.advance(Phase::Leaves { wanted, walk, extents: Vec::new(), bytes })
    }

    /// Gives the leaves to the merges.
    fn take_leaves(&mut self, wanted: &[GenerationBucket], walk: &MapWalk) -> Result<()> {
        for (bucket, found) in wanted.iter().zip(walk.found()) {
            let leaf = found.into_read()?;
            self.met_damage |= leaf.gaps;
            self.placement.supply(*bucket, leaf);
        }
        Ok(())
    }

    fn advance(&mut self, phase: Phase) -> Result<Phase> {
        match phase {
            Phase::Over => Ok(Phase::Over),
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
                self.take_leaves(&wanted, &walk)?;
                // A damaged leaf gave nothing.
                if !self.placement.wanted().is_empty() {
                    return self.begin_leaves(bytes);
                }
                let pages = self.placement.pages_wanted();
                if pages.is_empty() {
                    return self.begin_blocks();
                }
                self.advance(Phase::Times { batch: ReadBatch::new(pages.into_iter().collect()) })
            }
            Phase::Times { mut batch } => {
                self.advance_batch(&mut batch)?;
                if !batch.is_done() {
                    return Ok(Phase::Times { batch });
                }
                let (none, bytes) = (|| vec![0; self.config.block_bytes], self.config.block_bytes);
                for (page, content) in
                    self.placement.pages_wanted().into_iter().zip(batch.into_answers())
                {
                    let content = content
                        .map_or_else(|_| Times::lost_page(bytes), |it| it.unwrap_or_else(none));
                    self.placement.supply_page(page, content);
                }
                self.begin_blocks()
            }
            Phase::Blocks { plan, reads } => self.begin_sealing(&plan, reads.opened()?),
            Phase::Sealing { sealing, .. } => {
                let before = self.vault.maps.clone();
                let (extents, bytes) = sealing.finish(&mut self.vault)?;
                let maps = std::mem::replace(&mut self.vault.maps, before);
                Ok(Phase::Writing { extents, bytes, maps })
            }
            Phase::Writing { bytes, maps, .. } => {
                self.vault.maps = maps;
                // With little memory, free the buffer for reads.
                if self.config.time_pages == 0 {
                    self.sealed = bytes;
                }
                self.placement.done();
                self.flushing = FlushState::Idle;
                Ok(Phase::Over)
            }
        }
    }

    /// Plans the flush and reads its blocks.
    fn begin_blocks(&mut self) -> Result<Phase> {
        let plan = self.placement.plan();
        self.placement.expect_merged()?;
        let reads = BlockReads::new(&self.vault, stored(&plan), std::mem::take(&mut self.spare));
        if reads.is_empty() {
            return self.begin_sealing(&plan, reads.opened()?);
        }
        Ok(Phase::Blocks { plan, reads })
    }

    /// Assembles everything that the flush writes, for sealing.
    fn begin_sealing(&mut self, plan: &[Planned<SealedAt>], blocks: OpenBlocks) -> Result<Phase> {
        let extents = self.vault.layout.writes(self.placement.flush());
        let mut sealing = Sealing::new(&self.vault, extents, std::mem::take(&mut self.sealed));
        for Planned { bucket, slots, gaps } in plan {
            let moved = Moved { engine: self, blocks: &blocks };
            let held = |pick: &Pick<SealedAt>| (pick.block, moved.held(pick));
            let contents: Vec<Content> = slots.iter().map(|slot| slot.as_ref().map(held)).collect();
            let lost = |content: &Content| content.is_some_and(|(_, held)| held == Held::Lost);
            self.met_damage |= *gaps || contents.iter().any(lost);
            let data = sealing.add(&mut self.vault, *bucket, (contents, *gaps))?;
            for (slot, out) in slots.iter().zip(data.chunks_mut(self.config.block_bytes)) {
                let moved = Moved { engine: self, blocks: &blocks };
                match slot.as_ref().and_then(|pick| moved.content(pick)) {
                    Some(content) => out.copy_from_slice(content),
                    None => out.fill(0),
                }
            }
        }
        self.spare = blocks.bytes;
        Ok(Phase::Sealing { sealing, expected: self.expected_reads() })
    }
}

/// The blocks that a flush moves, where it finds them.
struct Moved<'a> {
    engine: &'a Sequential,
    blocks: &'a OpenBlocks,
}

impl<'a> Moved<'a> {
    /// The content of a block for a bucket; none for a discarded block.
    fn content(&self, pick: &Pick<SealedAt>) -> Option<&'a [u8]> {
        let Self { engine, blocks } = *self;
        match pick.origin {
            Origin::Queue => engine.placement.queue().back(pick.block)?.as_deref(),
            Origin::Slot(slot, _) => blocks.content(engine.vault.layout.slot(slot).offset),
            Origin::Lost => None,
        }
    }

    /// What a bucket lists of a block. One whose content did not open stays, as a lost one: without
    /// it an older copy would be the newest.
    fn held(&self, pick: &Pick<SealedAt>) -> Held {
        match (pick.present, pick.origin) {
            (false, _) => Held::Nothing,
            (true, Origin::Queue) => Held::Content,
            (true, _) if self.content(pick).is_some() => Held::Content,
            (true, _) => Held::Lost,
        }
    }
}

/// The blocks of a plan that must be read. A discarded block has no content worth reading.
fn stored(plan: &[Planned<SealedAt>]) -> impl Iterator<Item = (GenerationSlot, SealedAt)> {
    let picks = plan.iter().flat_map(|planned| planned.slots.iter().flatten());
    picks.filter(|pick| pick.present).filter_map(|pick| match pick.origin {
        Origin::Slot(slot, sealed) => Some((slot, sealed)),
        Origin::Queue | Origin::Lost => None,
    })
}
