//! The schedule of writes: a pure function of the flush counter (§6.1, and
//! docs/decisions/0009-sequential.md for the fan-out and the proof).
//!
//! `p_i` (`periods`) is the number of turns that a generation of level i takes; `d_i` (`delays`) is
//! the level's lag in turns. The last level is level L in the same formulas.

use super::ids::{Flush, Generation, GenerationBucket, Turn};
use super::pages::Pages;
use super::{AccessTimeMap, SequentialConfig};
use crate::{BlockId, Level, Result};

/// The place of a block (§6.2, "identifying level, buffer, generation").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockHome {
    /// In the half of the queue that takes writes.
    Front,
    /// In the half of the queue that is being written to level 0.
    Back,
    /// On the disk. In the last level, at its address.
    Stored(Generation),
}

/// The schedule of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    blocks: u64,
    pages: Pages,
    bucket_blocks: u64,
    queue_buckets: u64,
    fan_outs: Vec<u64>,
    periods: Vec<u64>,
    delays: Vec<u64>,
    sweep_blocks: u64,
    sweep_buckets: u64,
}

impl Schedule {
    /// The schedule of an engine with these parameters.
    ///
    /// # Errors
    /// `Invalid` when they make no sense.
    pub fn new(config: &SequentialConfig) -> Result<Self> {
        config.check()?;
        let fan_outs = config.fan_outs();
        let (mut periods, mut delays) = (vec![1], vec![0]);
        for (level, fan_out) in fan_outs.iter().enumerate() {
            periods.push(periods[level] * fan_out);
            delays.push(delays[level] + periods[level]);
        }
        let flushes = config.queue_buckets * periods[fan_outs.len()];
        let addresses = config.addresses();
        let sweep_blocks = addresses.div_ceil(flushes);
        Ok(Self {
            blocks: config.blocks,
            pages: config.pages(),
            bucket_blocks: config.bucket_blocks,
            queue_buckets: config.queue_buckets,
            fan_outs,
            periods,
            delays,
            sweep_blocks,
            sweep_buckets: addresses.div_ceil(sweep_blocks),
        })
    }

    /// The same levels and turns for buckets of this many blocks, and for this many blocks in all.
    /// The access times are in memory.
    pub(super) fn with_buckets_of(&self, bucket_blocks: u64, blocks: u64) -> Self {
        let sweep_blocks = blocks.div_ceil(self.flushes_of(self.last()));
        let sweep_buckets = blocks.div_ceil(sweep_blocks);
        let pages = Pages { first: blocks, count: 0, each_flush: 0, ..self.pages };
        Self { blocks, pages, bucket_blocks, sweep_blocks, sweep_buckets, ..self.clone() }
    }

    /// Addressable blocks of data.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Addresses: blocks of data, followed by the pages of the access time map.
    pub fn addresses(&self) -> u64 {
        self.blocks + self.pages.count
    }

    /// The pages of the access time map.
    pub(super) fn pages(&self) -> Pages {
        self.pages
    }

    /// Blocks whose time is in memory: all blocks, or the pages.
    pub(super) fn timed_in_memory(&self) -> u64 {
        if self.pages.count == 0 { self.blocks } else { self.pages.count }
    }

    /// The longest that a page may wait for its turn, in turns of the queue.
    pub(super) fn page_round(&self) -> u64 {
        self.pages.count.div_ceil(self.pages.each_flush.max(1) * self.queue_buckets) + 1
    }

    /// The last level, below all levels with buffers.
    pub fn last(&self) -> Level {
        Level(self.fan_outs.len() as u32)
    }

    /// All levels from the top, the last one included.
    pub fn levels(&self) -> impl Iterator<Item = Level> + use<> {
        (0..=self.last().0).map(Level)
    }

    /// Generations of a level's ring: a merge and a write buffer of as many as the fan-out. In the
    /// last level, the finished sweep and the current one.
    pub fn ring(&self, level: Level) -> u64 {
        self.fan_outs.get(level.0 as usize).map_or(2, |fan_out| 2 * fan_out)
    }

    /// Blocks of a bucket in that level.
    pub fn bucket_blocks(&self, level: Level) -> u64 {
        if level == self.last() { self.sweep_blocks } else { self.bucket_blocks }
    }

