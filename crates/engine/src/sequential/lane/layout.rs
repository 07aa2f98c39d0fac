//! The places of a lane's disk. They follow from the number of the outer flush.

use super::node_turns::has_pages;
use crate::sequential::SequentialConfig;
use crate::sequential::engine::Sequential;
use crate::sequential::ids::{Flush, Generation, GenerationBucket};
use crate::sequential::keys::SequentialKeys;
use crate::sequential::layout::{Layout, MOST_BYTES};
use crate::sequential::map_shape::MapShape;
use crate::sequential::schedule::Schedule;
use crate::sequential::state::restored;
use crate::{EngineError, Extent, Level, Result};

/// One level's part of a lane's disk: a ring of buckets, then a ring of pages.
#[derive(Clone, Debug)]
struct LaneRegion {
    /// Where its buckets begin.
    buckets: u64,
    /// Where its map pages begin: of each bucket the leaf, and a page for an inner node.
    pages: u64,
    /// Places of both rings.
    ring: u64,
    /// Bytes of a bucket's blocks.
    blocks_bytes: u64,
    leaf_bytes: u64,
    shape: MapShape,
}

/// The places of a lane's disk. Flushes are the outer engine's.
#[derive(Clone, Debug)]
pub struct LaneLayout {
    config: SequentialConfig,
    schedule: Schedule,
    grace: u64,
    regions: Vec<LaneRegion>,
    bytes: u64,
}

impl LaneLayout {
    /// A lane beside an engine with these parameters. Its buckets, and so its capacity, are one
    /// part in `share` of the outer ones; its grace is one part in `grace` of the outer capacity.
    ///
    /// # Errors
    /// `Invalid` when the outer buckets are too small to share, or the disk would be too large.
    pub fn new(config: &SequentialConfig, share: u64, grace: u64) -> Result<Self> {
        let outer = Schedule::new(config)?;
        if !(1..=config.bucket_blocks).contains(&share) || grace == 0 {
            return Err(EngineError::Invalid("a lane's bucket has at least one block".into()));
        }
        let bucket_blocks = config.bucket_blocks / share;
        let whole = u128::from(config.blocks) * u128::from(bucket_blocks);
        let blocks = (whole / u128::from(config.bucket_blocks)).max(1) as u64;
        let turn = outer.writes_per_flush() * outer.queue_buckets();
        let grace = config.blocks.div_ceil(grace).div_ceil(turn) * outer.queue_buckets();
        let schedule = outer.with_buckets_of(bucket_blocks, blocks);
        let lane = SequentialConfig { blocks, bucket_blocks, time_pages: 0, ..*config };
        let layout = Self::within_bounds(&lane, schedule, grace);
        layout.ok_or_else(|| {
            let why =
                "a lane has at most 2^62 bytes, and maps no higher than half of their fan-out";
            EngineError::Invalid(why.into())
        })
    }

    /// `None` when it would be too large, or its maps too high.
    fn within_bounds(config: &SequentialConfig, schedule: Schedule, grace: u64) -> Option<Self> {
        let (block_bytes, node_bytes) = (config.block_bytes as u64, config.sector_bytes as u64);
        let (mut regions, mut offset) = (Vec::new(), 0u64);
        for level in schedule.levels() {
            let needed = match level == schedule.last() {
                // A sweep, and the turn that the last durable state does not know of.
                true => schedule.flushes_of(level) + schedule.queue_buckets(),
                false => schedule.ring(level).checked_mul(schedule.flushes_of(level))?,
            };
            let ring = needed.checked_add(grace)?;
            let blocks = schedule.bucket_blocks(level);
            let (blocks_bytes, leaf_bytes) = (blocks * block_bytes, config.leaf_bytes(blocks));
            let pages = offset.checked_add(ring.checked_mul(blocks_bytes)?)?;
            let shape = MapShape::new(schedule.generation_buckets(level), config.map_fan_out());
            if !has_pages(&shape) {
                return None;
            }
            regions.push(LaneRegion {
                buckets: offset,
                pages,
                ring,
                blocks_bytes,
                leaf_bytes,
                shape,
            });
            offset = pages.checked_add(ring.checked_mul(leaf_bytes + node_bytes)?)?;
        }
        let layout = Self { config: *config, schedule, grace, regions, bytes: offset };
        (offset <= MOST_BYTES).then_some(layout)
    }

