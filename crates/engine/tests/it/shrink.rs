//! A tree that shrinks and grows in use: the store's view follows from counts, the stash stays as
//! small as ever, and no path is shown twice.

use crate::cases;
use oblivio_engine::memory::{MemoryBuckets, MemoryEvent};
use oblivio_engine::tree::{
    Eviction, STASH_BOUND, Shape, TreeConfig, TreeKeys, TreeOram, shape_for,
};
use oblivio_engine::{Action, BlockId, BlockOp, BucketId, Leaf, Level, carry_out};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const BYTES: usize = 64;
const EVERY: u32 = 3;

fn config(capacity: u64, leaf_steps: bool) -> TreeConfig {
    TreeConfig {
        leaf_steps,
        eviction: Eviction::Scheduled { every: EVERY },
        cache_bytes: 0,
        ..TreeConfig::new(BYTES, capacity)
    }
}

fn op(id: u64, write: bool) -> BlockOp {
    let action = if write { Action::Write(vec![id as u8; BYTES]) } else { Action::Read };
    BlockOp { id: BlockId(id), action }
}

/// The accesses while the tree shrinks.
#[derive(Clone, Copy, Debug)]
enum Workload {
    OneBlock,
    Sequential,
    Uniform,
    /// Blocks come back until the smaller class is full.
    Refill,
    /// None: maintenance alone.
    Idle,
}

const WORKLOADS: [Workload; 5] =
    [Workload::OneBlock, Workload::Sequential, Workload::Uniform, Workload::Refill, Workload::Idle];

/// One life: filled, then discarded in steps down to almost nothing, shrinking all the way.
struct Life {
    engine: TreeOram,
    store: MemoryBuckets,
    dice: Dice,
    live: Vec<u64>,
    absent: Vec<u64>,
    next: usize,
    /// The peak of the stash while the tree shrinks, and while it does not.
    peaks: [usize; 2],
}

impl Life {
    fn new(log_blocks: u32, seed: u64, steps: bool) -> Self {
        let blocks = 1 << log_blocks;
        let engine = TreeOram::new(config(blocks, steps), blocks, TreeKeys::from_seed(seed));
        let engine = engine.expect("a sound config");
        let mut life = Self {
            engine,
            store: MemoryBuckets::default(),
            dice: Dice::new(seed),
            live: (0..blocks).collect(),
            absent: Vec::new(),
            next: 0,
            peaks: [0; 2],
        };
        for id in 0..blocks {
            life.access(id, true);
        }
        life
    }

    fn access(&mut self, id: u64, write: bool) {
        self.store.access(&mut self.engine, vec![op(id, write)]).expect("sound");
        self.after();
    }

    fn after(&mut self) {
        let peak = &mut self.peaks[usize::from(self.engine.shrink_left() == 0)];
        *peak = (*peak).max(self.engine.stash_blocks());
        self.engine.committed();
    }

    /// Discards random blocks until `left` remain.
    fn discard_to(&mut self, left: u64) {
        let mut gone = Vec::new();
        while self.live.len() as u64 > left {
            let at = self.dice.below(self.live.len() as u64) as usize;
            gone.push(self.live.swap_remove(at));
        }
        self.engine.discard(&gone.iter().map(|&id| BlockId(id)).collect::<Vec<_>>()).expect("idle");
        self.absent.extend(gone);
        assert_eq!(self.engine.live_blocks(), left);
    }

    fn step(&mut self, workload: Workload) {
        self.next += 1;
        let id = match workload {
            Workload::OneBlock => self.live[0],
            Workload::Sequential => self.live[self.next % self.live.len()],
            Workload::Uniform => self.live[self.dice.below(self.live.len() as u64) as usize],
            Workload::Refill if (self.live.len() as u64) < self.engine.size_class() => {
                let id = self.absent.pop().expect("some were discarded");
                self.live.push(id);
                return self.access(id, true);
            }
            Workload::Refill => self.live[self.dice.below(self.live.len() as u64) as usize],
            Workload::Idle => {
                let mut round = self.engine.begin_maintenance(7).expect("idle");
                carry_out(&mut round, &mut self.engine, &mut self.store).expect("sound");
                return self.after();
            }
        };
        let write = self.next.is_multiple_of(2);
        self.access(id, write);
    }

    /// Checks that after every leaf's turn, no stored bucket has more slots than the class needs.
    fn check_lengths(&self, shape: Shape) {
        let geometry = self.engine.config().geometry();
        for (bucket, bytes) in &self.store.buckets {
            let most = if bucket.level() == shape.depth { shape.leaf_slots } else { 4 };
            assert!(bytes.len() <= geometry.bucket_bytes_with(most), "{bucket:?}");
        }
    }

