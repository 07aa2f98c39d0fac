//! The placement of the sequential engine against a model that knows every block's true place.
//!
//! The model follows events only: which bucket was written, which generation is whole, what was
//! merged into what. The engine's formula must always point at the same slot, and no slot that is
//! current may be written over.

mod sequential_run;

use oblivio_engine::BlockId;
use oblivio_engine::sequential::{
    Accessed, Bucket, Entry, Found, Generation, Home, Layout, Origin, Placement, Planned,
    SequentialConfig, Slot, Turn,
};
use proptest::prelude::*;
use sequential_run::{Dice, config};
use std::collections::BTreeMap;

/// Bytes of a block; everything on the disk is a multiple of it, so that an offset is an index.
const UNIT: usize = 64;

/// What the model's disk has in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Copied {
    block: u64,
    version: u32,
    present: bool,
    generation: Generation,
}

/// Where a block truly is; for the disk, the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    Front,
    Back,
    Disk(usize),
}

#[derive(Clone, Copy, Debug)]
struct Truth {
    version: u32,
    present: bool,
    place: Place,
}

struct Model {
    layout: Layout,
    placement: Placement<u32, u32>,
    disk: Vec<Option<Copied>>,
    truth: Vec<Truth>,
    front: Vec<u64>,
    back: Vec<u64>,
    /// Sweeps whose merge buffer is not yet given up.
    sweeping: Option<Generation>,
    versions: u32,
}

impl Model {
    fn new(config: SequentialConfig) -> Self {
        let config = SequentialConfig { block_bytes: UNIT, sector_bytes: 2 * UNIT, ..config };
        let layout = Layout::new(&config).expect("sound parameters");
        let truth = Truth { version: 0, present: false, place: Place::Nowhere };
        Self {
            placement: Placement::new(layout.schedule().clone()),
            disk: vec![None; layout.bytes() as usize / UNIT],
            truth: vec![truth; config.blocks as usize],
            front: Vec::new(),
            back: Vec::new(),
            sweeping: None,
            versions: 0,
            layout,
        }
    }

    fn offset(&self, slot: Slot) -> usize {
        self.layout.slot(slot).offset as usize / UNIT
    }

    /// The slots of a bucket.
    fn slots(&self, bucket: Bucket) -> impl Iterator<Item = Slot> + use<> {
        let count = self.layout.schedule().bucket_blocks(bucket.generation.level);
        let generation = bucket.generation;
        (bucket.index * count..).take(count as usize).map(move |index| Slot { generation, index })
    }

    fn write(&mut self, block: u64, present: bool) {
        self.versions += 1;
        let version = self.versions;
        let content = present.then_some(version);
        self.placement.write(BlockId(block), content).expect("no flush is due");
        self.truth[block as usize] = Truth { version, present, place: Place::Front };
        self.front.push(block);
        self.flush_if_due();
    }

    fn pad(&mut self) {
        self.placement.pad().expect("no flush is due");
        self.flush_if_due();
    }

    fn flush_if_due(&mut self) {
        if self.placement.flush_due() {
            self.flush();
        }
    }

    fn flush(&mut self) {
        for bucket in self.placement.wanted() {
            let entries: Vec<_> = self.slots(bucket).map(|slot| self.entry(slot)).collect();
            self.placement.supply(bucket, &entries);
        }
        for planned in self.placement.plan() {
            self.carry_out(&planned);
        }
        let flush = self.placement.flush();
        let before = self.placement.now();
        self.placement.done();
        if self.placement.now() != before {
            let schedule = self.layout.schedule().clone();
            for level in schedule.levels() {
                // The generation whose last flush this was.
                if let Some(whole) = schedule.generation_at(level, flush)
                    && schedule.generation_at(level, self.placement.flush()) != Some(whole)
                {
                    assert_eq!(schedule.complete(whole), self.placement.now());
                    self.complete(whole);
                }
            }
            self.turn();
        }
    }

    fn entry(&self, slot: Slot) -> Option<Entry<u32>> {
        let copy = self.disk[self.offset(slot)]?;
        assert_eq!(copy.generation, slot.generation, "a leaf of a generation that is gone");
        Some(Entry { block: BlockId(copy.block), present: copy.present, sealed: copy.version })
    }

