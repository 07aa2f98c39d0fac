//! Damaged buckets: what they carried is lost, all else is answered as ever, and the store sees the
//! same as without damage.

use crate::cases;
use crate::plain::{BYTES, Plain, any_op, read};
use oblivio_engine::memory::{Batches, MemoryBuckets};
use oblivio_engine::tree::{
    Eviction, Lacking, MapFormat, TreeConfig, TreeKeys, TreeOram, Verifier, current_labels,
};
use oblivio_engine::{
    Action, BlockId, BlockOp, BlockOutcome, BucketId, EngineError, Lost, carry_out,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

const BLOCKS: u64 = 200;

/// What is done to a stored bucket.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Flip(usize),
    Zeros,
    /// It is put back as it was at the commit before.
    Old,
    /// It changes places with the next one.
    Swap,
}

fn any_harms() -> impl Strategy<Value = Vec<(prop::sample::Index, Harm)>> {
    let harm = prop_oneof![
        4 => any::<usize>().prop_map(Harm::Flip),
        1 => Just(Harm::Zeros),
        4 => Just(Harm::Old),
        1 => Just(Harm::Swap),
    ];
    proptest::collection::vec((any::<prop::sample::Index>(), harm), 1..8)
}

fn any_batches(most: usize) -> impl Strategy<Value = Vec<Vec<BlockOp>>> {
    proptest::collection::vec(proptest::collection::vec(any_op(BLOCKS), 1..12), 1..most)
}

fn any_config() -> impl Strategy<Value = TreeConfig> {
    let map = prop_oneof![
        Just(MapFormat::Flat { bytes: 8 }),
        (1u32..=4).prop_map(|individual_bits| MapFormat::Compressed { individual_bits }),
        Just(MapFormat::Compressed { individual_bits: 14 }),
    ];
    let cache = prop_oneof![Just(0usize), Just(3000), Just(1 << 20)];
    let on_chip = prop_oneof![4 => Just(usize::MAX), 1 => Just(128usize)];
    let eviction = prop_oneof![
        Just(Eviction::ReadPaths { extra_every: 2 }),
        (1u32..4).prop_map(|every| Eviction::Scheduled { every }),
    ];
    (map, cache, on_chip, eviction, any::<bool>(), 3usize..6).prop_map(
        |(map_format, cache_bytes, on_chip_bytes, eviction, steps, blocks_per_bucket)| TreeConfig {
            map_format,
            eviction,
            cache_bytes,
            on_chip_bytes,
            plb_bytes: 4 * BYTES,
            blocks_per_bucket,
            leaf_steps: steps && blocks_per_bucket <= 4,
            fill_percent: 40,
            ..TreeConfig::new(BYTES, BLOCKS)
        },
    )
}

/// An engine and its store.
struct Run {
    config: TreeConfig,
    engine: TreeOram,
    store: MemoryBuckets,
}

impl Run {
    fn new(config: TreeConfig) -> Self {
        Self { config, engine: tree(config), store: MemoryBuckets::default() }
    }

    fn serve(&mut self, ops: &[BlockOp]) -> Result<Vec<BlockOutcome>, EngineError> {
        let mut batch = self.engine.begin_batch(ops.to_vec())?;
        carry_out(&mut batch, &mut self.engine, &mut self.store)?;
        Ok(batch.into_outcomes())
    }

    /// Another one, at the same state.
    fn copy(&mut self) -> Self {
        let mut engine = tree(self.config);
        engine.restore(&self.reopen()).expect("what was written");
        Self { config: self.config, engine, store: self.store.clone() }
    }

    /// Commits, and opens what is stored; gives the state.
    fn reopen(&mut self) -> Vec<u8> {
        let mut flush = self.engine.begin_flush().expect("idle");
        carry_out(&mut flush, &mut self.engine, &mut self.store).expect("the store is there");
        for bucket in self.engine.dropped() {
            self.store.buckets.remove(&bucket);
        }
        let mut state = Vec::new();
        self.engine.checkpoint(&mut state);
        self.engine = tree(self.config);
        self.engine.restore(&state).expect("what was written");
        state
    }

    /// The blocks that the stored buckets lack.
    fn lost(&mut self) -> BTreeSet<u64> {
        self.lacking().blocks.into_iter().flatten().collect()
    }

    fn lacking(&mut self) -> Lacking {
        let mut verifier = Verifier::new(&mut self.engine);
        for (bucket, bytes) in &self.store.buckets {
            verifier.check(*bucket, &mut bytes.clone()).expect("it goes on");
        }
        let lacking = verifier.finish();
        assert_eq!(lacking.buckets, []);
        lacking
    }

