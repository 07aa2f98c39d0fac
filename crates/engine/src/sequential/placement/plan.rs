//! What a flush writes: the content of each slot.

use super::{Placement, Planned};
use crate::sequential::access_time_map::Accessed;
use crate::sequential::ids::{Generation, GenerationBucket, GenerationSlot, Turn};
use crate::sequential::merge_buffer::{Origin, Pick, lost};
use crate::sequential::schedule::Schedule;
use crate::sequential::time_pages::Times;
use crate::{BlockId, Level};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

impl<T: Copy, P> Placement<T, P> {
    /// Pages of access times that the flush needs beside the leaves: those of addresses that have
    /// their turn and may have been in a gap. Without damage there are none.
    pub fn pages_wanted(&self) -> BTreeSet<BlockId> {
        let (pages, blocks) = (self.times.pages(), self.schedule.blocks());
        if pages.count == 0 {
            return BTreeSet::new();
        }
        let due = self.schedule.buckets(self.flush).flat_map(|bucket| self.in_gaps(bucket));
        let due = due.filter(|block| block.0 < blocks).map(|block| pages.of(block));
        due.filter(|page| !self.pages.contains_key(page)).collect()
    }

    /// The addresses that may have their turn in a bucket, if its merge meets a gap.
    fn in_gaps(&self, bucket: GenerationBucket) -> Vec<BlockId> {
        let level = bucket.generation.level;
        let merge = (level.0 as usize).checked_sub(1).map(|at| &self.merges[at]);
        let Some(merge) = merge.filter(|merge| merge.meets_gap()) else { return Vec::new() };
        let count = self.schedule.bucket_blocks(level);
        if level == self.schedule.last() {
            let first = bucket.index * count;
            return (first..(first + count).min(self.schedule.addresses())).map(BlockId).collect();
        }
        merge.ahead().into_iter().take(count as usize).collect()
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
            let may_have = |block, from| in_gap(times, block, from, (schedule, now), pages);
            let pick = merge.take_next(may_have);
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
            let may_have = |block, from| in_gap(times, block, from, (schedule, now), pages);
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

/// Whether a block counts as lost that a gap of this generation may have had. It does if its newest
/// copy is newer, too: after a restart such a time may be a guess, for another damaged leaf, and
/// what was here would be forgotten. A newer copy that exists takes the place of the lost one.
fn in_gap(
    times: &Times,
    block: BlockId,
    from: Generation,
    at: (&Schedule, Turn),
    pages: &BTreeMap<BlockId, Vec<u8>>,
) -> bool {
    times.newest_beside(block, from, at, pages).is_none_or(Ordering::is_ge)
}
