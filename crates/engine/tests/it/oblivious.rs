//! The trace as data: reads and writes follow from the shown leaves and from public numbers alone.
//! And the tags detect every change.

use crate::cases;
use oblivio_engine::memory::{MemoryBuckets, MemoryEvent};
use oblivio_engine::tree::{Eviction, TreeConfig, TreeKeys, TreeOram};
use oblivio_engine::{Action, BlockId, BlockOp, BucketId, EngineError, Leaf, Level, carry_out};
use proptest::prelude::*;
use std::collections::BTreeSet;

const BLOCKS: u64 = 300;
const BYTES: usize = 64;

fn config(eviction: Eviction, cache_bytes: usize) -> TreeConfig {
    TreeConfig { eviction, cache_bytes, ..TreeConfig::new(BYTES, BLOCKS) }
}

fn engine(config: TreeConfig) -> TreeOram {
    TreeOram::new(config, BLOCKS, TreeKeys::from_seed(3)).expect("a sound config")
}

fn any_eviction() -> impl Strategy<Value = Eviction> {
    prop_oneof![
        Just(Eviction::ReadPaths { extra_every: 0 }),
        Just(Eviction::ReadPaths { extra_every: 3 }),
        (1u32..5).prop_map(|every| Eviction::Scheduled { every }),
    ]
}

fn any_op() -> impl Strategy<Value = BlockOp> {
    let action = prop_oneof![
        Just(Action::Read),
        Just(Action::Remove),
        any::<u8>().prop_map(|fill| Action::Write(vec![fill; BYTES])),
    ];
    // One block again and again, or any.
    let id = prop_oneof![Just(7), 0..BLOCKS];
    (id, action).prop_map(|(id, action)| BlockOp { id: BlockId(id), action })
}

/// An onlooker's prediction from the leaves alone.
struct Onlooker {
    depth: Level,
    rewrites_reads: bool,
    every: u64,
    cached: u64,
    stored: BTreeSet<BucketId>,
    loaded: BTreeSet<BucketId>,
    accesses: u64,
}

impl Onlooker {
    fn path(&self, leaf: Leaf) -> impl Iterator<Item = BucketId> + use<> {
        let depth = self.depth;
        (0..=depth.0).map(move |level| leaf.bucket_at(Level(level), depth))
    }

    /// The buckets read and written in a round that shows these leaves, `drawn` of them drawn and
    /// the others scheduled.
    fn predict(&mut self, leaves: &[Leaf], drawn: u64) -> (Vec<BucketId>, Vec<BucketId>) {
        let before = self.accesses;
        self.accesses += drawn;
        let due = self.accesses.checked_div(self.every).unwrap_or(0)
            - before.checked_div(self.every).unwrap_or(0);
        assert_eq!(leaves.len() as u64, drawn + due, "no path more, none less");
        let all: BTreeSet<_> = leaves.iter().flat_map(|leaf| self.path(*leaf)).collect();
        let rewritten = if self.rewrites_reads { 0 } else { drawn as usize };
        let written: BTreeSet<_> =
            leaves[rewritten..].iter().flat_map(|leaf| self.path(*leaf)).collect();
        let (cached, loaded) = (self.cached, &self.loaded);
        let read = all.iter().filter(|b| self.stored.contains(b) && !loaded.contains(b));
        let read: Vec<_> = read.copied().collect();
        self.loaded.extend(all.iter().filter(|bucket| bucket.0 <= cached));
        let written: Vec<_> = written.into_iter().filter(|b| b.0 > cached).rev().collect();
        self.stored.extend(&written);
        (read, written)
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn buckets_follow_from_leaves_and_counts(
        eviction in any_eviction(),
        cache_bytes in prop_oneof![Just(0usize), Just(5000), Just(20_000)],
        batches in proptest::collection::vec(proptest::collection::vec(any_op(), 1..9), 1..40),
    ) {
        let config = config(eviction, cache_bytes);
        let mut engine = engine(config);
        let mut store = MemoryBuckets::traced();
        let (rewrites_reads, every) = match eviction {
            Eviction::ReadPaths { extra_every } => (true, extra_every),
            Eviction::Scheduled { every } => (false, every),
            Eviction::Windows(_) => unreachable!("none is drawn"),
        };
        let mut onlooker = Onlooker {
            depth: engine.depth(),
            rewrites_reads,
            every: every.into(),
            cached: engine.cached_buckets(),
            stored: BTreeSet::new(),
            loaded: BTreeSet::new(),
            accesses: 0,
        };
        let mut requests = 0;
        for ops in batches {
            let asked = ops.len() as u64;
            // Group remaps have a public schedule: 64 paths per 2^14 requests.
            let upkeep = (requests + asked) * 64 / (1 << 14) - requests * 64 / (1 << 14);
            requests += asked;
            store.trace.clear();
            store.access(&mut engine, ops).expect("nothing was tampered with");
            let Some(MemoryEvent::Read(leaves, read)) = store.trace.first() else {
                panic!("a batch is one round that reads first");
            };
            let expected = onlooker.predict(leaves, asked + upkeep);
            let written = match store.trace.get(1) {
                Some(MemoryEvent::Write(buckets)) => buckets.clone(),
                _ => Vec::new(),
            };
            prop_assert_eq!((read.clone(), written), expected);
            prop_assert!(store.trace.len() <= 2);
        }
    }

    /// A change of any bit of a bucket on the path, and any older version, is detected at once.
    #[test]
    fn the_tag_tree_finds_damage_at_once(
        eviction in any_eviction(),
        victim in any::<prop::sample::Index>(),
        byte in any::<prop::sample::Index>(),
        old_version in any::<bool>(),
    ) {
        let mut engine = engine(config(eviction, 0));
        let mut store = MemoryBuckets::default();
        let write = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![id as u8; BYTES]) };
        store.access(&mut engine, (0..BLOCKS).map(write).collect()).expect("sound");
        let older = store.buckets.clone();
        store.access(&mut engine, (0..BLOCKS).map(write).collect()).expect("sound");
        let names: Vec<_> = store.buckets.keys().copied().collect();
        let name = *victim.get(&names);
        let bytes = store.buckets.get_mut(&name).expect("it is there");
        if old_version && older.get(&name).is_some_and(|old| old != bytes) {
            bytes.clone_from(&older[&name]);
        } else {
            let at = byte.index(bytes.len());
            bytes[at] ^= 1;
        }
        let mut noticed = false;
        // Until a path leads there. Each round misses a bucket with small probability.
        for id in (0..BLOCKS).cycle().take(50 * BLOCKS as usize) {
            store.keep_trace = true;
            store.trace.clear();
            let read = BlockOp { id: BlockId(id), action: Action::Read };
            let result = store.access(&mut engine, vec![read]);
            let on_path = store.trace.iter().any(|seen| match seen {
                MemoryEvent::Read(_, buckets) => buckets.contains(&name),
                MemoryEvent::Write(..) => false,
            });
            match result {
                Ok(answers) => prop_assert_eq!(answers, vec![Some(vec![id as u8; BYTES])]),
                Err(error) => prop_assert!(on_path && matches!(error, EngineError::Lost(_))),
            }
            noticed = engine.take_damage();
            prop_assert_eq!(noticed, on_path, "a damaged bucket is noticed when it is read");
            if noticed {
                break;
            }
        }
        prop_assert!(noticed, "everything was read and nothing noticed");
    }
}

