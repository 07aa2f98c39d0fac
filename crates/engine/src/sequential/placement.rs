//! The place of each block: Algorithm 2 without its bytes. The engine adds reads, writes and
//! sealing; the model test drives it alone.
//!
//! The calls of a flush: [`Placement::wanted`] names the map leaves to read, [`Placement::supply`]
//! takes them, [`Placement::plan`] fills each slot of each scheduled bucket, and
//! [`Placement::done`] counts the flush.

mod plan;

use super::access_time_map::{AccessTimeMap, Accessed};
use super::ids::{Flush, Generation, GenerationBucket, GenerationSlot, Turn};
use super::merge_buffer::{ExpectedSlots, LeafRead, MergeBuffer, Pick};
use super::schedule::{BlockHome, Schedule};
use super::time_pages::Times;
use super::write_queue::WriteQueue;
use crate::{BlockId, EngineError, Level, Result};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Buckets to prefetch for each merge, in equal shares of its generations. Each generation's blocks
/// are in order, so a flush uses up about one bucket of all of them.
const EXPECTED: u64 = 32;

/// A flush's content for one bucket: a block, or a fake, for each slot.
#[derive(Clone, Debug)]
pub struct Planned<T> {
    /// The bucket.
    pub bucket: GenerationBucket,
    /// Its slots; `None` gets a fake.
    pub slots: Vec<Option<Pick<T>>>,
    /// Whether blocks between them may be missing, after damage.
    pub gaps: bool,
}

/// Where to look for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidates<'a, P> {
    /// In memory; `None` for a discarded block.
    Queued(Option<&'a P>),
    /// In this generation, or in a bucket of the last level.
    Stored(BlockHome),
    /// Nowhere: it was never written.
    Nowhere,
    /// This page of the access time map has the answer.
    InPage(BlockId),
    /// Nobody knows: the page of the access time map that had the answer is lost to damage.
    Lost,
}

/// The state of the placement. `T` opens a stored block; `P` is a queued block's content.
#[derive(Clone, Debug)]
pub struct Placement<T, P> {
    schedule: Schedule,
    flush: Flush,
    /// Writes since the last flush.
    writes: u64,
    queue: WriteQueue<P>,
    times: Times,
    /// The merges into level 1, 2, ..., and the last level.
    merges: Vec<MergeBuffer<T>>,
    /// The previous sweep's leaf of the due bucket of the last level.
    settled: Option<LeafRead<T>>,
    /// Pages of access times, for addresses of that bucket that a gap may have had.
    pages: BTreeMap<BlockId, Vec<u8>>,
}

impl<T: Copy, P> Placement<T, P> {
    /// A placement without any writes.
    pub fn new(schedule: Schedule) -> Self {
        let times = AccessTimeMap::new(schedule.timed_in_memory(), schedule.oldest());
        Self::resume(schedule, Flush(0), times, &[])
    }

    /// The placement after `flush` flushes, when the merges had taken this many slots of their
    /// sources, level by level. The queue is empty: [`Self::write_again`] refills it.
    pub(super) fn resume(
        schedule: Schedule,
        flush: Flush,
        times: AccessTimeMap,
        taken: &[Vec<u64>],
    ) -> Self {
        let (queue, times) = (WriteQueue::default(), Times::new(schedule.pages(), times));
        let (merges, settled, pages) = (Vec::new(), None, BTreeMap::new());
        let mut placement =
            Self { schedule, flush, writes: 0, queue, times, merges, settled, pages };
        for (merge, level) in placement.schedule.levels().skip(1).enumerate() {
            let begun = placement.merge_of(level, taken.get(merge));
            placement.merges.push(begun);
        }
        placement
    }

    /// The merge that makes the generation of the next flush.
    fn merge_of(&self, level: Level, taken: Option<&Vec<u64>>) -> MergeBuffer<T> {
        let above = Level(level.0 - 1);
        let buckets = self.schedule.generation_buckets(above);
        let bucket_blocks = self.schedule.bucket_blocks(above);
        let generation = self.schedule.generation_at(level, self.flush);
        let sources = generation.map_or_else(Vec::new, |it| self.schedule.sources(it));
        match taken {
            Some(taken) => MergeBuffer::resume(sources, buckets, bucket_blocks, taken),
            None => MergeBuffer::new(sources, buckets, bucket_blocks),
        }
    }

    /// The schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Flushes so far.
    pub fn flush(&self) -> Flush {
        self.flush
    }

    /// The current turn.
    pub fn now(&self) -> Turn {
        self.schedule.turn(self.flush)
    }

    /// Writes since the last flush.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// The queue.
    pub fn queue(&self) -> &WriteQueue<P> {
        &self.queue
    }

    /// The access times.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// The merges, from the one into level 1 on.
    pub fn merges(&self) -> &[MergeBuffer<T>] {
        &self.merges
    }

