//! The top of the tree in a log: commits without a flush lose nothing, whenever a crash comes, and
//! what is appended follows from the number of accesses alone.

use crate::seeds;
use oblivio_engine::memory::MemoryBuckets;
use oblivio_engine::tree::{
    Eviction, FoundTop, LOG_ENTRIES, MapFormat, STASH_BOUND, TopControl, TopRule, TopView,
    TreeConfig, TreeKeys, TreeOram, buckets_in,
};
use oblivio_engine::{Action, BlockId, BlockOp, BucketId, EngineError, Level, carry_out};
use oblivio_splitmix::SplitMix64;
use std::collections::BTreeMap;

const BYTES: usize = 64;
const BLOCKS: u64 = 1 << 10;
/// The buckets of the top: six levels of nine.
const TOP: TopRule = TopRule { buckets: 63, span: 260, places: 400 };

fn config() -> TreeConfig {
    TreeConfig {
        leaf_steps: true,
        eviction: Eviction::Scheduled { every: 3 },
        cache_bytes: 1 << 20,
        // No accesses beyond the requested ones.
        map_format: MapFormat::Flat { bytes: 8 },
        ..TreeConfig::new(BYTES, BLOCKS)
    }
}

fn write(id: u64, value: u64) -> BlockOp {
    let mut data = vec![0; BYTES];
    data[..8].copy_from_slice(&value.to_le_bytes());
    BlockOp { id: BlockId(id), action: Action::Write(data) }
}

/// The engine with its store, its commits, and what each block holds.
struct Life {
    engine: TreeOram,
    store: MemoryBuckets,
    model: BTreeMap<u64, u64>,
    /// The state of the last checkpoint, and the deltas since.
    states: Vec<Vec<u8>>,
    /// What a crash leaves: buckets are never written over before a commit.
    durable: (BTreeMap<BucketId, Vec<u8>>, BTreeMap<u64, u64>),
    value: u64,
}

impl Life {
    fn new() -> Self {
        let engine = TreeOram::new(config(), BLOCKS, TreeKeys::from_seed(1)).expect("sound");
        let store = MemoryBuckets::default();
        let (model, states) = (BTreeMap::new(), Vec::new());
        let durable = (BTreeMap::new(), BTreeMap::new());
        let mut life = Self { engine, store, model, states, durable, value: 0 };
        for id in 0..BLOCKS {
            life.put(id);
        }
        life.flush();
        life.checkpoint();
        life
    }

    fn access(&mut self, ops: Vec<BlockOp>) -> Vec<Option<Vec<u8>>> {
        self.store.access(&mut self.engine, ops).expect("nothing was tampered with")
    }

    fn put(&mut self, id: u64) {
        self.value += 1;
        let value = self.value;
        self.access(vec![write(id, value)]);
        self.model.insert(id, value);
    }

    fn check(&mut self, id: u64) {
        let answer = self.access(vec![BlockOp { id: BlockId(id), action: Action::Read }]).remove(0);
        let answer =
            answer.map(|data| u64::from_le_bytes(data[..8].try_into().expect("eight bytes")));
        assert_eq!(answer, self.model.get(&id).copied(), "block {id}");
    }

    fn remove(&mut self, id: u64) {
        self.engine.discard(&[BlockId(id)]).expect("addressable");
        self.model.remove(&id);
    }

    fn flush(&mut self) {
        let mut flush = self.engine.begin_flush().expect("idle");
        carry_out(&mut flush, &mut self.engine, &mut self.store).expect("memory");
    }

    fn checkpoint(&mut self) {
        let mut state = Vec::new();
        self.engine.checkpoint(&mut state);
        self.states = vec![state];
        self.committed();
    }

    fn commit(&mut self) {
        let mut delta = Vec::new();
        self.engine.delta(&mut delta);
        self.states.push(delta);
        self.committed();
    }

    fn committed(&mut self) {
        self.engine.committed();
        self.durable = (self.store.buckets.clone(), self.model.clone());
        if let Some((rule, entries)) = TopView::of(&self.engine).rule() {
            assert!(entries.end - entries.start <= rule.span, "all within the span");
        }
    }

    /// All that was not committed is gone, but for entries that were appended since.
    fn crash(&mut self) {
        let after = TopView::of(&self.engine).rule().map_or(0, |(_, entries)| entries.end);
        let engine = TreeOram::new(config(), BLOCKS, TreeKeys::from_seed(1)).expect("sound");
        self.engine = engine;
        self.engine.restore(&self.states[0]).expect("its own state");
        for delta in &self.states[1..] {
            self.engine.apply_delta(delta).expect("its own delta");
        }
        let (buckets, model) = self.durable.clone();
        let appended = std::mem::replace(&mut self.store.buckets, buckets);
        let is_entry = |(bucket, _): &(BucketId, Vec<u8>)| bucket.0 > LOG_ENTRIES;
        self.store.buckets.extend(appended.into_iter().filter(is_entry));
        self.model = model;
        if let Some(mut found) = TopControl::of(&mut self.engine).find().expect("its own index") {
            assert!(found.entries().end <= after);
            for bucket in found.buckets() {
                let mut sealed = self.store.buckets[&bucket].clone();
                let mut top = TopControl::of(&mut self.engine);
                assert!(top.take_bucket(&mut found, bucket, &mut sealed), "{bucket:?}");
            }
            for number in found.entries() {
                let mut sealed = self.store.buckets[&BucketId(LOG_ENTRIES + number)].clone();
                assert!(
                    TopControl::of(&mut self.engine).take(&mut found, number, &mut sealed),
                    "{number}"
                );
            }
            TopControl::of(&mut self.engine).end_reading(found);
        }
    }

