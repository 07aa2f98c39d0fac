//! What a flush writes: the content of each slot.

use super::{Placement, Planned};
use crate::sequential::access_time_map::Accessed;
use crate::sequential::ids::{GenerationBucket, GenerationSlot};
use crate::sequential::merge_buffer::{Origin, Pick, lost};
use crate::{BlockId, Level};
use std::collections::BTreeSet;

impl<T: Copy, P> Placement<T, P> {
    /// Pages of access times that the flush needs beside the leaves: those of addresses that are to
    /// be settled, and may have been in a gap. Without damage there are none.
    pub fn pages_wanted(&self) -> BTreeSet<BlockId> {
        let (last, pages) = (self.schedule.last(), self.times.pages());
        let gap = self.merges.last().is_some_and(|merge| merge.meets_gap());
        let Some(bucket) = self.schedule.bucket(last, self.flush).filter(|_| gap) else {
            return BTreeSet::new();
        };
        let count = self.schedule.bucket_blocks(last);
        let end = ((bucket.index + 1) * count).min(self.schedule.blocks());
        let blocks = (bucket.index * count..end).map(BlockId).filter(|_| pages.count > 0);
        blocks.map(|block| pages.of(block)).filter(|page| !self.pages.contains_key(page)).collect()
    }

    /// Takes in such a page.
    pub fn supply_page(&mut self, page: BlockId, content: Vec<u8>) {
        self.pages.insert(page, content);
    }

    /// The content of every slot of every scheduled bucket, from the top level down.
    pub fn plan(&mut self) -> Vec<Planned<T>> {
        let buckets: Vec<GenerationBucket> = self.schedule.buckets(self.flush).collect();
        buckets.into_iter().map(|bucket| self.plan_bucket(bucket)).collect()
    }

    fn plan_bucket(&mut self, bucket: GenerationBucket) -> Planned<T> {
        let level = bucket.generation.level;
        let count = self.schedule.bucket_blocks(level);
        if level == Level(0) {
            let queued = |(block, present)| Pick { block, present, origin: Origin::Queue };
            let slots = (0..count).map(|_| self.queue.drain_next().map(queued)).collect();
            return Planned { bucket, slots, gaps: false };
        }
        if level == self.schedule.last() {
            return Planned { bucket, slots: self.plan_last(bucket, count), gaps: false };
        }
        let now = self.now();
        let Self { schedule, times, merges, pages, .. } = self;
        let merge = &mut merges[level.0 as usize - 1];
        let mut gaps = merge.has_gap();
        let mut next = || {
            let pick =
                merge.take_next(|block, from| times.may_be_in(block, from, (schedule, now), pages));
            gaps |= merge.has_gap();
            pick
        };
        let slots = (0..count).map(|_| next()).collect();
        Planned { bucket, slots, gaps }
    }

    /// Marks the addresses in the last level that have their turn as settled, so that access times
    /// can be short.
    fn settle(&mut self, bucket: GenerationBucket, count: u64) {
        let now = self.now();
        let end = ((bucket.index + 1) * count).min(self.schedule.addresses());
        for block in (bucket.index * count..end).map(BlockId) {
            self.times.settle(block, &self.schedule, now);
        }
    }

    /// Last level writes (§6.1): at its turn an address gets its newest block, or keeps its old
    /// one. If that was listed in a damaged leaf, it is lost, unless it never existed.
    fn plan_last(&mut self, bucket: GenerationBucket, count: u64) -> Vec<Option<Pick<T>>> {
        self.settle(bucket, count);
        let before = self.swept_before(bucket).map(|before| before.generation);
        let (settled, now) = (self.settled.take(), self.now());
        let Self { schedule, times, merges, pages, .. } = self;
        let merge = &mut merges[bucket.generation.level.0 as usize - 1];
        let addresses = schedule.addresses();
        let slot = |at: u64| {
            let block = BlockId(bucket.index * count + at);
            let may_have = |block, from| times.may_be_in(block, from, (schedule, now), pages);
            if block.0 >= addresses {
                return None;
            }
            merge.take_at(block, may_have).or_else(|| {
                let settled = settled.as_ref()?;
                if settled.entries.is_empty() {
                    let never = times.get(block, now) == Ok(Accessed::Never);
                    return (!never).then(|| lost(block));
                }
                let entry = (*settled.entries.get(at as usize)?)?;
                let slot = GenerationSlot { generation: before?, index: block.0 };
                let origin =
                    if entry.lost { Origin::Lost } else { Origin::Slot(slot, entry.sealed) };
                Some(Pick { block, present: entry.present, origin })
            })
        };
        (0..count).map(slot).collect()
    }
}
