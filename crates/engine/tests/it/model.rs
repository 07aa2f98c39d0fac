//! The tree in every configuration against a plain map, under random operations.

use crate::cases;
use crate::plain::{BYTES, Plain, any_op, read};
use oblivio_engine::memory::{Batches, MemoryBuckets};
use oblivio_engine::tree::{
    Eviction, Lacking, MapFormat, TreeConfig, TreeKeys, TreeOram, Verifier,
};
use oblivio_engine::{BlockId, BlockOp, carry_out};
use proptest::prelude::*;

const BLOCKS: u64 = 200;

#[derive(Clone, Debug)]
enum Event {
    Batch(Vec<BlockOp>),
    Flush,
    Grow(u64),
    Discard(Vec<u64>),
    SizeClass(u64),
    Maintain(u64),
    ExpectFlush(u64),
    Commit,
    Crash,
}

fn any_events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        8 => proptest::collection::vec(any_op(BLOCKS), 1..12).prop_map(Event::Batch),
        1 => Just(Event::Flush),
        1 => (1..=BLOCKS).prop_map(Event::Grow),
        2 => prop_oneof![0..8u64, 0..BLOCKS].prop_flat_map(|first| {
            (first + 1..=BLOCKS).prop_map(move |end| Event::Discard((first..end).collect()))
        }),
        2 => (0..=BLOCKS).prop_map(Event::SizeClass),
        2 => (0u64..40).prop_map(Event::Maintain),
        1 => prop_oneof![Just(0), Just(4), Just(40), Just(u64::MAX)].prop_map(Event::ExpectFlush),
        2 => Just(Event::Commit),
        1 => Just(Event::Crash),
    ];
    proptest::collection::vec(event, 1..80)
}

fn check_batch(
    engine: &mut TreeOram,
    store: &mut MemoryBuckets,
    model: &mut Plain,
    ops: &[BlockOp],
) {
    let capacity = engine.blocks();
    let ops: Vec<_> = ops.iter().filter(|op| op.id.0 < capacity).cloned().collect();
    let expected: Vec<_> = ops.iter().map(|op| model.serve(op)).collect();
    let answers = store.access(engine, ops).expect("nothing was tampered with");
    assert_eq!(answers, expected);
}

fn flush(engine: &mut TreeOram, store: &mut MemoryBuckets) {
    let mut flush = engine.begin_flush().expect("idle");
    carry_out(&mut flush, engine, store).expect("nothing was tampered with");
}

/// A tree engine, its store, the model, and all three as of the last commit.
struct Run {
    config: TreeConfig,
    engine: TreeOram,
    store: MemoryBuckets,
    model: Plain,
    /// The checkpoint and its deltas.
    states: Vec<Vec<u8>>,
    committed: (MemoryBuckets, Plain),
}

impl Run {
    fn new(config: TreeConfig) -> Self {
        let (engine, store) = (tree(config), MemoryBuckets::default());
        let committed = (store.clone(), Plain::default());
        Self { config, engine, store, model: Plain::default(), states: Vec::new(), committed }
    }

    fn apply(&mut self, event: &Event) {
        let engine = &mut self.engine;
        match event {
            Event::Batch(ops) => check_batch(engine, &mut self.store, &mut self.model, ops),
            Event::Flush => flush(engine, &mut self.store),
            Event::Grow(blocks) => engine.grow(*blocks).expect("within the capacity"),
            Event::Discard(ids) => {
                let ids = ids.iter().filter(|&&id| id < engine.capacity());
                let ids: Vec<_> = ids.map(|&id| BlockId(id)).collect();
                engine.discard(&ids).expect("addressable");
                ids.iter().for_each(|id| drop(self.model.0.remove(&id.0)));
            }
            Event::SizeClass(blocks) => {
                let class = (*blocks).max(engine.live_blocks()).max(1);
                engine.set_size_class(class).expect("within the capacity");
            }
            Event::Maintain(paths) => {
                let mut round = engine.begin_maintenance(*paths).expect("idle");
                carry_out(&mut round, engine, &mut self.store).expect("nothing was tampered with");
            }
            Event::ExpectFlush(evictions) => {
                flush(engine, &mut self.store);
                engine.expect_flush_after(*evictions).expect("flushed");
            }
            Event::Commit => self.commit(),
            Event::Crash => self.crash(),
        }
        assert_eq!(self.engine.live_blocks(), self.model.0.len() as u64);
    }

    /// A checkpoint at every fourth commit, else a delta.
    fn commit(&mut self) {
        flush(&mut self.engine, &mut self.store);
        for bucket in self.engine.dropped() {
            self.store.buckets.remove(&(bucket));
        }
        let mut state = Vec::new();
        if self.states.len().is_multiple_of(4) {
            self.states.clear();
            self.engine.checkpoint(&mut state);
        } else {
            self.engine.delta(&mut state);
        }
        self.states.push(state);
        self.engine.committed();
        self.committed = (self.store.clone(), self.model.clone());
        self.verify();
    }

    /// Every stored bucket matches the state, and there are no others.
    fn verify(&mut self) {
        if !self.config.tag_tree {
            return;
        }
        let mut verifier = Verifier::new(&mut self.engine);
        for (bucket, bytes) in &self.store.buckets {
            assert_eq!(verifier.check(*bucket, &mut bytes.clone()).expect("not strict"), None);
        }
        assert_eq!(verifier.finish(), Lacking::default());
    }