    fn shrink(&mut self, workload: Workload, least: u64) {
        while self.engine.size_class() > least {
            let class = self.engine.size_class();
            let config = *self.engine.config();
            let below = match config.leaf_steps {
                false => class / 2,
                // One step, or many at once.
                true if self.dice.below(3) > 0 => {
                    let is_class = |&below: &u64| config.size_class_above(below - 1) == below;
                    (1..class).rev().find(is_class).expect("a class is below")
                }
                true => class / 2,
            };
            let margin = below / if config.leaf_steps { 16 } else { 8 };
            self.discard_to(below - margin - 1);
            let smaller = config.size_class_after(self.engine.live_blocks(), class);
            assert_eq!(smaller, below);
            self.engine.set_size_class(smaller).expect("idle");
            let paths = self.engine.shrink_left();
            let mut steps = 0;
            while self.engine.shrink_left() > 0 {
                self.step(workload);
                steps += 1;
            }
            // The tree is as deep as a new one, after the promised paths and not one access more.
            assert_eq!(self.engine.shape(), shape_for(smaller, 4, 52, config.leaf_steps));
            self.check_lengths(self.engine.shape());
            let most = if matches!(workload, Workload::Idle) { 7 } else { 1 };
            assert!(steps <= paths * u64::from(EVERY).max(most), "{steps} steps, {paths} paths");
            for _ in 0..smaller / 4 {
                self.step(workload);
            }
            assert_eq!(self.engine.live_blocks(), self.live.len() as u64);
        }
    }
}

fn peaks(log_blocks: u32, seeds: std::ops::Range<u64>, steps: bool) -> [usize; 2] {
    let mut most = [0; 2];
    for workload in WORKLOADS {
        let mut peaks = [0; 2];
        for seed in seeds.clone() {
            let mut life = Life::new(log_blocks, seed, steps);
            life.shrink(workload, 16);
            peaks = [peaks[0].max(life.peaks[0]), peaks[1].max(life.peaks[1])];
            // The remaining blocks are all there, and nothing else.
            let ids: Vec<_> = (0..1 << log_blocks).collect();
            for ids in ids.chunks(64) {
                let ops = ids.iter().map(|&id| op(id, false)).collect();
                let answers = life.store.access(&mut life.engine, ops).expect("sound");
                for (id, answer) in ids.iter().zip(answers) {
                    assert_eq!(answer.is_some(), life.engine.is_live(BlockId(*id)));
                    assert!(answer.is_none_or(|bytes| bytes == vec![*id as u8; BYTES]));
                }
            }
        }
        eprintln!("{workload:?}: shrinking {}, else {}", peaks[0], peaks[1]);
        most = [most[0].max(peaks[0]), most[1].max(peaks[1])];
    }
    most
}

#[test]
fn the_stash_stays_small_while_the_tree_shrinks() {
    for steps in [false, true] {
        let [shrinking, _] = peaks(9, 0..4, steps);
        assert!(shrinking <= STASH_BOUND / 2, "{shrinking}");
    }
}

/// The same at full size, in several lives for each workload.
#[test]
#[ignore = "long: `just shrink`"]
fn long_the_stash_stays_small_while_a_large_tree_shrinks() {
    let (seeds, first) = (scaled(20), seed(0));
    for steps in [false, true] {
        let [shrinking, _] = peaks(14, first..first + seeds, steps);
        assert!(shrinking <= STASH_BOUND / 2, "{shrinking}");
    }
}

#[derive(Clone, Debug)]
enum Event {
    Batch(Vec<(u64, bool)>),
    SizeClass(u64),
    Maintain(u64),
}

const BLOCKS: u64 = 200;

fn any_events() -> impl Strategy<Value = Vec<(Event, Vec<u64>)>> {
    let id = || prop_oneof![Just(7u64), 0..BLOCKS];
    let event = prop_oneof![
        3 => proptest::collection::vec((Just(7), any::<bool>()), 1..20).prop_map(Event::Batch),
        3 => proptest::collection::vec((id(), any::<bool>()), 1..20).prop_map(Event::Batch),
        1 => (1..=BLOCKS).prop_map(Event::SizeClass),
        1 => (0u64..40).prop_map(Event::Maintain),
    ];
    let event = (event, proptest::collection::vec(id(), 0..30));
    proptest::collection::vec(event, 1..60).prop_map(|mut events| {
        let written = events.iter().flat_map(|(event, _)| match event {
            Event::Batch(ops) => ops.clone(),
            _ => Vec::new(),
        });
        let written: BTreeSet<_> = written.filter(|op| op.1).collect();
        // A class too small for the written blocks would show in the stash's size.
        for (event, _) in &mut events {
            if let Event::SizeClass(class) = event {
                *class = written.len().max(*class as usize) as u64;
            }
        }
        events
    })
}