    /// The lane's schedule, by its own flushes.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// How many flushes the lane may miss before it loses anything: whole turns.
    pub fn grace(&self) -> u64 {
        self.grace
    }

    /// The same in turns.
    pub fn grace_turns(&self) -> u64 {
        self.grace / self.schedule.queue_buckets()
    }

    /// Bytes of the whole disk.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that each flush writes, once and for all.
    pub fn flush_bytes(&self) -> u64 {
        let pages = |it: &LaneRegion| it.leaf_bytes + self.node_bytes();
        self.regions.iter().map(|it| it.blocks_bytes + pages(it)).sum()
    }

    /// The parameters of the lane's engine.
    pub fn config(&self) -> &SequentialConfig {
        &self.config
    }

    /// The disk that the lane's engine sees: one without gaps, that nobody else writes.
    pub fn engine_layout(&self) -> Layout {
        let layout = Layout::within_bounds(&self.config, self.schedule.clone());
        layout.expect("it is smaller than the lane's own disk")
    }

    /// Its engine, whose blocks were never written.
    pub fn engine(&self, keys: SequentialKeys) -> Sequential {
        Sequential::on(self.config, self.engine_layout(), keys)
    }

    /// Its engine, as [`Sequential::restore`] does it.
    ///
    /// # Errors
    /// As [`Sequential::restore`].
    pub fn restore(
        &self,
        keys: SequentialKeys,
        state: &[u8],
        times: Option<&[u8]>,
    ) -> Result<Sequential> {
        restored((self.config, self.engine_layout()), keys, state, times)
    }

    /// Bytes of an inner node.
    pub(super) fn node_bytes(&self) -> u64 {
        self.config.sector_bytes as u64
    }

    /// The form of the buffer maps of a level.
    pub(super) fn shape(&self, level: Level) -> &MapShape {
        &self.region(level).shape
    }

    fn region(&self, level: Level) -> &LaneRegion {
        &self.regions[level.0 as usize]
    }

    /// The blocks of the bucket that a flush writes in a level.
    pub fn bucket(&self, level: Level, flush: Flush) -> Extent {
        let LaneRegion { buckets, ring, blocks_bytes, .. } = *self.region(level);
        Extent { offset: buckets + flush.0 % ring * blocks_bytes, bytes: blocks_bytes }
    }

    /// The leaf of that bucket.
    pub fn leaf(&self, level: Level, flush: Flush) -> Extent {
        Extent { bytes: self.region(level).leaf_bytes, ..self.pages(level, flush) }
    }

    /// The page for an inner node that a flush writes in a level.
    pub fn node(&self, level: Level, flush: Flush) -> Extent {
        let leaf = self.leaf(level, flush);
        Extent { offset: leaf.end(), bytes: self.node_bytes() }
    }

    /// The leaf and the page behind it.
    fn pages(&self, level: Level, flush: Flush) -> Extent {
        let LaneRegion { pages, ring, leaf_bytes, .. } = *self.region(level);
        let bytes = leaf_bytes + self.node_bytes();
        Extent { offset: pages + flush.0 % ring * bytes, bytes }
    }

    /// Everything that a flush writes, in order: the same in each level, from the first flush on.
    pub fn writes(&self, flush: Flush) -> Vec<Extent> {
        let parts = |level| [self.bucket(level, flush), self.pages(level, flush)];
        self.schedule.levels().flat_map(parts).collect()
    }