    fn crash(&mut self) {
        let Some((checkpoint, deltas)) = self.states.split_first() else { return };
        self.engine = tree(self.config);
        self.engine.restore(checkpoint).expect("what was written");
        for delta in deltas {
            self.engine.apply_delta(delta).expect("what was written");
        }
        (self.store, self.model) = self.committed.clone();
    }
}

fn tree(config: TreeConfig) -> TreeOram {
    TreeOram::new(config, 8, TreeKeys::from_seed(5)).expect("a sound config")
}

/// Every option that changes the engine's behaviour.
fn any_config() -> impl Strategy<Value = TreeConfig> {
    let eviction = prop_oneof![
        Just(Eviction::ReadPaths { extra_every: 0 }),
        Just(Eviction::ReadPaths { extra_every: 2 }),
        (1u32..4).prop_map(|every| Eviction::Scheduled { every }),
    ];
    let map = prop_oneof![
        Just(MapFormat::Flat { bytes: 4 }),
        Just(MapFormat::Flat { bytes: 8 }),
        (1u32..=4).prop_map(|individual_bits| MapFormat::Compressed { individual_bits }),
        Just(MapFormat::Compressed { individual_bits: 14 }),
    ];
    let on_chip = prop_oneof![Just(usize::MAX), Just(128usize), Just(0)];
    let cache = prop_oneof![Just(0usize), Just(3000), Just(1 << 20)];
    (eviction, map, on_chip, cache, any::<[bool; 3]>(), 1usize..3, 3usize..6).prop_map(
        |(eviction, map_format, on_chip_bytes, cache_bytes, [pmmac, tag_tree, steps], ways, z)| {
            TreeConfig {
                eviction,
                map_format,
                on_chip_bytes,
                cache_bytes,
                plb_bytes: 4 * BYTES,
                plb_ways: ways,
                tag_tree,
                pmmac,
                blocks_per_bucket: z,
                leaf_steps: steps && z <= 4,
                fill_percent: 40,
                ..TreeConfig::new(BYTES, BLOCKS)
            }
        },
    )
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn tree_answers_like_a_plain_map(config in any_config(), events in any_events()) {
        let mut run = Run::new(config);
        events.iter().for_each(|event| run.apply(event));
        run.apply(&Event::Commit);
        run.apply(&Event::Crash);
        run.apply(&Event::Batch((0..BLOCKS).map(read).collect()));
    }
}

proptest! {
    #![proptest_config(cases(96))]

    /// A session that crashes and replays its intents shows the same paths again, whatever it had
    /// discarded, and answers as of the last commit.
    #[test]
    fn a_crash_replays_the_same_paths(
        config in any_config(),
        before in proptest::collection::vec(proptest::collection::vec(any_op(BLOCKS), 1..8), 0..12),
        class in BLOCKS / 8..=BLOCKS,
        lost in proptest::collection::vec(
            (proptest::collection::vec(any_op(BLOCKS), 1..8), 0..BLOCKS, proptest::option::of(0u64..20)),
            1..8,
        ),
    ) {
        let mut engine = tree(config);
        engine.grow(BLOCKS).expect("within the capacity");
        engine.set_size_class(BLOCKS).expect("within the capacity");
        let mut store = MemoryBuckets::traced();
        let mut model = Plain::default();
        for ops in &before {
            for op in ops {
                model.serve(op);
            }
            store.access(&mut engine, ops.clone()).expect("sound");
        }
        // From here on it probably shrinks.
        engine.set_size_class(class).expect("idle");
        flush(&mut engine, &mut store);
        let mut state = Vec::new();
        engine.checkpoint(&mut state);
        let mut committed = store.clone();
        store.trace.clear();
        let mut intents = Vec::new();
        for (ops, dead, maintenance) in &lost {
            engine.discard(&[BlockId(*dead)]).expect("idle");
            if let Some(paths) = maintenance {
                let mut round = engine.begin_maintenance(*paths).expect("idle");
                intents.push(round.intent().clone());
                carry_out(&mut round, &mut engine, &mut store).expect("sound");
            }
            let mut batch = engine.begin_batch(ops.clone()).expect("idle");
            intents.push(batch.intent().clone());
            carry_out(&mut batch, &mut engine, &mut store).expect("sound");
        }
        // The crash: a new engine on the committed buckets.
        let mut again = tree(config);
        again.restore(&state).expect("what was written");
        let mut same = Vec::new();
        again.checkpoint(&mut same);
        prop_assert_eq!(same, state);
        committed.trace.clear();
        for intent in &intents {
            let mut batch = again.begin_replay(intent).expect("idle");
            carry_out(&mut batch, &mut again, &mut committed).expect("sound");
        }
        let leaves = |trace: &[oblivio_engine::memory::MemoryEvent]| -> Vec<oblivio_engine::Leaf> {
            trace.iter().flat_map(|seen| match seen {
                oblivio_engine::memory::MemoryEvent::Read(leaves, _) => leaves.clone(),
                _ => Vec::new(),
            }).collect()
        };
        prop_assert_eq!(leaves(&committed.trace), leaves(&store.trace));
        let ops: Vec<BlockOp> = (0..BLOCKS).map(read).collect();
        let expected: Vec<_> = ops.iter().map(|op| model.serve(op)).collect();
        prop_assert_eq!(committed.access(&mut again, ops).expect("sound"), expected);
    }
}