/// An onlooker's knowledge: counts, the size, the stored buckets and their slots.
struct Onlooker {
    steps: bool,
    shape: Shape,
    floor: Shape,
    swept: u64,
    accesses: u64,
    requests: u64,
    stored: BTreeMap<u64, usize>,
}

impl Onlooker {
    fn path(&self, leaf: Leaf) -> impl Iterator<Item = u64> + use<> {
        let depth = self.shape.depth;
        (0..=depth.0).map(move |level| leaf.bucket_at(Level(level), depth).0)
    }

    fn resize(&mut self, class: u64) {
        let before = std::mem::replace(&mut self.floor, shape_for(class, 4, 52, self.steps));
        if self.floor >= self.shape || self.kept(self.floor) < self.kept(before) {
            self.swept = 0;
        }
        self.shape = self.shape.max(self.floor);
    }

    /// Slots that leaves must keep.
    fn kept(&self, floor: Shape) -> usize {
        if floor.depth < self.shape.depth { 0 } else { floor.leaf_slots }
    }

    /// The drawn and the scheduled paths of a round.
    fn counts(&mut self, asked: u64, extra: u64) -> (u64, u64) {
        let upkeep = |requests: u64| requests * 64 / (1 << 14);
        let drawn = asked + upkeep(self.requests + asked) - upkeep(self.requests);
        self.requests += asked;
        let due = (self.accesses + drawn) / u64::from(EVERY) - self.accesses / u64::from(EVERY);
        self.accesses += drawn;
        (drawn, due + extra)
    }

    /// The buckets read and written in a round with these leaves.
    fn predict(&mut self, leaves: &[Leaf], drawn: u64) -> (Vec<u64>, Vec<u64>) {
        let all: BTreeSet<_> = leaves.iter().flat_map(|leaf| self.path(*leaf)).collect();
        let read = all.iter().filter(|&bucket| self.stored.contains_key(bucket)).copied().collect();
        let scheduled = &leaves[drawn as usize..];
        let mut written: BTreeSet<_> = scheduled.iter().flat_map(|leaf| self.path(*leaf)).collect();
        let depth = self.shape.depth;
        let mut room = self.shape.leaf_slots;
        if self.shape > self.floor {
            room = self.kept(self.floor);
            self.swept += scheduled.len() as u64;
        }
        if room == 0 {
            let pruned = written.split_off(&(1 << depth.0));
            self.stored.retain(|bucket, _| !pruned.contains(bucket));
        }
        for &bucket in &written {
            self.stored.insert(bucket, if bucket >= 1 << depth.0 { room } else { 4 });
        }
        if self.shape > self.floor && self.swept >= 1 << depth.0 {
            self.swept = 0;
            self.shape = match room {
                0 => Shape { depth: Level(depth.0 - 1), leaf_slots: 4 },
                leaf_slots => Shape { depth, leaf_slots },
            };
        }
        (read, written.into_iter().rev().collect())
    }
}

/// The trace of an event, and the lengths of the stored buckets after it.
type Shown = (Vec<MemoryEvent>, BTreeMap<u64, usize>);

fn run(events: &[(Event, Vec<u64>)], discards: bool, steps: bool) -> (TreeOram, Vec<Shown>) {
    let engine = TreeOram::new(config(BLOCKS, steps), BLOCKS, TreeKeys::from_seed(3));
    let mut engine = engine.expect("a sound config");
    let mut store = MemoryBuckets::traced();
    let mut seen = Vec::new();
    for (event, dead) in events {
        match event {
            Event::Batch(ops) => {
                let ops = ops.iter().map(|&(id, write)| op(id, write)).collect();
                store.access(&mut engine, ops).expect("sound");
            }
            Event::SizeClass(class) => engine.set_size_class(*class).expect("idle"),
            Event::Maintain(paths) => {
                let mut round = engine.begin_maintenance(*paths).expect("idle");
                carry_out(&mut round, &mut engine, &mut store).expect("sound");
            }
        }
        if discards {
            let dead: Vec<_> = dead.iter().map(|&id| BlockId(id)).collect();
            engine.discard(&dead).expect("addressable");
        }
        let lens = store.buckets.iter().map(|(bucket, bytes)| (bucket.0, bytes.len()));
        seen.push((std::mem::take(&mut store.trace), lens.collect()));
    }
    (engine, seen)
}