    /// What a merge of full levels reads at a flush, if the lane missed none: each level below the
    /// top a bucket, the last level the one that it sweeps, and the leaf of a bucket to merge.
    pub fn reads(&self, flush: Flush) -> Vec<Extent> {
        let mut reads = Vec::new();
        let levels = self.schedule.levels().skip(1);
        for bucket in levels.filter_map(|level| self.schedule.bucket(level, flush)) {
            let GenerationBucket { generation: Generation { level, number }, index } = bucket;
            let sources = self.schedule.sources(bucket.generation);
            let fan_out = sources.len() as u64;
            let generation = sources[(index % fan_out) as usize];
            let source = GenerationBucket { generation, index: index / fan_out };
            let written = self.schedule.flush_of(source);
            reads.push(self.leaf(generation.level, written));
            if level < self.schedule.last() {
                reads.push(self.bucket(generation.level, written));
                continue;
            }
            let Some(before) = number.checked_sub(1) else { continue };
            let swept = Generation { level, number: before };
            let written = self.schedule.flush_of(GenerationBucket { generation: swept, index });
            reads.extend([self.bucket(level, written), self.leaf(level, written)]);
        }
        reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_testkit::Dice;
    use oblivio_testkit::campaign::{scaled, seed};

    fn any_config(dice: &mut Dice) -> SequentialConfig {
        SequentialConfig {
            bucket_blocks: 2 + dice.below(9),
            queue_buckets: 1 + dice.below(3),
            fan_out: 2 + dice.below(4),
            last_ratio: [40, 100, 250][dice.below(3) as usize],
            sector_bytes: 256,
            ..SequentialConfig::new(64, 10 + dice.below(400))
        }
    }

    fn any_lane(dice: &mut Dice) -> LaneLayout {
        let config = any_config(dice);
        let (share, grace) = (1 + dice.below(config.bucket_blocks), 1 + dice.below(20));
        LaneLayout::new(&config, share, grace).expect("sound parameters")
    }

    /// What a lane needs after `flushes` of its own, a level and the flush that wrote it.
    fn needed(lane: &LaneLayout, flushes: u64) -> Vec<(Level, u64)> {
        let (schedule, now) = (lane.schedule(), Flush(flushes));
        let last = schedule.last();
        let mut needed = Vec::new();
        for level in (0..last.0).map(Level) {
            let begun = schedule.generation_at(level, now);
            for generation in schedule.live(level, now).into_iter().chain(begun) {
                let buckets = 0..schedule.generation_buckets(level);
                let of = |index| schedule.flush_of(GenerationBucket { generation, index }).0;
                needed.extend(buckets.map(of).map(|flush| (level, flush)));
            }
        }
        for index in 0..schedule.generation_buckets(last) {
            let swept = schedule.swept(index, now);
            let of = |generation| schedule.flush_of(GenerationBucket { generation, index }).0;
            needed.extend(swept.map(of).map(|flush| (last, flush)));
        }
        needed.retain(|&(_, flush)| flush < flushes);
        needed
    }

    /// A lane is open for some turns and shut for others. Tells whether all that it needs is there
    /// each time that it is open, and a turn later: a crash may bring it back to its last state.
    fn survives(lane: &LaneLayout, dice: &mut Dice, most_missed: u64) -> bool {
        let (schedule, turn) = (lane.schedule(), lane.schedule().queue_buckets());
        let window = schedule.turns_of_renewal();
        // Of each turn whether it was open; of each of the lane's own, its number.
        let (mut turns, mut own): (Vec<bool>, Vec<u64>) = (Vec::new(), Vec::new());
        for _ in 0..6 * window + dice.below(40) {
            // Since it was open that often, own turns.
            let since = own.len().checked_sub(window as usize).map_or(0, |at| own[at]);
            let missed = turns[since as usize..].iter().filter(|open| !**open).count() as u64;
            let open = missed >= most_missed || dice.below(3) > 0;
            let past = own.len() as u64 * turn;
            let end = (turns.len() as u64 + 1) * turn;
            if open {
                for (level, flush) in needed(lane, past) {
                    let written = own[(flush / turn) as usize] * turn + flush % turn;
                    // The flush that writes the same place again came by the end of this turn.
                    if written + lane.region(level).ring < end {
                        return false;
                    }
                }
                own.push(turns.len() as u64);
            }
            turns.push(open);
        }
        true
    }

    #[test]
    fn within_the_grace_nothing_that_a_lane_needs_is_overwritten() {
        for seed in (seed(1)..).take(scaled(60) as usize) {
            let mut dice = Dice::new(seed);
            let lane = any_lane(&mut dice);
            let grace = lane.grace_turns();
            assert!(survives(&lane, &mut dice, grace), "seed {seed}: {lane:?}");
        }
    }

    /// The test above can fail: without the grace in its rings, a lane loses what it needs.
    #[test]
    fn without_longer_rings_a_lane_that_misses_turns_loses_something() {
        let (mut lost, mut played) = (0, 0);
        for seed in 0..40 {
            let mut dice = Dice::new(seed);
            let mut lane = any_lane(&mut dice);
            let (missed, grace) = (lane.grace_turns(), lane.grace());
            if missed < 3 {
                continue;
            }
            lane.regions.iter_mut().for_each(|region| region.ring -= grace);
            played += 1;
            lost += u64::from(!survives(&lane, &mut dice, missed));
        }
        assert!(played > 10 && lost * 10 >= played * 9, "{lost} of {played}");
    }

    #[test]
    fn every_flush_writes_as_much_at_places_of_its_own_and_what_it_reads_was_written() {
        for seed in (seed(1)..).take(scaled(40) as usize) {
            let lane = any_lane(&mut Dice::new(seed));
            let mut written = vec![false; lane.bytes() as usize];
            let flushes = 3 * lane.schedule().flushes_of(lane.schedule().last());
            for flush in (0..flushes).map(Flush) {
                for read in lane.reads(flush) {
                    let part = read.offset as usize..read.end() as usize;
                    assert!(written[part].iter().all(|it| *it), "seed {seed}: {flush:?}");
                }
                let writes = lane.writes(flush);
                assert_eq!(writes.iter().map(|it| it.bytes).sum::<u64>(), lane.flush_bytes());
                let mut sorted = writes.clone();
                sorted.sort_unstable();
                assert!(sorted.windows(2).all(|pair| pair[0].end() <= pair[1].offset));
                for write in writes {
                    written[write.offset as usize..write.end() as usize].fill(true);
                }
            }
            for level in lane.schedule().levels() {
                let (leaf, node) = (lane.leaf(level, Flush(7)), lane.node(level, Flush(7)));
                assert_eq!(leaf.end(), node.offset);
                assert!(node.end() <= lane.bytes());
            }
        }
    }

    #[test]
    fn a_lane_holds_its_part_and_has_the_outer_levels() {
        for (gib, share) in [(8, 8), (64, 4), (256, 8), (256, 2)] {
            let config = SequentialConfig::new(4096, gib << 18);
            let outer = Schedule::new(&config).expect("the defaults make sense");
            let lane = LaneLayout::new(&config, share, 16).expect("a lane");
            let inner = lane.schedule();
            assert_eq!(inner.last(), outer.last());
            for level in outer.levels() {
                assert_eq!(inner.flushes_of(level), outer.flushes_of(level));
            }
            let part = outer.blocks() / share;
            assert!(inner.blocks() <= part && inner.blocks() * 100 >= part * 98, "{gib} {share}");
            let grace = lane.grace() * outer.writes_per_flush();
            assert!(grace >= outer.blocks() / 16 && grace <= outer.blocks() / 8, "{grace}");
        }
        let config = SequentialConfig { bucket_blocks: 4, ..SequentialConfig::new(64, 100) };
        for (share, grace) in [(0, 1), (5, 1), (1, 0)] {
            assert!(LaneLayout::new(&config, share, grace).is_err());
        }
    }
}