    /// Whether a flush must come before the next write.
    pub fn flush_due(&self) -> bool {
        self.writes >= self.schedule.writes_per_flush()
    }

    /// Takes a block into the queue; `None` discards it.
    ///
    /// # Errors
    /// `Invalid` when a flush is due.
    pub fn write(&mut self, block: BlockId, content: Option<P>) -> Result<()> {
        self.count_write()?;
        self.times.set(block, self.now());
        self.queue.push(block, content);
        Ok(())
    }

    /// Counts an empty write, to bring the next flush nearer.
    ///
    /// # Errors
    /// `Invalid` when a flush is due.
    pub fn pad(&mut self) -> Result<()> {
        self.count_write()
    }

    fn count_write(&mut self) -> Result<()> {
        if self.flush_due() {
            return Err(EngineError::Invalid("the queue must be flushed first".into()));
        }
        self.writes += 1;
        Ok(())
    }

    /// The place of a block.
    pub fn find(&self, block: BlockId) -> Candidates<'_, P> {
        match self.times.get(block, self.now()) {
            Ok(known) => self.find_known(block, known),
            Err(page) => Candidates::InPage(page),
        }
    }

    /// The place of a block with this access time.
    pub(super) fn find_known(&self, block: BlockId, known: Accessed) -> Candidates<'_, P> {
        let home = match known {
            Accessed::Never => return Candidates::Nowhere,
            Accessed::Unknown => return Candidates::Lost,
            Accessed::At(time) => self.schedule.home(time, self.now()),
            Accessed::Settled => match self.schedule.swept(0, self.flush) {
                Some(sweep) => BlockHome::Stored(sweep),
                None => return Candidates::Nowhere,
            },
        };
        let queued = match home {
            BlockHome::Front => self.queue.front(block),
            BlockHome::Back => self.queue.back(block),
            BlockHome::Stored(_) => return Candidates::Stored(home),
        };
        queued.map_or(Candidates::Stored(home), |content| Candidates::Queued(content.as_ref()))
    }

    /// Whether the newest copy of a block may come to this generation, by what memory and these
    /// pages of access times know.
    pub(super) fn may_come_to(
        &self,
        generation: Generation,
        block: BlockId,
        pages: &BTreeMap<BlockId, Vec<u8>>,
    ) -> bool {
        let at = (&self.schedule, self.now());
        self.times.newest_beside(block, generation, at, pages).is_none_or(Ordering::is_eq)
    }

    /// The slot of a block in the last level, as of the newest sweep that passed it.
    pub fn settled_slot(&self, block: BlockId) -> Option<GenerationSlot> {
        let (bucket, _) = self.schedule.last_bucket(block);
        let generation = self.schedule.swept(bucket, self.flush)?;
        Some(GenerationSlot { generation, index: block.0 })
    }

    /// The map leaves that the next flush needs.
    pub fn wanted(&self) -> Vec<GenerationBucket> {
        let mut wanted = Vec::new();
        for bucket in self.schedule.buckets(self.flush) {
            let level = bucket.generation.level;
            if level > Level(0) {
                let count = self.schedule.bucket_blocks(level);
                wanted.extend(self.merges[level.0 as usize - 1].wanted(count));
            }
            wanted.extend(self.swept_before(bucket).filter(|_| self.settled.is_none()));
        }
        wanted
    }

    /// The bucket that a sweep rewrites, as the previous sweep left it.
    fn swept_before(&self, bucket: GenerationBucket) -> Option<GenerationBucket> {
        if bucket.generation.level != self.schedule.last() {
            return None;
        }
        let generation = self.schedule.swept(bucket.index, self.flush)?;
        Some(GenerationBucket { generation, index: bucket.index })
    }

    /// The likely reads of the flushes after the planned one: the next slots of each merge, and the
    /// next bucket of the sweep, which may need only its leaf.
    pub fn expect(&mut self) -> (Vec<ExpectedSlots>, Option<GenerationBucket>) {
        let count = EXPECTED * self.schedule.bucket_blocks(Level(0));
        let merged = self.merges.iter_mut().flat_map(|merge| merge.expect(count)).collect();
        let next = Flush(self.flush.0 + 1);
        let swept = self.schedule.bucket(self.schedule.last(), next).and_then(|bucket| {
            let generation = self.schedule.swept(bucket.index, next)?;
            Some(GenerationBucket { generation, index: bucket.index })
        });
        (merged, swept)
    }

    /// Takes in a wanted leaf, in the order of [`Self::wanted`]. More are wanted after damaged
    /// ones.
    pub fn supply(&mut self, bucket: GenerationBucket, leaf: LeafRead<T>) {
        let level = bucket.generation.level;
        match self.merges.get_mut(level.0 as usize) {
            Some(merge) => merge.supply(bucket, &leaf),
            None => self.settled = Some(leaf),
        }
    }

    /// Checks that a merge is empty when the planned flush ends its generation.
    ///
    /// # Errors
    /// `State` otherwise: it was resumed from numbers that no engine wrote, and blocks would be
    /// lost.
    pub fn expect_merged(&self) -> Result<()> {
        let next = Flush(self.flush.0 + 1);
        let begins =
            |level| self.schedule.bucket(level, next).is_some_and(|bucket| bucket.index == 0);
        let left =
            |level: Level| begins(level) && self.merges[level.0 as usize - 1].head().is_some();
        if self.schedule.ends_turn(self.flush) && self.schedule.levels().skip(1).any(left) {
            return Err(EngineError::State("a merge has blocks left where it ends"));
        }
        Ok(())
    }

    /// Counts the planned flush.
    pub fn done(&mut self) {
        let ends = self.schedule.ends_turn(self.flush);
        self.flush.0 += 1;
        self.writes = 0;
        self.pages.clear();
        if !ends {
            return;
        }
        debug_assert!(self.queue.is_drained());
        self.queue.turn();
        for level in self.schedule.levels().skip(1) {
            if self.schedule.bucket(level, self.flush).is_some_and(|bucket| bucket.index == 0) {
                debug_assert_eq!(self.merges[level.0 as usize - 1].head(), None);
                self.merges[level.0 as usize - 1] = self.merge_of(level, None);
            }
        }
    }

    /// The numbers of the writes that a restart loses: those of this turn and the one before.
    pub(super) fn lost_writes(
        flush: Flush,
        writes: u64,
        schedule: &Schedule,
    ) -> std::ops::Range<u64> {
        let turn = schedule.writes_per_flush() * schedule.queue_buckets();
        let from = schedule.turn(flush).0.saturating_sub(1) * turn;
        from..flush.0 * schedule.writes_per_flush() + writes
    }

    /// Replays write number `number` after a restart: those of [`Self::lost_writes`], in order.
    /// `None` is an empty write.
    pub(super) fn write_again(&mut self, number: u64, write: Option<(BlockId, Option<P>)>) {
        let flush = Flush(number / self.schedule.writes_per_flush());
        let time = self.schedule.turn(flush);
        if flush == self.flush {
            self.writes += 1;
        }
        let Some((block, content)) = write else { return };
        self.times.set(block, time);
        if time == self.now() {
            self.queue.push(block, content);
        } else {
            self.queue.push_back(block, content);
        }
    }

    /// Ends the replay of [`Self::write_again`].
    pub(super) fn written_again(&mut self) {
        let flushes = self.flush.0 % self.schedule.queue_buckets();
        self.queue.skip_drained(flushes * self.schedule.bucket_blocks(Level(0)));
    }

    /// Records that a block is in a generation, during a rebuild of the access times.
    pub(super) fn found_in(&mut self, block: BlockId, generation: Generation) {
        let schedule = &self.schedule;
        let paged = schedule.pages().count > 0 && block.0 < schedule.blocks();
        // A time older than any page on the disk is in its page.
        let newest =
            schedule.oldest_time(Generation { number: generation.number + 1, ..generation });
        if !paged || newest.0 + schedule.page_round() + 3 >= self.now().0 {
            self.times.set(block, schedule.oldest_time(generation));
        }
    }
}

