//! The merge of a level's merge buffer into the next level (§5.1 and Algorithm 2), for any number
//! of generations: the paper's queues q_x0, q_x1, ... and the blocks taken from their heads.
//!
//! The merge keeps the newer of two copies of a block, and a block of the last level waits for its
//! turn. Algorithm 2 as printed does neither (docs/decisions/0009-sequential.md).

use super::ids::{Generation, GenerationBucket, GenerationSlot};
use crate::BlockId;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

/// A map leaf's entry for a slot. `T` opens the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafEntry<T> {
    /// The block's address.
    pub block: BlockId,
    /// False for a discarded block.
    pub present: bool,
    /// Whether its content was lost to damage before it came here.
    pub lost: bool,
    /// How it is sealed.
    pub sealed: T,
}

/// A map leaf as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafRead<T> {
    /// The entries of all its slots; nothing if the leaf is damaged.
    pub entries: Vec<Option<LeafEntry<T>>>,
    /// Whether blocks between those listed, up to the next leaf's, may be missing: they were listed
    /// in a leaf that was damaged.
    pub gaps: bool,
}

impl<T> LeafRead<T> {
    /// A leaf that lists everything.
    pub fn whole(entries: Vec<Option<LeafEntry<T>>>) -> Self {
        Self { entries, gaps: false }
    }

    /// One that cannot be read any more.
    pub fn damaged() -> Self {
        Self { entries: Vec::new(), gaps: true }
    }
}

/// The origin of a block of the next bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin<T> {
    /// The back of the queue.
    Queue,
    /// A slot on the disk.
    Slot(GenerationSlot, T),
    /// Its content is lost to damage.
    Lost,
}

/// A block of the next bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick<T> {
    /// Its address.
    pub block: BlockId,
    /// False for a discarded block.
    pub present: bool,
    /// The current place of its content.
    pub origin: Origin<T>,
}

/// Slots of a generation that are likely needed soon.
pub type ExpectedSlots = (Generation, Range<u64>);

/// How far a source was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Taken {
    /// Slots taken from the head, those of damaged leaves included.
    slots: u64,
    /// Whether blocks may be missing from here up to the next entry.
    gap: bool,
}

/// Set in the stored form of [`Taken`].
const GAP: u64 = 1 << 63;

impl Taken {
    fn word(self) -> u64 {
        self.slots | if self.gap { GAP } else { 0 }
    }

    fn of(word: u64) -> Self {
        Self { slots: word & !GAP, gap: word & GAP != 0 }
    }
}

/// An entry read ahead, and how far its source is once it is taken.
#[derive(Clone, Copy, Debug)]
struct Ahead<T> {
    entry: LeafEntry<T>,
    slot: u64,
    then: Taken,
}

/// One generation of the merge: a queue of entries read ahead.
#[derive(Clone, Debug)]
struct Source<T> {
    generation: Generation,
    ahead: VecDeque<Ahead<T>>,
    taken: Taken,
    /// The next bucket whose leaf to read; beyond the end when no real block is left.
    next: u64,
    /// The slots before this one were announced, and those before `seen` taken then.
    announced: u64,
    seen: u64,
}

impl<T: Copy> Source<T> {
    /// How far it is once everything read ahead is taken.
    fn end(&mut self) -> &mut Taken {
        self.ahead.back_mut().map_or(&mut self.taken, |last| &mut last.then)
    }

    fn head(&self) -> Option<BlockId> {
        self.ahead.front().map(|ahead| ahead.entry.block)
    }

    /// Adds the leaf of the next bucket.
    fn supply(&mut self, leaf: &LeafRead<T>, bucket_blocks: u64, buckets: u64) {
        let first = self.next * bucket_blocks;
        self.next += 1;
        self.end().gap |= leaf.gaps;
        if leaf.entries.is_empty() {
            self.end().slots = first + bucket_blocks;
            return;
        }
        let skip = self.end().slots.saturating_sub(first);
        let real = leaf.entries.iter().map_while(|entry| *entry);
        for (slot, entry) in (first..).zip(real).skip(skip as usize) {
            let then = Taken { slots: slot + 1, gap: leaf.gaps };
            self.ahead.push_back(Ahead { entry, slot, then });
        }
        // Real blocks precede fakes.
        if leaf.entries.last().is_some_and(Option::is_none) {
            self.next = buckets;
        }
    }

    /// As [`MergeBuffer::expect`]. A little at a time would be many small reads.
    fn expect(&mut self, share: u64, bucket: u64, buckets: u64) -> Option<ExpectedSlots> {
        let taken = self.taken.slots;
        let window = share.max(2 * taken.saturating_sub(self.seen));
        self.seen = taken;
        let real = match self.next < buckets {
            true => buckets * bucket,
            false => self.ahead.back().map_or(taken, |last| last.slot + 1),
        };
        let (from, end) = (self.announced.max(taken), real.min(taken + window));
        if end <= from || end < real && end - from < window / 2 {
            return None;
        }
        self.announced = end;
        Some((self.generation, from..end))
    }

