//! The rebuild of the access times after a crash (§4.3): one pass over the leaves on the disk. A
//! generation gives the access time of its blocks as exactly as needed.

use super::engine::Sequential;
use super::extents::{read, total};
use super::ids::{Generation, GenerationBucket};
use super::map_walk::{Goal, MapWalk};
use super::read::ReadBatch;
use super::time_pages::Times;
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
        self.advance(engine)
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
}

impl Rebuild {
    fn advance<'r>(&'r mut self, engine: &mut Sequential) -> Result<Step<'r>> {
        if self.pages.is_some() {
            return self.read_lost_pages(engine);
        }
        loop {
            if let Some(mut walk) = self.walk.take() {
                walk.supply(&mut engine.vault, &mut self.bytes)?;
                self.extents = walk.missing(&mut engine.vault)?;
                if !self.extents.is_empty() {
                    self.bytes.resize(total(&self.extents), 0);
                    self.walk = Some(walk);
                    return Ok(read(&self.extents, &mut self.bytes));
                }
                self.take_times(engine, &walk)?;
            }
            let Some(next) = self.left.last_mut() else {
                let pages = engine.placement.lost_pages().into_iter().map(|(page, _)| page);
                self.pages = Some(ReadBatch::new(pages.collect()));
                return self.read_lost_pages(engine);
            };
            let end = engine.placement.schedule().generation_buckets(next.generation.level);
            let generation = next.generation;
            let until = end.min(next.index + TOGETHER);
            if next.index == 0 {
                self.listed = Listed::default();
            }
            self.now =
                (next.index..until).map(|index| GenerationBucket { generation, index }).collect();
            next.index = until;
            if until == end {
                self.left.pop();
            }
            let goals: Vec<_> =
                self.now.iter().map(|it| (it.generation, Goal::Leaf(it.index))).collect();
            self.bytes.clear();
            self.walk = Some(MapWalk::new(&engine.vault, &goals, false)?);
        }
    }

    /// Reads the disk's copies of the pages that were in the queue.
    fn read_lost_pages<'r>(&'r mut self, engine: &mut Sequential) -> Result<Step<'r>> {
        let batch = self.pages.get_or_insert_with(|| ReadBatch::new(Vec::new()));
        if engine.times_lost {
            engine.advance_batch(batch)?;
            if batch.is_done() {
                engine.times_lost = false;
                let contents = std::mem::take(batch).into_answers();
                let lost = engine.placement.lost_pages().into_iter().zip(contents);
                let content = |content: BlockOutcome| match content {
                    Ok(content) => content.unwrap_or_else(|| vec![0; engine.config.block_bytes]),
                    Err(Lost) => Times::lost_page(engine.config.block_bytes),
                };
                engine.lost_pages =
                    lost.map(|((page, turn), found)| (page, turn, content(found))).collect();
                return Ok(Step::Done);
            }
        }
        Ok(batch.as_step())
    }

    /// Takes the times of a generation's blocks from its leaves. What a damaged leaf listed is not
    /// known: all blocks that may have been in it count as written then, unless a newer generation
    /// has them. So they are lost, and no older copy is taken for the newest.
    fn take_times(&mut self, engine: &mut Sequential, walk: &MapWalk) -> Result<()> {
        let Some(&GenerationBucket { generation, index }) = self.now.last() else {
            return Ok(());
        };
        let mut ends =
            index + 1 == engine.placement.schedule().generation_buckets(generation.level);
        let listed = &mut self.listed;
        'leaves: for found in walk.found() {
            let leaf = found.into_read()?;
            engine.met_damage |= leaf.gaps;
            listed.gap |= leaf.gaps;
            for entry in &leaf.entries {
                // After the first fake, the generation has no more blocks, whatever is damaged.
                let Some(entry) = entry else {
                    ends = true;
                    break 'leaves;
                };
                listed.take_gap(engine, entry.block.0, generation);
                engine.placement.found_in(entry.block, generation);
                *listed = Listed { next: entry.block.0 + 1, gap: leaf.gaps };
            }
        }
        if ends {
            let addresses = engine.placement.schedule().addresses();
            listed.take_gap(engine, addresses, generation);
            listed.gap = false;
            if self.left.last().is_some_and(|next| next.generation == generation) {
                self.left.pop();
            }
        }
        Ok(())
    }
}

impl Listed {
    /// Counts all blocks of a gap up to this address as written in this generation.
    fn take_gap(&self, engine: &mut Sequential, end: u64, generation: Generation) {
        if self.gap {
            (self.next..end).for_each(|at| engine.placement.found_in(BlockId(at), generation));
        }
    }
}
