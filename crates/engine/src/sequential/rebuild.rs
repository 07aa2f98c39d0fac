//! Finding the access times again after an unclean end (§4.3): one pass over the leaves of what is
//! on the disk. A generation tells the access time of what it holds as exactly as it matters.

use super::engine::Sequential;
use super::ids::Bucket;
use super::layout::Extent;
use super::map_walk::{Goal, MapWalk};
use super::step::{Step, total};
use crate::{EngineError, Level, Result};

/// Leaves that are read together.
const TOGETHER: u64 = 64;

/// A pass that is under way.
pub struct Rebuild {
    /// What is left, the oldest last: what is newer must come later.
    left: Vec<Bucket>,
    now: Vec<Bucket>,
    walk: Option<MapWalk>,
    extents: Vec<Extent>,
    bytes: Vec<u8>,
}

impl Sequential {
    /// Begins to find the access times again; no flush may come in between.
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
                left.push(Bucket { generation, index: 0 });
            }
        }
        left.reverse();
        Ok(Rebuild { left, now: Vec::new(), walk: None, extents: Vec::new(), bytes: Vec::new() })
    }

    /// The next step of the pass, a read or the end.
    ///
    /// # Errors
    /// `TamperedExtent` when what was read is not what was written last.
    pub fn rebuild_step<'r>(&mut self, rebuild: &'r mut Rebuild) -> Result<Step<'r>> {
        loop {
            if let Some(mut walk) = rebuild.walk.take() {
                walk.supply(&mut self.vault, &mut rebuild.bytes)?;
                rebuild.extents = walk.missing(&mut self.vault)?;
                if !rebuild.extents.is_empty() {
                    rebuild.bytes.resize(total(&rebuild.extents), 0);
                    rebuild.walk = Some(walk);
                    return Ok(Step::Read { extents: &rebuild.extents, into: &mut rebuild.bytes });
                }
                self.take_times(rebuild, &walk);
            }
            let Some(next) = rebuild.left.last_mut() else {
                self.times_lost = false;
                return Ok(Step::Done);
            };
            let end = self.placement.schedule().generation_buckets(next.generation.level);
            let generation = next.generation;
            let until = end.min(next.index + TOGETHER);
            rebuild.now = (next.index..until).map(|index| Bucket { generation, index }).collect();
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

    fn take_times(&mut self, rebuild: &mut Rebuild, walk: &MapWalk) {
        let mut fakes = false;
        for (bucket, (_, leaf)) in rebuild.now.iter().zip(walk.leaves()) {
            let time = self.placement.schedule().oldest_time(bucket.generation);
            for entry in leaf.entries() {
                match entry {
                    Some(entry) => self.placement.found_in(entry.block, time),
                    None => fakes = true,
                }
            }
        }
        // Behind the first fake there is nothing more in the generation.
        let generation = rebuild.now.last().map(|bucket| bucket.generation);
        if fakes && rebuild.left.last().map(|next| next.generation) == generation {
            rebuild.left.pop();
        }
    }
}
