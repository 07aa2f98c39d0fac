//! Reading blocks. The adversary sees no reads, so each goes straight to its block, and several
//! batches may be under way while a flush is.

use super::block_reads::BlockReads;
use super::engine::Sequential;
use super::ids::{Flush, Generation, Slot};
use super::layout::Extent;
use super::map_node::SealedAt;
use super::map_walk::{Goal, MapWalk, NOT_LISTED};
use super::placement::Found;
use super::schedule::Home;
use super::step::{Step, total};
use crate::{BlockAnswer, BlockId, EngineError, Result};

/// A batch of blocks that is being read.
pub struct ReadBatch {
    blocks: Vec<BlockId>,
    answers: Vec<BlockAnswer>,
    /// Which of them are on the disk, and the way to each.
    stored: Vec<(usize, Generation, Goal)>,
    /// The flush before which they were located: their places may be written over after it.
    located: Flush,
    phase: Phase,
}

enum Phase {
    Locate,
    Leaves { walk: MapWalk, extents: Vec<Extent>, bytes: Vec<u8> },
    Blocks { found: Vec<(usize, Slot)>, reads: BlockReads },
    Done,
}

impl ReadBatch {
    /// The answers, in the order of the blocks: none for one that is absent.
    pub fn into_answers(self) -> Vec<BlockAnswer> {
        self.answers
    }
}

impl Sequential {
    /// Begins to read these blocks.
    ///
    /// # Errors
    /// `Invalid` when there is no such block.
    pub fn begin_read(&self, blocks: Vec<BlockId>) -> Result<ReadBatch> {
        self.expect_whole()?;
        blocks.iter().try_for_each(|block| self.expect_block(*block))?;
        let answers = vec![None; blocks.len()];
        let (stored, located) = (Vec::new(), self.flushes());
        Ok(ReadBatch { blocks, answers, stored, located, phase: Phase::Locate })
    }

    /// The next step of a batch, a read or the end.
    ///
    /// # Errors
    /// `TamperedExtent` when what was read is not what was written last.
    pub fn read_step<'b>(&mut self, batch: &'b mut ReadBatch) -> Result<Step<'b>> {
        let phase = std::mem::replace(&mut batch.phase, Phase::Done);
        batch.phase = match self.advance_read(batch, phase) {
            // A flush came between: the place may be another block's now. Look again.
            Err(EngineError::TamperedExtent { .. }) if batch.located != self.flushes() => {
                self.advance_read(batch, Phase::Locate)?
            }
            advanced => advanced?,
        };
        Ok(match &mut batch.phase {
            Phase::Leaves { extents, bytes, .. } => Step::Read { extents, into: bytes },
            Phase::Blocks { reads, .. } => {
                let (extents, into) = reads.parts();
                Step::Read { extents, into }
            }
            Phase::Locate | Phase::Done => Step::Done,
        })
    }

    fn advance_read(&mut self, batch: &mut ReadBatch, phase: Phase) -> Result<Phase> {
        match phase {
            Phase::Done => Ok(Phase::Done),
            Phase::Locate => {
                self.locate(batch);
                let goals: Vec<_> = batch.stored.iter().map(|it| (it.1, it.2)).collect();
                let walk = MapWalk::new(&self.vault, &goals, true)?;
                self.go_on(batch, walk, Vec::new())
            }
            Phase::Leaves { mut walk, mut bytes, .. } => {
                walk.supply(&mut self.vault, &mut bytes)?;
                self.go_on(batch, walk, bytes)
            }
            Phase::Blocks { found, mut reads } => {
                reads.open(&mut self.vault)?;
                for (at, slot) in found {
                    batch.answers[at] = reads.content(&self.vault, slot).map(<[u8]>::to_vec);
                }
                Ok(Phase::Done)
            }
        }
    }

    /// Answers what is in memory and finds the ways to the rest.
    fn locate(&self, batch: &mut ReadBatch) {
        batch.located = self.flushes();
        batch.stored.clear();
        for (at, &block) in batch.blocks.iter().enumerate() {
            match self.placement.find(block) {
                Found::Nowhere => batch.answers[at] = None,
                Found::Queued(content) => batch.answers[at] = content.cloned(),
                Found::Stored(home) => {
                    batch.answers[at] = None;
                    if let Some((generation, goal)) = self.way_to(block, home) {
                        batch.stored.push((at, generation, goal));
                    }
                }
            }
        }
    }

    /// Which leaf lists a block that is on the disk; none for one that never came to the last level.
    fn way_to(&self, block: BlockId, home: Home) -> Option<(Generation, Goal)> {
        let schedule = self.placement.schedule();
        match home {
            Home::Stored(generation) if generation.level < schedule.last() => {
                Some((generation, Goal::Block(block)))
            }
            _ => {
                let slot = self.placement.settled_slot(block)?;
                Some((slot.generation, Goal::Leaf(schedule.last_bucket(block).0)))
            }
        }
    }

    /// Further down the maps, or to the blocks when all leaves are there.
    fn go_on(&mut self, batch: &ReadBatch, mut walk: MapWalk, mut bytes: Vec<u8>) -> Result<Phase> {
        let extents = walk.missing(&mut self.vault)?;
        if !extents.is_empty() {
            bytes.resize(total(&extents), 0);
            return Ok(Phase::Leaves { walk, extents, bytes });
        }
        let (mut found, mut wanted) = (Vec::new(), Vec::new());
        for (&(at, generation, _), (bucket, leaf)) in batch.stored.iter().zip(walk.leaves()) {
            let block = batch.blocks[at];
            let schedule = self.placement.schedule();
            let last = generation.level == schedule.last();
            let line =
                if last { Some(schedule.last_bucket(block).1 as usize) } else { leaf.find(block) };
            let entry = line.and_then(|line| leaf.entry(line)).filter(|it| it.block == block);
            let Some((line, entry)) = line.zip(entry) else {
                // Only the last level may have nothing at an address.
                if last { continue } else { return Err(NOT_LISTED) }
            };
            if entry.present {
                let index = bucket * schedule.bucket_blocks(generation.level) + line as u64;
                let slot = Slot { generation, index };
                found.push((at, slot));
                wanted.push((slot, entry.sealed));
            }
        }
        let wanted: Vec<(Slot, SealedAt)> = wanted;
        if wanted.is_empty() {
            return Ok(Phase::Done);
        }
        let reads = BlockReads::new(&self.vault, wanted.into_iter());
        Ok(Phase::Blocks { found, reads })
    }
}