impl<T: Copy> Placement<T, Vec<u8>> {
    /// The pages of the access time map that the next flush writes.
    pub(super) fn pages_due(&self) -> Vec<BlockId> {
        self.times.pages().due(self.flush).collect()
    }

    /// Updates a due page and puts it into the queue.
    pub(super) fn push_page(&mut self, page: BlockId, mut content: Vec<u8>) {
        let now = self.now();
        self.times.update_page(page, &mut content, &self.schedule, now, false);
        self.times.set(page, now);
        self.queue.push(page, Some(content));
    }

    /// The pages that were in the queue before a restart, and the turns in which they got there.
    pub(super) fn lost_pages(&self) -> Vec<(BlockId, Turn)> {
        let from = self.now().0.saturating_sub(1) * self.schedule.queue_buckets();
        let pages = |flush| {
            let turn = self.schedule.turn(Flush(flush));
            self.times.pages().due(Flush(flush)).map(move |page| (page, turn))
        };
        (from..self.flush.0).flat_map(pages).collect()
    }

    /// Puts such a page into the queue again. The copy on its way to level 0 may be older than
    /// this, so later writes stay in memory.
    pub(super) fn push_page_again(&mut self, page: BlockId, turn: Turn, mut content: Vec<u8>) {
        let now = self.now();
        self.times.update_page(page, &mut content, &self.schedule, now, true);
        self.times.set(page, turn);
        if turn == now {
            self.queue.push(page, Some(content));
        } else {
            self.queue.push_back(page, Some(content));
        }
    }
}