    fn pop(&mut self) -> Option<Pick<T>> {
        let Ahead { entry, slot, then } = self.ahead.pop_front()?;
        self.taken = then;
        let slot = GenerationSlot { generation: self.generation, index: slot };
        let origin = if entry.lost { Origin::Lost } else { Origin::Slot(slot, entry.sealed) };
        Some(Pick { block: entry.block, present: entry.present, origin })
    }
}

/// The generations of a merge buffer during the merge.
#[derive(Clone, Debug)]
pub struct MergeBuffer<T> {
    /// Oldest first.
    sources: Vec<Source<T>>,
    buckets: u64,
    bucket_blocks: u64,
}

impl<T: Copy> MergeBuffer<T> {
    /// A new merge of generations with `buckets` buckets of `bucket_blocks` blocks.
    pub fn new(generations: Vec<Generation>, buckets: u64, bucket_blocks: u64) -> Self {
        let taken = vec![0; generations.len()];
        Self::resume(generations, buckets, bucket_blocks, &taken)
    }

    /// A resumed merge. `taken` is that of [`Self::taken`].
    pub fn resume(
        generations: Vec<Generation>,
        buckets: u64,
        bucket_blocks: u64,
        taken: &[u64],
    ) -> Self {
        let source = |(generation, &taken): (Generation, &u64)| {
            let taken = Taken::of(taken);
            let (next, seen) = (taken.slots / bucket_blocks, taken.slots);
            let (ahead, announced) = (VecDeque::new(), seen);
            Source { generation, ahead, taken, next, announced, seen }
        };
        let sources = generations.into_iter().zip(taken).map(source).collect();
        Self { sources, buckets, bucket_blocks }
    }

    /// Slots taken of each generation, and whether it is in a gap: the whole state of a merge.
    pub fn taken(&self) -> impl Iterator<Item = u64> + use<'_, T> {
        self.sources.iter().map(|source| source.taken.word())
    }

    /// Whether blocks may be missing between the one taken last and the next.
    pub fn has_gap(&self) -> bool {
        self.sources.iter().any(|source| source.taken.gap)
    }

    /// Whether blocks may be missing there, or behind a block that is read ahead.
    pub fn meets_gap(&self) -> bool {
        let ahead = |source: &Source<T>| source.ahead.iter().any(|ahead| ahead.then.gap);
        self.has_gap() || self.sources.iter().any(ahead)
    }

    /// The blocks that are read ahead.
    pub fn ahead(&self) -> BTreeSet<BlockId> {
        let ahead = self.sources.iter().flat_map(|source| &source.ahead);
        ahead.map(|ahead| ahead.entry.block).collect()
    }

    /// The leaves that must be supplied before `count` blocks can be taken.
    pub fn wanted(&self, count: u64) -> impl Iterator<Item = GenerationBucket> + use<'_, T> {
        self.sources.iter().flat_map(move |source| {
            // The next leaf lacks the entries that were taken before a restart.
            let lost = source.taken.slots % self.bucket_blocks;
            let have = source.ahead.len() as u64;
            let short = (count + if have == 0 { lost } else { 0 }).saturating_sub(have);
            let end = (source.next + short.div_ceil(self.bucket_blocks)).min(self.buckets);
            let generation = source.generation;
            (source.next..end).map(move |index| GenerationBucket { generation, index })
        })
    }

    /// The slots that the next takes likely need and that were not said before: of each generation
    /// twice what was taken of it since the last call, and at least an even share of `count`, up to
    /// two buckets.
    pub fn expect(&mut self, count: u64) -> Vec<ExpectedSlots> {
        let share = count.div_ceil(self.sources.len().max(1) as u64);
        let (share, buckets) = (share.min(2 * self.bucket_blocks), self.buckets);
        let sources = self.sources.iter_mut();
        sources.filter_map(|it| it.expect(share, self.bucket_blocks, buckets)).collect()
    }

    /// Takes in a wanted leaf, in order. More may be wanted after a damaged one.
    pub fn supply(&mut self, bucket: GenerationBucket, leaf: &LeafRead<T>) {
        let sources = self.sources.iter_mut();
        // Skip a bucket behind a leaf that turned out to end in fakes.
        let next = |source: &&mut Source<T>| {
            source.generation == bucket.generation && source.next == bucket.index
        };
        for source in sources.filter(next) {
            source.supply(leaf, self.bucket_blocks, self.buckets);
        }
    }

    /// The smallest address at the heads.
    pub fn head(&self) -> Option<BlockId> {
        self.sources.iter().filter_map(Source::head).min()
    }

    /// Takes the newest copy of the block with the smallest address and drops older copies. A gap
    /// in a newer generation may have had the block: `may_have` says whether the newest copy may be
    /// there. It is lost then, whatever the older ones are.
    pub fn take_next(&mut self, may_have: impl Fn(BlockId, Generation) -> bool) -> Option<Pick<T>> {
        let block = self.head()?;
        let mut newest = None;
        for source in &mut self.sources {
            if source.head() == Some(block) {
                newest = source.pop();
            } else if source.taken.gap && may_have(block, source.generation) {
                newest = Some(lost(block));
            }
        }
        newest
    }

    /// Takes this block if it is next, or lost in a gap. In the last level every address has its
    /// turn.
    pub fn take_at(
        &mut self,
        block: BlockId,
        may_have: impl Fn(BlockId, Generation) -> bool,
    ) -> Option<Pick<T>> {
        if self.head() == Some(block) {
            return self.take_next(may_have);
        }
        let gap = |source: &Source<T>| source.taken.gap && may_have(block, source.generation);
        self.sources.iter().any(gap).then(|| lost(block))
    }
}