    /// The engine of the first two states, whose top is to be read.
    fn reopened(&self) -> (TreeOram, FoundTop) {
        let mut engine = TreeOram::new(config(), BLOCKS, TreeKeys::from_seed(1)).expect("sound");
        engine.restore(&self.states[0]).expect("its own state");
        engine.apply_delta(&self.states[1]).expect("its own delta");
        let found = TopControl::of(&mut engine).find().expect("its own index").expect("a log");
        (engine, found)
    }

    /// How many blocks another engine lost. The others are as they should be.
    fn lost_in(&mut self, engine: &mut TreeOram) -> u64 {
        let mut lost = 0;
        for (&id, &value) in &self.model {
            let ops = vec![BlockOp { id: BlockId(id), action: Action::Read }];
            match self.store.access(engine, ops) {
                Ok(answer) => {
                    assert_eq!(answer[0].as_ref().expect("it is live")[..8], value.to_le_bytes());
                }
                Err(error) => {
                    assert!(matches!(error, EngineError::Lost(_)), "{error}");
                    lost += 1;
                }
            }
        }
        lost
    }

    fn check_all(&mut self) {
        for id in 0..BLOCKS {
            self.check(id);
        }
        assert_eq!(self.engine.live_blocks(), self.model.len() as u64);
    }
}

/// Reads, writes and discards at random, commits with and without a flush, and crashes.
#[test]
fn nothing_committed_is_lost_whenever_a_crash_comes() {
    let mut crashes = 0;
    for seed in seeds(6) {
        let mut rng = SplitMix64::new(seed);
        let mut life = Life::new();
        TopControl::of(&mut life.engine).begin(TOP).expect("flushed");
        for _ in 0..1500 {
            let id = rng.below(BLOCKS);
            match rng.below(100) {
                0..40 => life.put(id),
                40..80 => life.check(id),
                80..92 => life.remove(id),
                92..97 if TopView::of(&life.engine).rule().is_none() => {
                    life.flush();
                    life.commit();
                    TopControl::of(&mut life.engine).begin(TOP).expect("flushed");
                }
                92..97 => life.commit(),
                97 => {
                    life.crash();
                    crashes += 1;
                }
                98 => {
                    life.flush();
                    TopControl::of(&mut life.engine).end().expect("flushed");
                    life.commit();
                }
                _ => {
                    if TopView::of(&life.engine).rule().is_none() {
                        life.flush();
                    }
                    life.checkpoint();
                }
            }
        }
        life.crash();
        life.check_all();
        life.flush();
        TopControl::of(&mut life.engine).end().expect("flushed");
        life.checkpoint();
        life.crash();
        life.check_all();
    }
    assert!(crashes > 0);
}

/// An entry for each access, and one more for every four: as many for any accesses, at any time.
#[test]
fn what_is_appended_follows_from_the_number_of_accesses() {
    let appended = |load: &dyn Fn(u64, &mut SplitMix64) -> (u64, bool)| {
        let mut rng = SplitMix64::new(5);
        let mut life = Life::new();
        TopControl::of(&mut life.engine).begin(TOP).expect("flushed");
        let mut counts = Vec::new();
        for at in 0..6000 {
            let before = life.engine.meters().entries_written;
            match load(at, &mut rng) {
                (id, true) => life.put(id % BLOCKS),
                (id, false) => life.check(id % BLOCKS),
            }
            counts.push(life.engine.meters().entries_written - before);
            if at % 50 == 49 {
                life.commit();
            }
        }
        let (rule, entries) = TopView::of(&life.engine).rule().expect("it is kept");
        assert!(entries.end - entries.start <= rule.span);
        counts
    };
    let uniform = appended(&|_, rng| (rng.below(BLOCKS), false));
    let all: u64 = uniform.iter().sum();
    assert_eq!(all, 6000 * 5 / 4 + STASH_BOUND as u64);
    for (name, load) in [
        (
            "one block",
            &(|_, _: &mut SplitMix64| (7u64, true)) as &dyn Fn(u64, &mut SplitMix64) -> (u64, bool),
        ),
        ("in turn", &|at, _: &mut SplitMix64| (at, at % 2 == 0)),
        ("a few", &|at, _: &mut SplitMix64| (at % 40, true)),
        ("written", &|_, rng: &mut SplitMix64| (rng.below(BLOCKS), true)),
    ] {
        assert!(appended(load) == uniform, "{name}");
    }
}

