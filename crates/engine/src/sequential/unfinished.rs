//! The generations that are still being written. Nobody reads one before it is complete: its blocks
//! are read in what it takes them from. That is given up then, and with it every block whose copy
//! in the new generation is damaged. This job finds the damage before.

use super::block_reads::BlockReads;
use super::engine::Sequential;
use super::extents::{read, total};
use super::ids::{Generation, GenerationBucket, GenerationSlot};
use super::map_node::SealedAt;
use super::map_walk::{Goal, MapWalk};
use super::read::ReadBatch;
use super::suspects::{NO_PAGES, Suspected, Suspects};
use super::vault::DamagedExtent;
use crate::{BlockId, Extent, Job, Result, Step, WorkPart};

/// Bytes of buckets per read.
const TOGETHER: u64 = 1 << 20;

/// A look at everything in these generations. It only reads, and no flush may come in between.
pub struct Unfinished {
    /// Generations left to look at. The last is complete first.
    left: Vec<Looked>,
    phase: Phase,
    suspects: Suspects,
    damage: Vec<DamagedExtent>,
}

/// How far a generation was looked at.
struct Looked {
    generation: Generation,
    /// Buckets, and how many of them were written.
    bucket: u64,
    written: u64,
    /// The address behind the last listed one.
    next: u64,
    /// Whether a damaged leaf came since then.
    unlisted: bool,
}

enum Phase {
    Next,
    Leaves {
        first: u64,
        walk: MapWalk,
        extents: Vec<Extent>,
        bytes: Vec<u8>,
    },
    Blocks {
        listed: Vec<(BlockId, GenerationSlot)>,
        reads: BlockReads,
    },
    /// Pages of access times, which say whether a block comes to that generation at all.
    Times {
        pages: Vec<BlockId>,
        batch: Box<ReadBatch>,
    },
    Over,
}

/// A block that a leaf lists, and what opens it.
type Listed = (BlockId, GenerationSlot, SealedAt);

impl Job for Unfinished {
    type Engine = Sequential;

    fn step<'j>(&'j mut self, engine: &mut Sequential) -> Result<Step<'j>> {
        let mut phase = std::mem::replace(&mut self.phase, Phase::Over);
        loop {
            phase = self.advance(engine, phase)?;
            if !matches!(phase, Phase::Next) {
                break;
            }
        }
        self.phase = phase;
        Ok(match &mut self.phase {
            Phase::Leaves { extents, bytes, .. } => read(extents, bytes),
            Phase::Blocks { reads, .. } => reads.as_step(),
            Phase::Times { batch, .. } => batch.as_step(),
            Phase::Next | Phase::Over => Step::Done,
        })
    }

    fn parts(&mut self, count: usize) -> Vec<WorkPart<'_>> {
        match &mut self.phase {
            Phase::Blocks { reads, .. } => reads.parts(count),
            Phase::Times { batch, .. } => batch.parts(count),
            _ => Vec::new(),
        }
    }
}

impl Sequential {
    /// Begins to look at the generations that are still being written.
    ///
    /// # Errors
    /// `Invalid` while a flush is under way.
    pub fn begin_unfinished(&self) -> Result<Unfinished> {
        self.expect_idle()?;
        let (schedule, flush) = (self.placement.schedule(), self.flushes());
        let looked = |level| {
            let generation = schedule.generation_at(level, flush)?;
            let begun = schedule.flush_of(GenerationBucket { generation, index: 0 });
            let written = (flush.0 - begun.0).min(schedule.generation_buckets(level));
            Some(Looked { generation, bucket: 0, written, next: 0, unlisted: false })
        };
        let mut left: Vec<Looked> = schedule.levels().filter_map(looked).collect();
        left.sort_by_key(|it| std::cmp::Reverse(schedule.complete(it.generation)));
        let (suspects, damage) = (Suspects::default(), Vec::new());
        Ok(Unfinished { left, phase: Phase::Next, suspects, damage })
    }
}

impl Unfinished {
    /// The blocks that can be read, perhaps, until their generation is complete, and not from then
    /// on. Those of the generation that is complete first come first.
    pub fn endangered(&mut self) -> Vec<BlockId> {
        self.suspects.take_found()
    }

    /// The damaged parts of the disk that it met, with repeats.
    pub fn damage(&self) -> &[DamagedExtent] {
        &self.damage
    }

