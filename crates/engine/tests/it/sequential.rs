//! The sequential engine with its bytes: its reads, the places of its writes, and its state after a
//! restart.

use crate::cases;
use crate::sequential_run::{BYTES, Run, SEED, config, paged};
use oblivio_engine::sequential::{Flush, Layout, Sequential, SequentialConfig, SequentialKeys};
use oblivio_engine::{BlockId, Carrier, Extent, Job, Level, Step, advance};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::scaled;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn any_config() -> impl Strategy<Value = SequentialConfig> {
    let sizes = (1..80u64, 1..7u64, 1..5u64);
    (sizes, 2..17u64, 30..300u64, 0..4u64).prop_map(
        |((blocks, bucket, queue), fan_out, last_ratio, pages)| {
            let config = config(blocks, bucket, queue, fan_out, last_ratio);
            paged(config, pages.min(bucket - 1))
        },
    )
}

#[derive(Clone, Debug)]
enum Event {
    Write(u64),
    Discard(u64),
    Pad,
    Read(Vec<u64>),
    Restore { times_kept: bool },
}

fn any_event() -> impl Strategy<Value = Event> {
    let block = prop_oneof![Just(3u64), 0..8u64, any::<u64>()];
    prop_oneof![
        12 => block.clone().prop_map(Event::Write),
        2 => block.clone().prop_map(Event::Discard),
        1 => Just(Event::Pad),
        4 => prop::collection::vec(block, 0..6).prop_map(Event::Read),
        1 => any::<bool>().prop_map(|times_kept| Event::Restore { times_kept }),
    ]
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn every_read_is_right(
        config in any_config(),
        events in prop::collection::vec(any_event(), 1..400),
    ) {
        let mut run = Run::new(config);
        let within = |block: u64| BlockId(block % config.blocks);
        for event in events {
            match event {
                Event::Write(block) => run.write(block % config.blocks),
                Event::Discard(block) => run.apply(Some((within(block), None))),
                Event::Pad => run.apply(None),
                Event::Read(blocks) => run.check(blocks.into_iter().map(within).collect()),
                Event::Restore { times_kept } => {
                    let state = run.engine.state().expect("idle");
                    let times = run.engine.access_times().filter(|_| times_kept);
                    let times = times.map(|times| times.to_bytes());
                    run.restore(&state, times.as_deref());
                }
            }
        }
        run.check_all();
    }

    /// Any two runs of equal length write the same places in the same order, which is the
    /// schedule's.
    #[test]
    fn the_trace_follows_from_the_number_of_writes(
        config in any_config(),
        pairs in prop::collection::vec((any_event(), any_event()), 1..500),
    ) {
        let (mut one, mut other) = (Run::new(config), Run::new(config));
        let mut writes = 0;
        for (mine, theirs) in pairs {
            // Reads and restores do not count towards the workload's length: they may differ.
            for (run, event) in [(&mut one, mine), (&mut other, theirs)] {
                match event {
                    Event::Discard(block) => run.apply(Some((BlockId(block % config.blocks), None))),
                    Event::Write(block) => run.write(block % config.blocks),
                    Event::Read(blocks) => {
                        run.check(blocks.iter().map(|it| BlockId(it % config.blocks)).collect());
                        run.apply(None);
                    }
                    Event::Pad => run.apply(None),
                    Event::Restore { .. } => {
                        let state = run.engine.state().expect("idle");
                        run.restore(&state, None);
                        run.write(0);
                    }
                }
            }
            writes += 1;
        }
        prop_assert_eq!(&one.disk.trace, &other.disk.trace);
        let layout = Layout::new(&config).expect("sound parameters");
        let flushes = writes / layout.schedule().writes_per_flush();
        let scheduled: Vec<Extent> =
            (0..flushes).flat_map(|flush| layout.writes(Flush(flush))).collect();
        prop_assert_eq!(&one.disk.trace, &scheduled);
        prop_assert_eq!(one.engine.state().expect("idle").len(), other.engine.state().expect("idle").len());
    }
}