/// Entries beyond those that are due, in a tree of so many blocks with two levels below the top:
/// blocks are read in turn, or in turn and then the first few of them.
fn beyond_due(blocks: u64, few: u64) -> u64 {
    let config = TreeConfig { capacity: 2 * blocks, cache_bytes: 64 << 20, ..config() };
    let mut engine = TreeOram::new(config, blocks, TreeKeys::from_seed(1)).expect("sound");
    let mut store = MemoryBuckets::default();
    for id in 0..blocks {
        store.access(&mut engine, vec![write(id, 1)]).expect("room");
    }
    let mut flush = engine.begin_flush().expect("idle");
    carry_out(&mut flush, &mut engine, &mut store).expect("memory");
    let buckets = buckets_in(Level(engine.depth().0 - 2));
    let rule = TopRule { buckets, span: TopRule::span_of(buckets), places: 1 << 30 };
    TopControl::of(&mut engine).begin(rule).expect("flushed");
    let accesses = 6 * blocks;
    for at in 0..accesses {
        let id = if (at / blocks).is_multiple_of(2) { at % blocks } else { at % few };
        let read = BlockOp { id: BlockId(id), action: Action::Read };
        store.access(&mut engine, vec![read]).expect("memory");
    }
    engine.meters().entries_written - accesses * 5 / 4 - STASH_BOUND as u64
}

fn expect_none_beyond_due(base: u64) {
    // Leaves of one slot, and of two.
    for blocks in [base * 5 / 4, base * 3 / 2] {
        for few in [1, blocks / 2, blocks] {
            assert_eq!(beyond_due(blocks, few), 0, "{blocks} blocks, then {few} of them");
        }
    }
}

#[test]
fn a_span_of_five_entries_a_bucket_is_enough() {
    // Smaller trees have a span that is mostly the stash's.
    expect_none_beyond_due(1 << 11);
}

#[test]
#[ignore = "long: `just top-log`"]
fn long_a_span_of_five_entries_a_bucket_is_enough() {
    (12..=15).for_each(|log| expect_none_beyond_due(1 << log));
}

/// A damaged entry costs its block, and nothing else; an older one in its place is damage too.
#[test]
fn a_damaged_entry_costs_one_block() {
    for old in [false, true] {
        let mut life = Life::new();
        TopControl::of(&mut life.engine).begin(TOP).expect("flushed");
        for at in 0..500 {
            life.put(at * 37 % BLOCKS);
        }
        life.commit();
        let (_, entries) = TopView::of(&life.engine).rule().expect("it is kept");
        let (mut engine, mut found) = life.reopened();
        for bucket in found.buckets() {
            let mut sealed = life.store.buckets[&bucket].clone();
            assert!(TopControl::of(&mut engine).take_bucket(&mut found, bucket, &mut sealed));
        }
        let mut bad = 0;
        for number in entries {
            let at = if old && number % 3 == 0 { number - 1 } else { number };
            let mut sealed = life.store.buckets[&BucketId(LOG_ENTRIES + at)].clone();
            if !old && number % 3 == 0 {
                sealed[number as usize % 40] ^= 4;
            }
            bad += u64::from(!TopControl::of(&mut engine).take(&mut found, number, &mut sealed));
        }
        assert!(bad > 10, "some were needed");
        TopControl::of(&mut engine).end_reading(found);
        assert!(engine.take_damage());
        let lost = life.lost_in(&mut engine);
        // One in the stash has its content in the state as well.
        assert!(lost <= bad && lost + 3 >= bad, "{lost} of {bad}");
    }
}

/// A damaged bucket costs the blocks that had their home in it, wherever they are now.
#[test]
fn a_damaged_home_costs_its_blocks() {
    let mut life = Life::new();
    TopControl::of(&mut life.engine).begin(TOP).expect("flushed");
    for at in 0..60 {
        life.put(at * 37 % BLOCKS);
    }
    life.commit();
    let (mut engine, mut found) = life.reopened();
    let buckets = found.buckets();
    assert!(buckets.len() > 10);
    for (at, bucket) in buckets.into_iter().enumerate() {
        let mut sealed = life.store.buckets[&bucket].clone();
        sealed[30] ^= u8::from(at % 2 == 0);
        let whole = TopControl::of(&mut engine).take_bucket(&mut found, bucket, &mut sealed);
        assert_eq!(whole, at % 2 == 1);
    }
    for number in found.entries() {
        let mut sealed = life.store.buckets[&BucketId(LOG_ENTRIES + number)].clone();
        assert!(TopControl::of(&mut engine).take(&mut found, number, &mut sealed));
    }
    TopControl::of(&mut engine).end_reading(found);
    assert!(engine.take_damage());
    let lost = life.lost_in(&mut engine);
    assert!(lost > 5, "{lost}");
}
