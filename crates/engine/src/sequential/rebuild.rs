//! The rebuild of the access times after a crash (§4.3): one pass over the leaves on the disk. A
//! generation gives the access time of its blocks as exactly as needed.

use super::engine::Sequential;
use super::extents::{read, total};
use super::ids::{Generation, GenerationBucket};
use super::map_walk::{Found, Goal, MapWalk, NOT_LISTED};
use super::merge_buffer::LeafRead;
use super::read::ReadBatch;
use crate::{BlockId, BlockOutcome, EngineError, Extent, Job, Level, Lost, Result, Step};

/// Leaves per read.
const TOGETHER: u64 = 64;

/// A rebuild under way.
pub struct Rebuild {
    /// Generations left to read, the oldest last: newer ones must come later.
    left: Vec<GenerationBucket>,
    now: Vec<GenerationBucket>,
    walk: Option<MapWalk>,
    extents: Vec<Extent>,
    bytes: Vec<u8>,
    /// The pages of access times that were lost with the queue; they come last.
    pages: Option<ReadBatch>,
    listed: Listed,
}

/// How far the leaves of a generation were read.
#[derive(Default)]
struct Listed {
    /// The address behind the last listed one.
    next: u64,
    /// Whether blocks may be missing from there up to the next listed one.
    gap: bool,
}

impl Job for Rebuild {
    type Engine = Sequential;

    fn step<'j>(&'j mut self, engine: &mut Sequential) -> Result<Step<'j>> {
        engine.rebuild_step(self)
    }
}

impl Sequential {
    /// Begins to rebuild the access times. No flush may come in between.
    ///
    /// # Errors
    /// `Invalid` when they are not lost.
    pub fn begin_rebuild(&self) -> Result<Rebuild> {
        if !self.times_lost {
            return Err(EngineError::Invalid("the access times are not lost".into()));
        }
        let schedule = self.placement.schedule();
        let mut left = Vec::new();
        for level in (0..schedule.last().0).rev().map(Level) {
            for generation in schedule.live(level, self.flushes()) {
                left.push(GenerationBucket { generation, index: 0 });
            }
        }
        left.reverse();
        Ok(Rebuild {
            left,
            now: Vec::new(),
            walk: None,
            extents: Vec::new(),
            bytes: Vec::new(),
            pages: None,
            listed: Listed::default(),
        })
    }

    fn rebuild_step<'r>(&mut self, rebuild: &'r mut Rebuild) -> Result<Step<'r>> {
        if rebuild.pages.is_some() {
            return self.read_lost_pages(rebuild);
        }
        loop {
            if let Some(mut walk) = rebuild.walk.take() {
                walk.supply(&mut self.vault, &mut rebuild.bytes)?;
                rebuild.extents = walk.missing(&mut self.vault)?;
                if !rebuild.extents.is_empty() {
                    rebuild.bytes.resize(total(&rebuild.extents), 0);
                    rebuild.walk = Some(walk);
                    return Ok(read(&rebuild.extents, &mut rebuild.bytes));
                }
                self.take_times(rebuild, &walk)?;
            }
            let Some(next) = rebuild.left.last_mut() else {
                let pages = self.placement.lost_pages().into_iter().map(|(page, _)| page);
                rebuild.pages = Some(ReadBatch::new(pages.collect()));
                return self.read_lost_pages(rebuild);
            };
            let end = self.placement.schedule().generation_buckets(next.generation.level);
            let generation = next.generation;
            let until = end.min(next.index + TOGETHER);
            if next.index == 0 {
                rebuild.listed = Listed::default();
            }
            rebuild.now =
                (next.index..until).map(|index| GenerationBucket { generation, index }).collect();
            next.index = until;
            if until == end {
                rebuild.left.pop();
            }
            let goals: Vec<_> =
                rebuild.now.iter().map(|it| (it.generation, Goal::Leaf(it.index))).collect();
            rebuild.bytes.clear();
            rebuild.walk = Some(MapWalk::new(&self.vault, &goals, false)?);
        }
    }

    /// Reads the disk's copies of the pages that were in the queue.
    fn read_lost_pages<'r>(&mut self, rebuild: &'r mut Rebuild) -> Result<Step<'r>> {
        let batch = rebuild.pages.get_or_insert_with(|| ReadBatch::new(Vec::new()));
        if self.times_lost {
            self.advance_batch(batch)?;
            if batch.is_done() {
                self.times_lost = false;
                let contents = std::mem::take(batch).into_answers();
                let lost = self.placement.lost_pages().into_iter().zip(contents);
                let content = |content: BlockOutcome| match content {
                    Ok(content) => content.unwrap_or_else(|| vec![0; self.config.block_bytes]),
                    Err(Lost) => self.lost_page(),
                };
                self.lost_pages =
                    lost.map(|((page, turn), found)| (page, turn, content(found))).collect();
                return Ok(Step::Done);
            }
        }
        Ok(batch.as_step())
    }

    /// Takes the times of a generation's blocks from its leaves. What a damaged leaf listed is not
    /// known: all blocks that may have been in it count as written then, unless a newer generation
    /// has them. So they are lost, and no older copy is taken for the newest.
    fn take_times(&mut self, rebuild: &mut Rebuild, walk: &MapWalk) -> Result<()> {
        let Some(&GenerationBucket { generation, index }) = rebuild.now.last() else {
            return Ok(());
        };
        let mut ends = index + 1 == self.placement.schedule().generation_buckets(generation.level);
        let listed = &mut rebuild.listed;
        for found in walk.found() {
            let leaf = match found {
                Found::Leaf(_, leaf) => leaf.as_read(),
                Found::Damaged => LeafRead::damaged(),
                Found::NotListed => return Err(NOT_LISTED),
            };
            self.met_damage |= leaf.gaps;
            listed.gap |= leaf.gaps;
            for entry in &leaf.entries {
                // After the first fake, the generation has no more blocks.
                let Some(entry) = entry else {
                    ends = true;
                    break;
                };
                self.take_gap(listed, entry.block.0, generation);
                self.placement.found_in(entry.block, generation);
                *listed = Listed { next: entry.block.0 + 1, gap: leaf.gaps };
            }
        }
        if ends {
            let addresses = self.placement.schedule().addresses();
            self.take_gap(listed, addresses, generation);
            listed.gap = false;
            if rebuild.left.last().is_some_and(|next| next.generation == generation) {
                rebuild.left.pop();
            }
        }
        Ok(())
    }

    /// Counts all blocks of a gap up to this address as written in this generation.
    fn take_gap(&mut self, listed: &Listed, end: u64, generation: Generation) {
        if listed.gap {
            (listed.next..end).for_each(|at| self.placement.found_in(BlockId(at), generation));
        }
    }
}