    /// Buckets of a generation in that level.
    pub fn generation_buckets(&self, level: Level) -> u64 {
        if level == self.last() { self.sweep_buckets } else { self.flushes_of(level) }
    }

    /// Buckets of one half of the queue: flushes of a turn.
    pub fn queue_buckets(&self) -> u64 {
        self.queue_buckets
    }

    /// Writes between two flushes: a bucket, less the pages of access times.
    pub fn writes_per_flush(&self) -> u64 {
        self.bucket_blocks - self.pages.each_flush
    }

    /// Flushes during which a generation is written.
    pub fn flushes_of(&self, level: Level) -> u64 {
        self.queue_buckets * self.periods[level.0 as usize]
    }

    /// The first flush that writes to a level.
    fn begin(&self, level: Level) -> u64 {
        let level = level.0 as usize;
        self.queue_buckets * (self.periods[level] + self.delays[level])
    }

    /// The turn of a flush.
    pub fn turn(&self, flush: Flush) -> Turn {
        Turn(flush.0 / self.queue_buckets)
    }

    /// Whether a flush is the last one of its turn.
    pub fn ends_turn(&self, flush: Flush) -> bool {
        (flush.0 + 1).is_multiple_of(self.queue_buckets)
    }

    /// The generation of a level to which a flush belongs; none before the level's first.
    pub fn generation_at(&self, level: Level, flush: Flush) -> Option<Generation> {
        let since = flush.0.checked_sub(self.begin(level))?;
        Some(Generation { level, number: since / self.flushes_of(level) })
    }

    /// The bucket that a flush writes in a level; none before the level's first generation, and in
    /// the last level while it waits for the next sweep.
    pub fn bucket(&self, level: Level, flush: Flush) -> Option<GenerationBucket> {
        let generation = self.generation_at(level, flush)?;
        let index = (flush.0 - self.begin(level)) % self.flushes_of(level);
        (index < self.generation_buckets(level)).then_some(GenerationBucket { generation, index })
    }

    /// The flush that writes a bucket.
    pub fn flush_of(&self, bucket: GenerationBucket) -> Flush {
        let Generation { level, number } = bucket.generation;
        Flush(self.begin(level) + number * self.flushes_of(level) + bucket.index)
    }