    fn advance(&mut self, engine: &mut Sequential, phase: Phase) -> Result<Phase> {
        match phase {
            Phase::Over => Ok(Phase::Over),
            Phase::Next => self.begin_next(engine),
            Phase::Leaves { first, mut walk, mut bytes, .. } => {
                walk.supply(&mut engine.vault, &mut bytes)?;
                let extents = walk.missing(&mut engine.vault)?;
                if !extents.is_empty() {
                    bytes.resize(total(&extents), 0);
                    return Ok(Phase::Leaves { first, walk, extents, bytes });
                }
                self.damage.extend(walk.damage());
                let listed = self.take_leaves(engine, first, &walk)?;
                let wanted = listed.iter().map(|&(_, slot, sealed)| (slot, sealed));
                let reads = BlockReads::new(&engine.vault, wanted, bytes);
                let listed = listed.into_iter().map(|(block, slot, _)| (block, slot)).collect();
                Ok(if reads.is_empty() { Phase::Next } else { Phase::Blocks { listed, reads } })
            }
            Phase::Blocks { listed, reads } => {
                let opened = reads.opened()?;
                self.damage.extend(opened.damage());
                for (block, slot) in listed {
                    if opened.find(engine.vault.layout.slot(slot).offset).is_none() {
                        self.suspects.extend([Suspected::one(slot.generation, block)]);
                    }
                }
                Ok(Phase::Next)
            }
            Phase::Times { pages, mut batch } => {
                engine.advance_batch(&mut batch)?;
                if !batch.is_done() {
                    return Ok(Phase::Times { pages, batch });
                }
                self.damage.extend(batch.damage());
                self.suspects.take_pages(pages, batch.into_answers(), engine.config.block_bytes);
                Ok(Phase::Next)
            }
        }
    }

    /// Sifts the suspects so far, and then reads more leaves.
    fn begin_next(&mut self, engine: &mut Sequential) -> Result<Phase> {
        let pages = self.suspects.sift(&engine.placement);
        if !pages.is_empty() {
            let batch = Box::new(ReadBatch::new(pages.clone()));
            return self.advance(engine, Phase::Times { pages, batch });
        }
        let Some(looked) = self.left.last_mut() else { return Ok(Phase::Over) };
        let Looked { generation, bucket: first, .. } = *looked;
        let bytes = engine.vault.layout.bucket(GenerationBucket { generation, index: 0 }).bytes;
        looked.bucket = looked.written.min(first + (TOGETHER / bytes).max(1));
        if looked.bucket == first {
            let addresses = engine.placement.schedule().addresses();
            self.suspects.extend(looked.unlisted_before(addresses));
            self.left.pop();
            return Ok(Phase::Next);
        }
        let goals: Vec<_> =
            (first..looked.bucket).map(|leaf| (generation, Goal::Leaf(leaf))).collect();
        let walk = MapWalk::new(&engine.vault, &goals, false)?;
        self.advance(engine, Phase::Leaves { first, walk, extents: Vec::new(), bytes: Vec::new() })
    }

    /// Takes in leaves from this bucket on; gives the blocks whose content is needed.
    fn take_leaves(
        &mut self,
        engine: &Sequential,
        first: u64,
        walk: &MapWalk,
    ) -> Result<Vec<Listed>> {
        let (mut listed, mut fakes) = (Vec::new(), false);
        let Some(looked) = self.left.last_mut() else { return Ok(listed) };
        let (placement, generation) = (&engine.placement, looked.generation);
        let schedule = placement.schedule();
        let count = schedule.bucket_blocks(generation.level);
        // In the last level each bucket has its addresses.
        let by_address = generation.level == schedule.last();
        for (bucket, found) in (first..).zip(walk.found()) {
            let leaf = found.into_read()?.entries;
            looked.unlisted |= leaf.is_empty();
            for (index, entry) in (bucket * count..).zip(leaf) {
                let Some(entry) = entry else {
                    fakes = true;
                    continue;
                };
                let block = entry.block;
                self.suspects.extend(looked.unlisted_before(block.0));
                looked.next = block.0 + 1;
                if entry.lost {
                    self.suspects.extend([Suspected::one(generation, block)]);
                } else if entry.present && placement.may_come_to(generation, block, &NO_PAGES) {
                    listed.push((block, GenerationSlot { generation, index }, entry.sealed));
                }
            }
            if by_address {
                let end = ((bucket + 1) * count).min(schedule.addresses());
                self.suspects.extend(looked.unlisted_before(end));
                looked.next = end;
            } else if fakes {
                // The generation has no more blocks, whatever is damaged.
                looked.written = looked.bucket;
                break;
            }
        }
        Ok(listed)
    }
}

impl Looked {
    /// What damaged leaves may have listed before this address.
    fn unlisted_before(&mut self, end: u64) -> Option<Suspected> {
        let (generation, blocks) = (self.generation, self.next..end);
        std::mem::take(&mut self.unlisted).then_some(Suspected { generation, blocks })
    }
}