    fn carry_out(&mut self, planned: &Planned<u32>) {
        let bucket = planned.bucket;
        let last = bucket.generation.level == self.layout.schedule().last();
        if last {
            self.sweeping = Some(bucket.generation);
        }
        for (slot, pick) in self.slots(bucket).zip(&planned.slots) {
            let at = self.offset(slot);
            if let Some(old) = self.disk[at] {
                let place = self.truth[old.block as usize].place;
                assert_ne!(place, Place::Disk(at), "{old:?} is current and written over");
            }
            self.disk[at] = pick.as_ref().map(|pick| {
                let block = pick.block.0;
                assert!(!last || block == slot.index, "block {block} out of its place");
                let truth = self.truth[block as usize];
                let version = match pick.origin {
                    Origin::Queue => {
                        let queued = self.placement.queue().back(pick.block).expect("queued");
                        // A discarded block has no content in the queue that could name it.
                        queued.unwrap_or_else(|| self.back_version(block))
                    }
                    Origin::Slot(from, version) => {
                        let from = self.offset(from);
                        let copy = self.disk[from].expect("a block is there");
                        assert_eq!((copy.block, copy.version), (block, version));
                        assert_eq!(copy.present, pick.present);
                        if last
                            && truth.place == Place::Disk(from)
                            && copy.generation.level == slot.generation.level
                        {
                            // Copied within the last level: current at once.
                            self.truth[block as usize].place = Place::Disk(at);
                        }
                        version
                    }
                };
                let present = pick.present;
                Copied { block, version, present, generation: bucket.generation }
            });
        }
    }

    /// The version of a discarded block that is on its way to level 0.
    fn back_version(&self, block: u64) -> u32 {
        let truth = self.truth[block as usize];
        // Rewritten since, it is no longer current and any older version will do.
        if truth.place == Place::Back { truth.version } else { 0 }
    }

    /// A generation is whole: what it holds of the newest versions is now there.
    fn complete(&mut self, generation: Generation) {
        let schedule = self.layout.schedule().clone();
        let last = generation.level == schedule.last();
        let mut previous: Option<u64> = None;
        let mut fakes = false;
        for index in 0..schedule.generation_buckets(generation.level) {
            for slot in self.slots(Bucket { generation, index }) {
                let at = self.offset(slot);
                let Some(copy) = self.disk[at] else {
                    fakes = true;
                    continue;
                };
                assert_eq!(copy.generation, generation);
                assert!(last || !fakes, "a block behind a fake");
                assert!(previous < Some(copy.block), "not ascending, or twice");
                previous = Some(copy.block);
                let truth = &mut self.truth[copy.block as usize];
                if truth.version == copy.version {
                    truth.place = Place::Disk(at);
                }
            }
        }
        for source in schedule.sources(generation) {
            for index in 0..schedule.generation_buckets(source.level) {
                for slot in self.slots(Bucket { generation: source, index }) {
                    let at = self.offset(slot);
                    let Some(copy) = self.disk[at] else { continue };
                    let truth = self.truth[copy.block as usize];
                    assert_ne!(truth.place, Place::Disk(at), "block {} left behind", copy.block);
                }
            }
        }
    }

    fn turn(&mut self) {
        for block in std::mem::take(&mut self.back) {
            let place = self.truth[block as usize].place;
            assert_ne!(place, Place::Back, "block {block} left in the queue");
        }
        self.back = std::mem::take(&mut self.front);
        for &block in &self.back {
            self.truth[block as usize].place = Place::Back;
        }
    }