    /// Everything that a flush writes, from the top level down.
    pub fn buckets(&self, flush: Flush) -> impl Iterator<Item = GenerationBucket> + use<'_> {
        self.levels().filter_map(move |level| self.bucket(level, flush))
    }

    /// The first turn in which a generation is complete and readable.
    pub fn complete(&self, generation: Generation) -> Turn {
        let level = generation.level.0 as usize;
        Turn((generation.number + 2) * self.periods[level] + self.delays[level])
    }

    /// The generation of a level that holds blocks of this access time once complete.
    pub fn generation(&self, level: Level, time: Turn) -> Generation {
        Generation { level, number: time.0 / self.periods[level.0 as usize] }
    }

    /// The oldest access time that a generation may hold. All its other possible times lead to the
    /// same places from there on.
    pub fn oldest_time(&self, generation: Generation) -> Turn {
        Turn(generation.number * self.periods[generation.level.0 as usize])
    }

    /// The greatest age, in turns, of an unsettled block. A sweep settles a block when it passes it
    /// in the last level.
    pub fn oldest(&self) -> u64 {
        let last = self.fan_outs.len();
        3 * self.periods[last] + self.delays[last]
    }

    /// The turns after which nothing that is on the disk now is used any more. A generation is used
    /// for two periods of the level below it, from its first bucket on; a bucket of the last level
    /// until the next sweep, and the nodes above it until the one after.
    pub fn turns_of_renewal(&self) -> u64 {
        2 * self.periods[self.fan_outs.len()]
    }

    /// Bytes of the access time map in memory.
    pub fn access_time_bytes(&self) -> u64 {
        self.timed_in_memory() * AccessTimeMap::code_bytes(self.oldest())
    }

    /// Whether a block of this access time is in the last level.
    pub fn is_settled(&self, time: Turn, now: Turn) -> bool {
        now >= self.complete(self.generation(self.last(), time))
    }

    /// The place at `now` of a block last written at `time` (the paper's Algorithm 3 and Equation 1
    /// in closed form).
    pub fn home(&self, time: Turn, now: Turn) -> BlockHome {
        for level in (0..=self.last().0).rev().map(Level) {
            let generation = self.generation(level, time);
            if now >= self.complete(generation) {
                return BlockHome::Stored(generation);
            }
        }
        if now == time { BlockHome::Front } else { BlockHome::Back }
    }

    /// The generations that merge into this one, oldest first; none for level 0, which takes from
    /// the queue.
    pub fn sources(&self, generation: Generation) -> Vec<Generation> {
        let Some(above) = generation.level.0.checked_sub(1) else { return Vec::new() };
        let fan_out = self.fan_outs[above as usize];
        let from = generation.number * fan_out;
        let level = Level(above);
        (from..from + fan_out).map(|number| Generation { level, number }).collect()
    }

    /// The bucket of the last level that holds an address, and the slot in it.
    pub fn last_bucket(&self, block: BlockId) -> (u64, u64) {
        (block.0 / self.sweep_blocks, block.0 % self.sweep_blocks)
    }

    /// The sweep that last wrote a bucket of the last level before `flush`.
    pub fn swept(&self, bucket: u64, flush: Flush) -> Option<Generation> {
        let level = self.last();
        let since = flush.0.checked_sub(self.begin(level) + bucket + 1)?;
        Some(Generation { level, number: since / self.flushes_of(level) })
    }

    /// The current generations of a level after `flush` flushes, oldest first: complete, and not
    /// yet merged.
    pub fn live(&self, level: Level, flush: Flush) -> Vec<Generation> {
        let now = self.turn(flush);
        let at = |number| Generation { level, number };
        // The newest generation begun; a live one is at most a ring older.
        let Some(newest) = self.generation_at(level, flush) else { return Vec::new() };
        let newest = newest.number;
        let oldest = (newest + 1).saturating_sub(self.ring(level));
        let live = |generation: &Generation| {
            let merged = Level(level.0 + 1);
            let target = || Generation {
                level: merged,
                number: generation.number / self.fan_outs[level.0 as usize],
            };
            let gone = level < self.last() && now >= self.complete(target());
            now >= self.complete(*generation) && !gone
        };
        (oldest..=newest).map(at).filter(live).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedules() -> impl Iterator<Item = Schedule> {
        let forms = [(1, 1, 2, 40), (3, 2, 3, 100), (2, 3, 4, 250), (5, 1, 3, 100)];
        [1, 7, 30, 61].into_iter().flat_map(move |blocks| {
            forms.map(|(bucket_blocks, queue_buckets, fan_out, last_ratio)| {
                let config = SequentialConfig {
                    bucket_blocks,
                    queue_buckets,
                    fan_out,
                    last_ratio,
                    sector_bytes: 256,
                    ..SequentialConfig::new(64, blocks)
                };
                Schedule::new(&config).expect("sound parameters")
            })
        })
    }

    /// The first flush that wrote anything that is used after `flush` flushes.
    fn oldest_used(schedule: &Schedule, flush: Flush) -> Option<u64> {
        let last = schedule.last();
        let live = (0..last.0).flat_map(|level| schedule.live(Level(level), flush));
        let swept = (0..schedule.generation_buckets(last))
            .filter_map(|bucket| schedule.swept(bucket, flush));
        let begins = |generation| schedule.flush_of(GenerationBucket { generation, index: 0 }).0;
        live.chain(swept).map(begins).min()
    }

    #[test]
    fn after_a_renewal_nothing_older_is_used_and_sooner_something_is() {
        let mut just_enough = 0;
        for schedule in schedules() {
            let (buckets, turns) = (schedule.queue_buckets(), schedule.turns_of_renewal());
            for from in 0..4 * turns * buckets {
                // To the end of this turn, and as many more as it takes.
                let end = (from / buckets + turns) * buckets;
                let oldest = oldest_used(&schedule, Flush(end));
                assert!(oldest.is_none_or(|oldest| oldest >= from), "{schedule:?}, {from}");
                let sooner = oldest_used(&schedule, Flush(end - buckets));
                just_enough += u32::from(sooner.is_some_and(|oldest| oldest < from));
            }
        }
        assert!(just_enough > 0, "fewer turns would do");
    }
}