/// The places never overlap, fill the disk, and cost what [`Layout::cost`] states.
#[test]
fn places_are_disjoint_and_their_cost_is_counted_right() {
    for (blocks, bucket, queue, fan_out, ratio, pages) in [
        (60, 2, 3, 3, 100, 0),
        (1000, 5, 2, 4, 100, 0),
        (999, 7, 3, 8, 230, 2),
        (64, 1, 1, 2, 60, 0),
    ] {
        let config = paged(config(blocks, bucket, queue, fan_out, ratio), pages);
        let layout = Layout::new(&config).expect("sound parameters");
        let schedule = layout.schedule();
        let last = schedule.last();
        // From the first flush with every level in use, over a whole sweep and ring.
        let begin = (0..).find(|&flush| schedule.bucket(last, Flush(flush)).is_some());
        let begin = begin.expect("there is a first");
        let sweeps = schedule.flushes_of(last) * 4;
        let mut seen: BTreeMap<u64, u64> = BTreeMap::new();
        let mut written = 0;
        for flush in begin..begin + sweeps {
            for extent in layout.writes(Flush(flush)) {
                assert!(extent.bytes > 0 && extent.end() <= layout.bytes());
                assert_eq!(*seen.entry(extent.offset).or_insert(extent.bytes), extent.bytes);
                written += extent.bytes;
            }
        }
        let mut end = 0;
        for (offset, bytes) in seen {
            assert!(offset >= end, "two things at {offset}");
            end = offset + bytes;
        }
        let user = sweeps * (bucket - pages) * BYTES as u64;
        let cost = layout.cost();
        let off = (written as f64 / user as f64 - cost.written).abs();
        assert!(off < 1e-9, "{written} for {user} is not {cost:?}");
        assert!(
            (cost.stored - layout.bytes() as f64 / (blocks * BYTES as u64) as f64).abs() < 1e-9
        );
        let levels: u64 = schedule.levels().map(|level| layout.level_bytes(level)).sum();
        assert_eq!(levels, layout.bytes());
    }
}

/// Reads that begin before a flush and end after it are right.
#[test]
fn reads_run_beside_flushes() {
    for pages in [0, 1] {
        reads_beside_flushes(Run::new(paged(config(60, 2, 2, 3, 100), pages)));
    }
}

fn reads_beside_flushes(mut run: Run) {
    let mut dice = Dice::new(1);
    let mut overtaken = 0;
    let rounds = scaled(800);
    for _ in 0..rounds {
        let blocks: Vec<BlockId> = (0..4).map(|_| BlockId(dice.below(60))).collect();
        let expected = run.expected(&blocks);
        let mut batch = run.engine.begin_read(blocks).expect("no such block");
        let located = run.engine.flushes();
        // A step of the read, then some flushes of other blocks, then the rest of the read.
        for _ in 0..dice.below(4) {
            advance(&mut batch, &mut run.engine, &mut run.disk).expect("untampered");
        }
        let (engine, disk) = (&mut run.engine, &mut run.disk);
        for _ in 0..dice.below(300) / (1 + dice.below(40)) {
            engine.pad().expect("idle");
            if engine.flush_due() {
                let mut flushing = engine.begin_flush().expect("due");
                while advance(&mut flushing, &mut *engine, &mut *disk).expect("untampered") {
                    if dice.below(8) == 0 {
                        advance(&mut batch, &mut *engine, &mut *disk).expect("untampered");
                    }
                }
            }
        }
        overtaken += u64::from(engine.flushes() > located);
        while advance(&mut batch, &mut *engine, &mut *disk).expect("untampered") {}
        assert_eq!(batch.into_answers(), expected);
        run.log.resize(run.engine.writes() as usize, None);
        for _ in 0..2 {
            if !run.engine.flush_due() {
                let write = run.any_write(&mut dice);
                run.apply(write);
            }
        }
    }
    assert!(overtaken > rounds / 6, "{overtaken} of {rounds} were overtaken");
}