    /// The engine finds the block where it truly is, in its newest version.
    fn check(&self, block: u64) {
        let truth = self.truth[block as usize];
        let id = BlockId(block);
        match self.placement.find(id) {
            Found::Nowhere => assert_eq!(truth.place, Place::Nowhere, "block {block}"),
            Found::Queued(content) => {
                let queued = matches!(truth.place, Place::Front | Place::Back);
                assert!(queued, "block {block} is at {:?}, not queued", truth.place);
                assert_eq!(content.copied(), truth.present.then_some(truth.version));
            }
            Found::Stored(Home::Stored(generation)) => {
                let Place::Disk(at) = truth.place else {
                    panic!("block {block} is at {:?}, not in {generation:?}", truth.place)
                };
                let copy = self.disk[at].expect("a block is there");
                assert_eq!((copy.block, copy.version), (block, truth.version));
                assert_eq!(copy.present, truth.present);
                if generation.level == self.layout.schedule().last() {
                    let slot = self.placement.settled_slot(id).expect("swept");
                    assert_eq!(self.offset(slot), at, "block {block} in the last level");
                    assert_eq!(copy.generation, slot.generation);
                } else {
                    assert_eq!(copy.generation, generation, "block {block}");
                }
            }
            other => panic!("block {block}: {other:?}"),
        }
    }

    /// The search invariant (§5): looking through everything from the newest to the oldest, the
    /// first copy found is the one that the formula names.
    fn check_search(&self, block: u64) {
        let schedule = self.layout.schedule();
        let truth = self.truth[block as usize];
        if !matches!(truth.place, Place::Disk(_)) {
            return;
        }
        for level in schedule.levels().take(schedule.last().0 as usize) {
            for generation in schedule.live(level, self.placement.flush()).into_iter().rev() {
                if let Some(at) = self.search(generation, block) {
                    assert_eq!(truth.place, Place::Disk(at), "block {block} in {generation:?}");
                    return;
                }
            }
        }
        let slot = self.placement.settled_slot(BlockId(block)).expect("swept");
        assert_eq!(truth.place, Place::Disk(self.offset(slot)));
    }

    fn search(&self, generation: Generation, block: u64) -> Option<usize> {
        let schedule = self.layout.schedule();
        let count = schedule.generation_buckets(generation.level)
            * schedule.bucket_blocks(generation.level);
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high) / 2;
            let at = self.offset(Slot { generation, index: middle });
            match self.disk[at] {
                Some(copy) if copy.block == block => return Some(at),
                Some(copy) if copy.block < block => low = middle + 1,
                _ => high = middle,
            }
        }
        None
    }
}

/// Random operations of changing habits, each checked; now and then every block is checked.
///
/// Returns how many sweeps of the last level there were.
fn run(config: SequentialConfig, ops: u64, seed: u64) -> u64 {
    let mut model = Model::new(config);
    let mut dice = Dice(seed);
    let blocks = config.blocks;
    let (mut habit, mut at) = (0, 0);
    for op in 0..ops {
        if op % 1000 == 0 {
            (habit, at) = (dice.below(4), dice.below(blocks));
        }
        let block = match habit {
            0 => dice.below(blocks),
            1 => (at + op) % blocks,
            2 => (at + dice.below(10)) % blocks,
            _ => at,
        };
        match dice.below(20) {
            0..12 => model.write(block, true),
            12..14 => model.write(block, false),
            14 => model.pad(),
            _ => {}
        }
        model.check(block);
        let other = dice.below(blocks);
        model.check(other);
        if op % 16 == 0 {
            model.check_search(other);
        }
        if op % (4 * blocks) == 0 {
            (0..blocks).for_each(|block| model.check(block));
        }
    }
    (0..blocks).for_each(|block| model.check(block));
    let swept = model.layout.schedule().swept(0, model.placement.flush());
    swept.map_or(0, |sweep| sweep.number + 1)
}

/// How many operations the long run makes.
#[expect(clippy::disallowed_methods, reason = "the recipe says how much in the environment")]
fn operations() -> u64 {
    let ops = std::env::var("OBLIVIO_SEQUENTIAL_OPS").ok();
    ops.map_or(2_000_000, |ops| ops.parse().expect("a number of operations"))
}

