//! The placement of the sequential engine against a model that knows every block's true place.
//!
//! The model follows only events: bucket writes, completed generations, merges. The engine's
//! formula must always name the same slot, and no write may overwrite a current slot.

use crate::cases;
use crate::sequential_run::config;
use crate::sequential_run::model::{Model, Place};
use oblivio_engine::BlockId;
use oblivio_engine::sequential::{Accessed, BlockHome, SequentialConfig, Turn};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::scaled;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Operations of the long run.
const OPERATIONS: u64 = 2_000_000;

/// Random operations of changing habits, each checked. Sometimes it checks every block.
///
/// Returns the number of sweeps of the last level.
fn run(config: SequentialConfig, ops: u64, seed: u64) -> u64 {
    let mut model = Model::new(config);
    let mut dice = Dice::new(seed);
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

#[test]
fn every_block_is_where_the_formula_says() {
    // Buckets, and the number of them in the queue: queues of 1 to 4,096 blocks.
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
    let total = scaled(OPERATIONS);
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

/// Access times are kept modulo a number below 2^16: old blocks must be settled in time.
#[test]
fn blocks_are_found_after_access_times_have_wrapped() {
    for fan_out in [2, 3, 5] {
        let mut model = Model::new(config(23, 1, 1, fan_out, 100));
        for turn in 0..scaled(100_000) {
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
    #![proptest_config(cases(64))]

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

/// The model is a judge only if it detects faults, such as a home that is a turn early or late.
#[test]
fn a_formula_that_is_off_by_a_turn_names_other_places() {
    let mut model = Model::new(config(100, 2, 2, 3, 100));
    let mut dice = Dice::new(1);
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
        let home = BlockHome::Stored(generation);
        assert_eq!(schedule.home(time, now), home);
        early += u32::from(schedule.home(time, Turn(now.0 + 1)) != home);
        late += u32::from(schedule.home(time, Turn(now.0 - 1)) != home);
    }
    assert!(early > 100 && late > 100, "{early} early, {late} late");
}