proptest! {
    #![proptest_config(cases(100))]

    /// Only size, counts and leaves determine the buckets read and written.
    #[test]
    fn buckets_follow_from_leaves_counts_and_size(events in any_events(), steps in any::<bool>()) {
        let (engine, seen) = run(&events, true, steps);
        let shape = shape_for(BLOCKS, 4, 52, steps);
        let mut onlooker = Onlooker {
            steps,
            shape,
            floor: shape,
            swept: 0,
            accesses: 0,
            requests: 0,
            stored: BTreeMap::new(),
        };
        for ((event, _), (seen, lens)) in events.iter().zip(seen) {
            let (asked, extra) = match event {
                Event::SizeClass(class) => {
                    onlooker.resize(*class);
                    prop_assert!(seen.is_empty());
                    continue;
                }
                Event::Batch(ops) => (ops.len() as u64, 0),
                Event::Maintain(paths) => (0, *paths),
            };
            let Some(MemoryEvent::Read(leaves, read)) = seen.first() else {
                panic!("a batch is one round that reads first");
            };
            let (drawn, scheduled) = onlooker.counts(asked, extra);
            prop_assert_eq!(leaves.len() as u64, drawn + scheduled);
            let written = match seen.get(1) {
                Some(MemoryEvent::Write(buckets)) => buckets.clone(),
                _ => Vec::new(),
            };
            let numbers = |buckets: &[BucketId]| -> Vec<u64> {
                buckets.iter().map(|bucket| bucket.0).collect()
            };
            let expected = onlooker.predict(leaves, drawn);
            prop_assert_eq!((numbers(read), numbers(&written)), expected);
            for (bucket, &slots) in &onlooker.stored {
                let geometry = engine.config().geometry();
                prop_assert_eq!(lens[bucket], geometry.bucket_bytes_with(slots));
            }
        }
    }

    /// With and without discards, the same leaves are shown, the same buckets move, and the states
    /// have the same sizes.
    #[test]
    fn discards_are_not_seen(events in any_events(), steps in any::<bool>()) {
        let (with, seen_with) = run(&events, true, steps);
        let (without, seen_without) = run(&events, false, steps);
        prop_assert_eq!(seen_with, seen_without);
        let sizes = |engine: &TreeOram| {
            let (mut state, mut delta) = (Vec::new(), Vec::new());
            engine.checkpoint(&mut state);
            engine.delta(&mut delta);
            (state.len(), delta.len())
        };
        prop_assert_eq!(sizes(&with), sizes(&without));
        prop_assert!(with.live_blocks() <= without.live_blocks());
    }
}

/// No change of size or blocks repeats a block's label. In a deep tree, few labels share a leaf by
/// chance.
#[test]
fn no_label_is_shown_twice() {
    const DEEP: u64 = 1 << 24;
    let mut engine = TreeOram::new(config(DEEP, true), 64, TreeKeys::from_seed(9)).expect("sound");
    let mut store = MemoryBuckets::traced();
    let mut dice = Dice::new(5);
    let mut shown = BTreeMap::new();
    for round in 0..3000u64 {
        let class = if round % 7 < 3 { DEEP } else { DEEP / 2 };
        engine.set_size_class(class).expect("idle");
        let ids: Vec<_> = (0..4).map(|_| dice.below(64)).collect();
        store.trace.clear();
        let ops = ids.iter().map(|&id| op(id, round % 3 == 0)).collect();
        store.access(&mut engine, ops).expect("sound");
        let Some(MemoryEvent::Read(leaves, _)) = store.trace.first() else { panic!("it reads") };
        let depth = engine.depth().0;
        for (id, leaf) in ids.iter().zip(leaves) {
            *shown.entry((*id, leaf.0 >> (depth - 20))).or_insert(0) += 1;
        }
        engine.discard(&[BlockId(dice.below(64)), BlockId(dice.below(64))]).expect("idle");
        engine.committed();
    }
    // 64 blocks with 190 labels each, compared by 20 bits: one repeat by chance.
    let repeats: u64 = shown.values().map(|times| times - 1).sum();
    assert!(repeats < 12, "{repeats} labels came again");
}