#[test]
fn every_block_is_where_the_formula_says() {
    // Buckets and how many of them the queue has: queues of 1 to 4,096 blocks.
    let queues =
        [(1, 1), (1, 3), (2, 1), (5, 1), (3, 7), (16, 4), (100, 1), (168, 5), (64, 64), (4096, 1)];
    let mut sets = Vec::new();
    for fan_out in 2..=16 {
        for (at, (bucket, queue)) in queues.into_iter().enumerate() {
            // Deep for small queues, shallow for large ones; never a power.
            let turns = [501, 201, 91, 31, 7, 3][(at + fan_out as usize) % 6];
            let turns = (2000 / (bucket * queue)).clamp(2, turns);
            let blocks = bucket * queue * turns / 2 + 1 + fan_out;
            let last_ratio = [100, 100, 150, 230, 60][(at + fan_out as usize) % 5];
            sets.push(config(blocks, bucket, queue, fan_out, last_ratio));
        }
    }
    // Large sets need more operations until blocks have gone all the way.
    let total = operations();
    let weight = |config: &SequentialConfig| config.blocks + 300;
    let all: u64 = sets.iter().map(weight).sum();
    let (mut made, mut least) = (0, u64::MAX);
    for (seed, config) in sets.iter().enumerate() {
        let ops = (total as u128 * u128::from(weight(config)) / u128::from(all)) as u64;
        least = least.min(run(*config, ops, seed as u64));
        made += ops;
    }
    assert!(least > 1 || total < 2_000_000, "a set never came to its last level");
    eprintln!(
        "{made} operations over {} parameter sets, at least {least} sweeps of each",
        sets.len()
    );
}

/// Access times are kept modulo a number below 2^16: what is old must be settled in time.
#[test]
fn blocks_are_found_after_access_times_have_wrapped() {
    for fan_out in [2, 3, 5] {
        let mut model = Model::new(config(23, 1, 1, fan_out, 100));
        for turn in 0..200_000 {
            // Half of them are written once and never again.
            model.write(if turn < 23 { turn } else { turn * 7 % 11 }, true);
            model.check(11 + turn % 12);
            model.check(turn % 11);
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Write(u64),
    Discard(u64),
    Pad,
}

fn any_op() -> impl Strategy<Value = Op> {
    let block = prop_oneof![Just(3u64), 0..8u64, any::<u64>()];
    prop_oneof![
        6 => block.clone().prop_map(Op::Write),
        1 => block.prop_map(Op::Discard),
        1 => Just(Op::Pad),
    ]
}

proptest! {
    /// Small ones, with every block checked after every operation.
    #[test]
    fn no_block_is_ever_in_none_or_in_two_places(
        (blocks, bucket, queue) in (1..60u64, 1..6u64, 1..4u64),
        (fan_out, last_ratio) in (2..7u64, 30..300u64),
        ops in prop::collection::vec(any_op(), 1..600),
    ) {
        let mut model = Model::new(config(blocks, bucket, queue, fan_out, last_ratio));
        let mut newest = BTreeMap::new();
        for op in &ops {
            match op {
                Op::Write(block) => {
                    model.write(block % blocks, true);
                    newest.insert(block % blocks, true);
                }
                Op::Discard(block) => {
                    model.write(block % blocks, false);
                    newest.insert(block % blocks, false);
                }
                Op::Pad => model.pad(),
            }
            for block in 0..blocks {
                model.check(block);
                model.check_search(block);
                let truth = model.truth[block as usize];
                prop_assert_eq!(truth.present, newest.get(&block).copied().unwrap_or(false));
            }
        }
    }
}

/// The model is no judge unless it finds faults: a home that is a turn early, or late, is one.
#[test]
fn a_formula_that_is_off_by_a_turn_names_other_places() {
    let mut model = Model::new(config(100, 2, 2, 3, 100));
    let mut dice = Dice(1);
    let (mut early, mut late) = (0, 0);
    for _ in 0..3000 {
        model.write(dice.below(100), true);
        let block = dice.below(100);
        let Place::Disk(at) = model.truth[block as usize].place else { continue };
        let generation = model.disk[at].expect("a block is there").generation;
        let (schedule, now) = (model.layout.schedule(), model.placement.now());
        let known = model.placement.times().get(BlockId(block), now);
        let (Ok(Accessed::At(time)), true) = (known, generation.level < schedule.last()) else {
            continue;
        };
        let home = Home::Stored(generation);
        assert_eq!(schedule.home(time, now), home);
        early += u32::from(schedule.home(time, Turn(now.0 + 1)) != home);
        late += u32::from(schedule.home(time, Turn(now.0 - 1)) != home);
    }
    assert!(early > 100 && late > 100, "{early} early, {late} late");
}