/// A block that is known to exist, and no more.
pub(super) fn lost<T>(block: BlockId) -> Pick<T> {
    Pick { block, present: true, origin: Origin::Lost }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    fn entries(blocks: &[u64]) -> Vec<Option<LeafEntry<u64>>> {
        let entry = |&block| {
            Some(LeafEntry { block: BlockId(block), present: true, lost: false, sealed: block })
        };
        blocks.iter().map(entry).chain(std::iter::repeat(None)).take(4).collect()
    }

    /// Two generations of two buckets of four slots.
    fn leaves(number: u64, index: u64) -> Vec<Option<LeafEntry<u64>>> {
        match (number, index) {
            (0, 0) => entries(&[1, 3, 5, 7]),
            (0, _) => entries(&[9, 11]),
            (_, 0) => entries(&[3, 4, 9, 20]),
            _ => entries(&[]),
        }
    }

    fn generation(number: u64) -> Generation {
        Generation { level: Level(0), number }
    }

    fn load(merge: &mut MergeBuffer<u64>, count: u64) -> usize {
        let wanted: Vec<_> = merge.wanted(count).collect();
        for bucket in &wanted {
            let leaf = LeafRead::whole(leaves(bucket.generation.number, bucket.index));
            merge.supply(*bucket, &leaf);
        }
        wanted.len()
    }

    #[test]
    fn the_newer_copy_is_kept_and_nothing_is_left_over() {
        let all = [(1, 0), (3, 1), (4, 1), (5, 0), (7, 0), (9, 1), (11, 0), (20, 1)];
        // Cut off and resume after every number of blocks.
        for cut in 0..=all.len() {
            let mut merge = MergeBuffer::new(vec![generation(0), generation(1)], 2, 4);
            let mut got = Vec::new();
            for at in 0..16 {
                if at == cut {
                    let taken: Vec<_> = merge.taken().collect();
                    let generations = vec![generation(0), generation(1)];
                    merge = MergeBuffer::resume(generations, 2, 4, &taken);
                }
                load(&mut merge, 1);
                if let Some(pick) = merge.take_next(|_, _| false) {
                    let Origin::Slot(slot, _) = pick.origin else { panic!("from a slot") };
                    got.push((pick.block.0, slot.generation.number));
                }
            }
            assert_eq!(got, all);
            assert_eq!(merge.head(), None);
        }
    }

    #[test]
    fn a_block_waits_for_its_turn() {
        let mut merge = MergeBuffer::new(vec![generation(0), generation(1)], 2, 4);
        let mut got = Vec::new();
        for address in 0..=20 {
            load(&mut merge, 1);
            if let Some(pick) = merge.take_at(BlockId(address), |_, _| false) {
                assert_eq!(pick.block, BlockId(address));
                got.push(address);
            }
        }
        assert_eq!(got, [1, 3, 4, 5, 7, 9, 11, 20]);
    }

    #[test]
    fn enough_is_read_ahead_for_a_whole_bucket_and_no_more() {
        let mut merge = MergeBuffer::new(vec![generation(0), generation(1)], 2, 4);
        assert_eq!(load(&mut merge, 4), 2);
        assert_eq!(load(&mut merge, 4), 0);
        assert!(merge.take_next(|_, _| false).is_some());
        assert_eq!(load(&mut merge, 4), 1, "only the first is a block short");
    }

    #[test]
    fn what_is_expected_is_a_share_of_each_or_twice_what_was_taken_and_nothing_twice() {
        let two = vec![generation(0), generation(1)];
        let mut merge = MergeBuffer::<u64>::new(two, 8, 4);
        let full = |from| LeafRead::whole(entries(&[from, from + 1, from + 2, from + 3]));
        assert_eq!(merge.expect(8), [(generation(0), 0..4), (generation(1), 0..4)]);
        assert!(merge.expect(8).is_empty(), "it was said");
        for index in 0..2 {
            merge.supply(GenerationBucket { generation: generation(0), index }, &full(4 * index));
        }
        merge.supply(GenerationBucket { generation: generation(1), index: 0 }, &full(90));
        assert_eq!((0..6).filter_map(|_| merge.take_next(|_, _| false)).count(), 6);
        assert_eq!(merge.expect(8), [(generation(0), 6..18)], "it alone was taken from");
        assert_eq!(merge.head(), Some(BlockId(6)));
        let end = GenerationBucket { generation: generation(1), index: 1 };
        merge.supply(end, &LeafRead::whole(entries(&[94])));
        assert_eq!((0..6).filter_map(|_| merge.take_next(|_, _| false)).count(), 6);
        assert_eq!(merge.expect(8), [(generation(1), 4..5)], "fakes follow, which nobody reads");
    }
}
