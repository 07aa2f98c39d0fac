//! The rebuild of the access times after a crash (§4.3): one pass over the leaves on the disk. A
//! generation gives the access time of its blocks as exactly as needed.

use super::engine::Sequential;
use super::extents::{read, total};
use super::ids::GenerationBucket;
use super::map_walk::{Goal, MapWalk};
use super::read::ReadBatch;
use crate::{EngineError, Extent, Job, Level, Result, Step};

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
                self.take_times(rebuild, &walk);
            }
            let Some(next) = rebuild.left.last_mut() else {
                let pages = self.placement.lost_pages().into_iter().map(|(page, _)| page);
                rebuild.pages = Some(ReadBatch::new(pages.collect()));
                return self.read_lost_pages(rebuild);
            };
            let end = self.placement.schedule().generation_buckets(next.generation.level);
            let generation = next.generation;
            let until = end.min(next.index + TOGETHER);
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
                let none = || vec![0; self.config.block_bytes];
                self.lost_pages = lost
                    .map(|((page, turn), content)| (page, turn, content.unwrap_or_else(none)))
                    .collect();
                return Ok(Step::Done);
            }
        }
        Ok(batch.as_step())
    }

    fn take_times(&mut self, rebuild: &mut Rebuild, walk: &MapWalk) {
        let mut fakes = false;
        for (bucket, (_, leaf)) in rebuild.now.iter().zip(walk.leaves()) {
            for entry in leaf.entries() {
                match entry {
                    Some(entry) => self.placement.found_in(entry.block, bucket.generation),
                    None => fakes = true,
                }
            }
        }
        // After the first fake, the generation has no more blocks.
        let generation = rebuild.now.last().map(|bucket| bucket.generation);
        if fakes && rebuild.left.last().map(|next| next.generation) == generation {
            rebuild.left.pop();
        }
    }
}