#[test]
fn a_run_is_restored_at_every_flush() {
    for (at, times_kept, pages) in [(0, true, 0), (1, false, 0), (2, false, 1), (3, false, 2)] {
        let mut run = Run::new(paged(config(70, 3, 2, 3, 120), pages));
        let mut dice = Dice::new(at);
        let mut size = None;
        // As many as flushes of three, of two and of one write fill.
        let writes = scaled(60) * 6;
        for _ in 0..writes {
            let write = run.any_write(&mut dice);
            let before = run.engine.flushes();
            run.apply(write);
            if run.engine.flushes() > before {
                let state = run.engine.state().expect("idle");
                assert_eq!(*size.get_or_insert(state.len()), state.len(), "its size tells");
                let times = run.engine.access_times().filter(|_| times_kept);
                let times = times.map(|times| times.to_bytes());
                run.restore(&state, times.as_deref());
                run.check_all();
            }
        }
        assert_eq!(run.sessions, writes / (3 - pages));
    }
}

/// After a crash at any write since the state at the turn's start, with torn sectors, nothing is
/// lost.
#[test]
fn a_crash_within_a_turn_loses_nothing() {
    for (bucket, queue, fan_out, ratio, pages) in [
        (2, 3, 3, 100, 0),
        (1, 4, 2, 150, 0),
        (4, 1, 3, 70, 0),
        (2, 3, 3, 100, 1),
        (5, 1, 3, 70, 2),
    ] {
        let mut run = Run::new(paged(config(90, bucket, queue, fan_out, ratio), pages));
        let turn = (bucket - pages) * queue;
        let mut dice = Dice::new(bucket);
        for _ in 0..scaled(80) {
            // To the start of a turn.
            while !run.engine.writes().is_multiple_of(turn) || dice.below(3) > 0 {
                let write = run.any_write(&mut dice);
                run.apply(write);
            }
            let state = run.engine.state().expect("idle");
            for _ in 0..dice.below(turn) {
                let write = run.any_write(&mut dice);
                run.apply(write);
            }
            tear_a_flush(&mut run, &mut dice);
            run.restore(&state, None);
            run.check_all();
        }
    }
}

/// Writes until a flush is due, and carries out only a part of its writes.
fn tear_a_flush(run: &mut Run, dice: &mut Dice) {
    while !run.engine.flush_due() {
        let write = run.any_write(dice);
        run.enqueue(write);
    }
    let mut flushing = run.engine.begin_flush().expect("due");
    loop {
        let step = flushing.step(&mut run.engine).expect("untampered");
        if let Step::Write(write) = step {
            for extent in write.extents {
                let part = &mut run.disk.bytes[extent.offset as usize..extent.end() as usize];
                let torn = dice.below(part.len() as u64 + 1) as usize;
                part[..torn].iter_mut().for_each(|byte| *byte = dice.below(256) as u8);
            }
            return;
        }
        run.disk.carry(step).expect("memory");
    }
}

#[test]
fn foreign_states_are_refused() {
    let mut run = Run::new(config(30, 2, 2, 3, 100));
    (0..100).for_each(|block| run.write(block % 30));
    let state = run.engine.state().expect("idle");
    let restore = |config, state: &[u8]| {
        Sequential::restore(config, SequentialKeys::from_seed(SEED, 9), state, None).map(|_| ())
    };
    restore(config(30, 2, 2, 3, 100), &state).expect("its own");
    for other in [config(31, 2, 2, 3, 100), config(30, 3, 2, 3, 100), config(30, 2, 2, 4, 100)] {
        assert!(restore(other, &state).is_err());
    }
    for length in [0, 8, 100, state.len() - 1] {
        assert!(restore(config(30, 2, 2, 3, 100), &state[..length]).is_err());
    }
    let longer: Vec<u8> = state.iter().copied().chain([0]).collect();
    assert!(restore(config(30, 2, 2, 3, 100), &longer).is_err());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut run = Run::new(config(30, 2, 2, 3, 100));
    let engine = &mut run.engine;
    assert!(engine.write(BlockId(30), vec![0; BYTES]).is_err());
    assert!(engine.write(BlockId(0), vec![0; BYTES - 1]).is_err());
    assert!(engine.begin_read(vec![BlockId(30)]).is_err());
    assert!(engine.begin_flush().is_err() && engine.begin_rebuild().is_err());
    assert!(engine.write_again(None).is_err());
    (0..2).for_each(|_| engine.pad().expect("idle"));
    assert!(engine.pad().is_err(), "a flush is due");
    assert_eq!(engine.layout().schedule().ring(Level(0)), 6);
}