/// PMMAC alone detects damage to a wanted block, and a dropped bucket.
#[test]
fn pmmac_finds_what_is_wanted() {
    let config = TreeConfig {
        pmmac: true,
        tag_tree: false,
        cache_bytes: 0,
        ..TreeConfig::new(BYTES, BLOCKS)
    };
    let mut engine = engine(config);
    let mut store = MemoryBuckets::default();
    let write =
        |fill: u8| move |id| BlockOp { id: BlockId(id), action: Action::Write(vec![fill; BYTES]) };
    store.access(&mut engine, (0..BLOCKS).map(write(1)).collect()).expect("sound");
    let older = store.buckets.clone();
    store.access(&mut engine, (0..BLOCKS).map(write(2)).collect()).expect("sound");
    // Roll back the whole store: every bucket opens, and every block is old.
    store.buckets = older;
    let mut refused = 0;
    for id in 0..BLOCKS {
        let read = BlockOp { id: BlockId(id), action: Action::Read };
        match store.access(&mut engine, vec![read]) {
            // Only blocks in the stash are still right.
            Ok(answers) => assert_eq!(answers, vec![Some(vec![2; BYTES])]),
            Err(error) => {
                assert!(matches!(error, EngineError::TamperedBlock(found) if found.0 == id));
                refused += 1;
                break;
            }
        }
    }
    assert_eq!(refused, 1);
}

/// The engine's stored state has the same size after any operations. A delta's size follows from
/// the numbers of requests, paths and written buckets.
#[test]
fn the_size_of_the_state_tells_nothing() {
    let run = |ids: &dyn Fn(u64) -> u64| {
        let mut engine = engine(config(Eviction::Scheduled { every: 3 }, 5000));
        let mut store = MemoryBuckets::traced();
        for n in 0..200 {
            let action = Action::Write(vec![n as u8; BYTES]);
            store
                .access(&mut engine, vec![BlockOp { id: BlockId(ids(n)), action }])
                .expect("sound");
        }
        let mut flush = engine.begin_flush().expect("idle");
        carry_out(&mut flush, &mut engine, &mut store).expect("sound");
        let (mut state, mut delta) = (Vec::new(), Vec::new());
        engine.checkpoint(&mut state);
        engine.delta(&mut delta);
        let written: BTreeSet<_> = store.buckets.keys().collect();
        (state.len(), delta.len() - 16 * written.len())
    };
    let one_block = run(&|_| 5);
    assert_eq!(one_block, run(&|n| n));
    assert_eq!(one_block, run(&|n| n * n % BLOCKS));
}