    /// A whole period of the schedule, which puts these blocks back.
    fn evict_all(&mut self, back: Vec<(BlockId, Vec<u8>)>) -> Result<(), EngineError> {
        let leaves = 1 << self.engine.depth().0;
        let mut round = self.engine.begin_maintenance(leaves).expect("idle").putting_back(back);
        carry_out(&mut round, &mut self.engine, &mut self.store)
    }

    fn harm(&mut self, harms: &[(prop::sample::Index, Harm)], before: &MemoryBuckets) -> usize {
        let there: Vec<BucketId> = self.store.buckets.keys().copied().collect();
        let mut harmed = BTreeSet::new();
        for (at, harm) in harms.iter().filter(|_| !there.is_empty()) {
            let at = at.index(there.len());
            let (bucket, next) = (there[at], there[(at + 1) % there.len()]);
            let was = self.store.buckets[&bucket].clone();
            match *harm {
                Harm::Flip(bit) => {
                    let bytes = self.store.buckets.entry(bucket).or_default();
                    let bit = bit % (8 * bytes.len());
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
                Harm::Zeros => self.store.buckets.entry(bucket).or_default().fill(0),
                Harm::Old => match before.buckets.get(&bucket) {
                    Some(old) if old.len() == was.len() => {
                        self.store.buckets.insert(bucket, old.clone());
                    }
                    _ => continue,
                },
                Harm::Swap => {
                    if self.store.buckets[&next].len() == was.len() {
                        let other = self.store.buckets.insert(next, was).expect("it is there");
                        self.store.buckets.insert(bucket, other);
                        harmed.insert(next);
                    }
                }
            }
            harmed.insert(bucket);
        }
        harmed.len()
    }
}

fn tree(config: TreeConfig) -> TreeOram {
    let mut engine = TreeOram::new(config, 8, TreeKeys::from_seed(5)).expect("a sound config");
    engine.grow(BLOCKS).expect("within the capacity");
    engine.set_size_class(BLOCKS).expect("within the capacity");
    engine
}

/// The outcome of an operation, when these blocks are lost; it may heal its block.
fn expected(model: &mut Plain, lost: &mut BTreeSet<u64>, op: &BlockOp) -> BlockOutcome {
    match &op.action {
        Action::Write(_) | Action::Remove => {
            lost.remove(&op.id.0);
        }
        _ if lost.contains(&op.id.0) => return Err(Lost),
        _ => {}
    }
    Ok(model.serve(op))
}

proptest! {
    #![proptest_config(cases(192))]

    /// Exactly what no bucket has any more is lost, through evictions and openings, until it is
    /// written or removed. Nothing wrong or old is returned. A map that recurses may refuse to go
    /// on, where a block of the map itself is lost.
    #[test]
    fn what_a_damaged_bucket_carried_is_lost_and_nothing_else(
        config in any_config(),
        (before, between, after) in (any_batches(40), any_batches(12), any_batches(30)),
        harms in any_harms(),
        reopen_every in 1usize..12,
    ) {
        let mut run = Run::new(config);
        let mut model = Plain::default();
        for ops in &before {
            run.serve(ops).expect("sound");
            ops.iter().for_each(|op| drop(model.serve(op)));
        }
        run.reopen();
        let old = run.store.clone();
        for ops in &between {
            run.serve(ops).expect("sound");
            ops.iter().for_each(|op| drop(model.serve(op)));
        }
        run.reopen();
        let harmed = run.harm(&harms, &old);
        let mut lost = run.lost();
        let recurses = config.levels_of_recursion() > 1;
        prop_assert!(recurses || lost.len() <= harmed * config.blocks_per_bucket);
        let all: Vec<BlockOp> = (0..BLOCKS).map(read).collect();
        let all = all.chunks(9).map(<[_]>::to_vec);
        for (index, ops) in after.into_iter().chain(all).enumerate() {
            let outcomes = match run.serve(&ops) {
                Err(EngineError::TamperedBlock(_)) if recurses => return Ok(()),
                outcomes => outcomes.expect("it goes on"),
            };
            for (op, outcome) in ops.iter().zip(outcomes) {
                // With a map that recurses, a whole bucket without a proof cannot be judged.
                if recurses && outcome == Err(Lost) {
                    lost.insert(op.id.0);
                }
                prop_assert_eq!(outcome, expected(&mut model, &mut lost, op));
            }
            if index % reopen_every == 0 {
                run.reopen();
            }
        }
        // A whole period of the schedule writes every bucket anew.
        match run.evict_all(Vec::new()) {
            Err(EngineError::TamperedBlock(_)) if recurses => return Ok(()),
            done => done.expect("it goes on"),
        }
        run.reopen();
        let mut verifier = Verifier::new(&mut run.engine);
        for (bucket, bytes) in &run.store.buckets {
            prop_assert_eq!(verifier.check(*bucket, &mut bytes.clone()).expect("it goes on"), None);
        }
        let lacking = verifier.finish();
        prop_assert!(recurses || lacking.blocks.into_iter().flatten().eq(lost));
    }

    /// An older copy gives back the lost blocks that nobody had asked for between it and the loss,
    /// however often somebody did after it. It never gives an older version of a block.
    #[test]
    fn an_older_copy_gives_back_what_is_the_same_there(
        config in any_config(),
        (before, between, after) in (any_batches(40), any_batches(12), any_batches(12)),
        (harms, harms_of_copy) in (any_harms(), any_harms()),
        copy_is_damaged in any::<bool>(),
    ) {
        let config = TreeConfig { on_chip_bytes: usize::MAX, ..config };
        let mut run = Run::new(config);
        let mut model = Plain::default();
        let serve = |run: &mut Run, model: &mut Plain, ops: &[BlockOp]| {
            run.serve(ops).expect("sound");
            ops.iter().for_each(|op| drop(model.serve(op)));
        };
        before.iter().for_each(|ops| serve(&mut run, &mut model, ops));
        let mut copy = run.copy();
        between.iter().for_each(|ops| serve(&mut run, &mut model, ops));
        run.reopen();
        run.harm(&harms, &copy.store.clone());
        let mut lost = run.lost();
        for ops in &after {
            let outcomes = run.serve(ops).expect("it goes on");
            for (op, outcome) in ops.iter().zip(outcomes) {
                prop_assert_eq!(outcome, expected(&mut model, &mut lost, op));
            }
        }
        run.reopen();
        if copy_is_damaged {
            let old = run.store.clone();
            copy.harm(&harms_of_copy, &old);
        }

        let lacking = run.lacking();
        let still: BTreeSet<u64> = lacking.blocks.iter().cloned().flatten().collect();
        prop_assert_eq!(&still, &lost);
        let (now, then) = (current_labels(&run.engine), current_labels(&copy.engine));
        let version = |id| lacking.versions.get(&id).copied().or(now.version(BlockId(id)));
        let same = |id: &u64| then.version(BlockId(*id)) == version(*id);
        let same: BTreeSet<u64> = lost.iter().copied().filter(same).collect();
        let asked: BTreeSet<u64> = between.iter().flatten().map(|op| op.id.0).collect();
        if matches!(config.map_format, MapFormat::Flat { .. }) {
            prop_assert!(lost.difference(&asked).all(|id| same.contains(id)), "{lost:?} {same:?}");
        }
        let ops: Vec<BlockOp> = same.iter().copied().map(read).collect();
        let mut back = Vec::new();
        for (id, outcome) in same.iter().zip(copy.serve(&ops).expect("it goes on")) {
            match outcome {
                Ok(content) => back.push((BlockId(*id), content.expect("it exists there"))),
                Err(Lost) => prop_assert!(copy_is_damaged),
            }
        }
        for (id, _) in &back {
            lost.remove(&id.0);
        }
        run.evict_all(back).expect("it goes on");
        run.reopen();
        prop_assert_eq!(&run.lost(), &lost);
        for id in 0..BLOCKS {
            let outcome = run.serve(&[read(id)]).expect("it goes on").remove(0);
            prop_assert_eq!(outcome, expected(&mut model, &mut lost, &read(id)));
        }
    }

    /// The store cannot tell by what follows whether a bucket that it damaged carried anything.
    #[test]
    fn damage_changes_nothing_that_the_store_sees(
        config in any_config(),
        (before, after) in (any_batches(40), any_batches(30)),
        harms in any_harms(),
    ) {
        let config = TreeConfig { on_chip_bytes: usize::MAX, ..config };
        let (mut whole, mut harmed) = (Run::new(config), Run::new(config));
        for run in [&mut whole, &mut harmed] {
            before.iter().for_each(|ops| drop(run.serve(ops).expect("sound")));
            run.reopen();
            run.store.keep_trace = true;
        }
        harmed.harm(&harms, &MemoryBuckets::default());
        for ops in &after {
            whole.serve(ops).expect("sound");
            harmed.serve(ops).expect("it goes on");
        }
        whole.reopen();
        harmed.reopen();
        prop_assert_eq!(&whole.store.trace, &harmed.store.trace);
        let lens = |run: &Run| run.store.buckets.iter().map(|(id, it)| (*id, it.len())).collect::<Vec<_>>();
        prop_assert_eq!(lens(&whole), lens(&harmed));
        prop_assert_eq!(whole.engine.blocks(), harmed.engine.blocks());
    }
}
