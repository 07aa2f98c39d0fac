//! Lanes: each act of the volume writes its part of every lane, to places that follow from it.
//! Without a key nothing that stands in a lane decides anything.

use super::model::{Event, any_event};
use super::traces::{act, writes};
use super::{MemoryKeeper, any_options, create, open};
use oblivio_engine::sequential::{Flush, LaneLayout, Layout};
use oblivio_engine::{Action, BlockId, BlockOp, Extent};
use oblivio_store::record::CallKind;
use oblivio_store::{Held, MemoryStore, ReadAt, RecordStore, Slots, WriteAt};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_volume::LaneParameters;
use oblivio_volume::sequential::SequentialOptions;
use oblivio_volume::{BlockSpace, EngineVolume};
use std::collections::BTreeSet;
use std::sync::Arc;

const LANES: [[&str; 4]; 2] = [
    ["lane-1", "lane-1-log", "lane-1-state", "lane-1-times"],
    ["lane-2", "lane-2-log", "lane-2-state", "lane-2-times"],
];

/// A small volume with lanes.
fn any_with_lanes(dice: &mut Dice) -> SequentialOptions {
    loop {
        let mut options = any_options(dice);
        if options.engine.bucket_blocks > 1 && options.engine.sector_bytes > 128 {
            let [count, grace] = [1 + dice.below(2), 1 + dice.below(16)].map(|it| it as u8);
            options.lanes = Some(LaneParameters { count, share: 2, grace, guess: 3 });
            return options;
        }
    }
}

fn lanes(options: &SequentialOptions) -> &'static [[&'static str; 4]] {
    &LANES[..options.lanes.expect("it has lanes").count.into()]
}

fn lane_layout(options: &SequentialOptions) -> LaneLayout {
    let LaneParameters { share, grace, .. } = options.lanes.expect("it has lanes");
    LaneLayout::new(&options.engine, share.into(), grace.into()).expect("sound parameters")
}

fn bytes_of(options: &SequentialOptions, object: &str) -> u64 {
    let objects = options.objects().expect("sound parameters");
    objects.iter().find(|(name, _)| *name == object).expect("it is listed").1
}

/// Places for states of a lane.
fn places(options: &SequentialOptions) -> u64 {
    lane_layout(options).grace_turns() + 2 + 256
}

fn events(dice: &mut Dice, blocks: u64) -> Vec<Event> {
    (0..60 + dice.below(120)).map(|_| any_event(dice, blocks)).collect()
}

/// What was written and synced from the making of a volume on.
type Trace = Vec<(CallKind, Arc<str>, u64, u64)>;

fn trace_of(options: SequentialOptions, events: &[Event]) -> (Trace, u64) {
    let (memory, store) = (MemoryKeeper::default(), Arc::new(RecordStore::new(MemoryStore::new())));
    let mut volume = create(store.clone(), SequentialOptions { fill: false, ..options }, &memory)
        .expect("a volume");
    for event in events {
        act(&mut volume, event).expect("it works");
    }
    let flushes = volume.sequential_info().flushes;
    drop(volume);
    (writes(store.take()), flushes)
}

#[test]
fn a_flush_writes_its_part_of_every_lane() {
    for seed in (seed(1)..).take(scaled(12) as usize) {
        let mut dice = Dice::new(seed);
        let options = any_with_lanes(&mut dice);
        let events = events(&mut dice, options.engine.blocks);
        let (trace, flushes) = trace_of(options, &events);
        let disks: Vec<&str> = lanes(&options).iter().map(|lane| lane[0]).collect();
        let written = trace.into_iter().filter(|(op, object, ..)| {
            *op == CallKind::Write && (&**object == "disk" || disks.contains(&&**object))
        });
        let mut written = written.map(|(_, object, offset, bytes)| (object, offset, bytes));
        let outer = Layout::new(&options.engine).expect("sound parameters");
        let lane = lane_layout(&options);
        for flush in (0..flushes).map(Flush) {
            let of = |object: &'static str, extents: Vec<Extent>| {
                extents.into_iter().map(move |it| (Arc::from(object), it.offset, it.bytes))
            };
            let beside = disks.iter().flat_map(|disk| of(disk, lane.writes(flush)));
            for expected in of("disk", outer.writes(flush)).chain(beside) {
                assert_eq!(written.next(), Some(expected), "seed {seed}, {flush:?}");
            }
        }
        assert_eq!(written.next(), None, "seed {seed}");
    }
}

#[test]
fn a_quantum_comes_with_one_for_every_lane() {
    let mut most = 0;
    for seed in (seed(1)..).take(scaled(12) as usize) {
        let mut dice = Dice::new(seed);
        let options = any_with_lanes(&mut dice);
        let events = events(&mut dice, options.engine.blocks);
        let (trace, _) = trace_of(options, &events);
        let quantum = bytes_of(&options, "log") / options.log_quanta;
        let logs: Vec<&str> = lanes(&options).iter().map(|lane| lane[1]).collect();
        let ring = bytes_of(&options, logs[0]);
        let (mut outer, mut beside) = (0, vec![0; logs.len()]);
        let mut unit = None;
        for (op, object, offset, bytes) in trace {
            let lane = logs.iter().position(|log| **log == *object);
            if op == CallKind::Sync && &*object == "log" && outer > 0 {
                // A sync makes as many quanta of each lane durable.
                for written in &beside {
                    let unit = *unit.get_or_insert(written / outer);
                    assert_eq!(*written, outer * unit, "seed {seed}");
                }
            }
            match lane {
                _ if op != CallKind::Write => {}
                Some(lane) => {
                    assert_eq!(offset, beside[lane] % ring, "seed {seed}: round the ring");
                    beside[lane] += bytes;
                }
                None if &*object == "log" => outer += bytes / quantum,
                None => {}
            }
        }
        most = most.max(outer);
    }
    assert!(most > 20, "{most}");
}

#[test]
fn a_state_comes_after_one_of_every_lane_and_a_clean_end_has_their_times() {
    let mut ends = 0;
    for seed in (seed(1)..).take(scaled(12) as usize) {
        let mut dice = Dice::new(seed);
        let options = any_with_lanes(&mut dice);
        let events = events(&mut dice, options.engine.blocks);
        let (trace, _) = trace_of(options, &events);
        let (mut state, mut times) = (Vec::new(), Vec::new());
        for (op, object, offset, bytes) in trace {
            if object.ends_with("-times") && op == CallKind::Write {
                times.push((object, bytes));
            } else if object.contains("state") && op != CallKind::Allocate {
                state.push((op, object, offset, bytes));
            }
        }
        let bytes = bytes_of(&options, "lane-1-state") / places(&options);
        let outer = bytes_of(&options, "state") / 2;
        let mut seen = state.into_iter().filter(|(op, ..)| *op == CallKind::Write);
        let mut number = 0;
        while let Some(first) = seen.next() {
            number += 1;
            let mut next = Some(first);
            for lane in lanes(&options) {
                let place = number % places(&options) * bytes;
                let expected = (CallKind::Write, Arc::from(lane[2]), place, bytes);
                assert_eq!(next, Some(expected), "seed {seed}, state {number}");
                next = seen.next();
            }
            for object in ["state", "state-2"] {
                let expected = (CallKind::Write, Arc::from(object), number % 2 * outer, outer);
                assert_eq!(next, Some(expected), "seed {seed}, state {number}");
                next = if object == "state" { seen.next() } else { None };
            }
        }
        for lane in lanes(&options) {
            let written = times.iter().filter(|(object, _)| &**object == lane[3]);
            let written: u64 = written.map(|(_, bytes)| bytes).sum();
            assert!(written.is_multiple_of(bytes_of(&options, lane[3])), "seed {seed}");
            ends += written / bytes_of(&options, lane[3]);
        }
    }
    assert!(ends > 10, "{ends} ends with times");
}

fn flip(store: &MemoryStore, (object, at): (&str, u64), bits: u8) {
    let mut byte = [0];
    store.read(&mut [ReadAt { object, offset: at, buf: &mut byte }]).expect("memory");
    byte[0] ^= bits;
    store.write(&[WriteAt::new(object, at, &byte)]).expect("memory");
}

/// Opens the volume, writes and ends: what is written, what was damaged, and what it then holds.
fn go_on(
    store: MemoryStore,
    memory: &MemoryKeeper,
    events: &[Event],
) -> (Trace, Vec<String>, Vec<Vec<u8>>) {
    let store = Arc::new(RecordStore::new(store));
    let memory = &memory.twin();
    let mut volume = open(store.clone(), memory).expect("it opens");
    let damaged = volume.damaged().into_iter().map(|place| place.object).collect();
    for event in events {
        act(&mut volume, event).expect("it works");
    }
    let blocks = (0..volume.capacity_blocks()).map(BlockId);
    let reads = blocks.map(|id| BlockOp { id, action: Action::Read }).collect();
    let found = volume.access(reads).expect("it reads");
    let found = found.into_iter().map(Option::unwrap_or_default).collect();
    volume.finish().expect("a clean end");
    drop(volume);
    let trace = writes(store.take());
    let again = open(store, memory).expect("it opens");
    assert_eq!(again.damaged(), [], "the next state made it whole");
    (trace, damaged, found)
}

/// Whatever byte of a lane is changed, the volume goes on as ever, and its next state is whole. It
/// says so of the state that it names.
#[test]
fn a_changed_byte_of_a_lane_stops_nothing_and_changes_no_trace() {
    let mut named = 0;
    for seed in (seed(1)..).take(scaled(8) as usize) {
        let mut dice = Dice::new(seed);
        let options = any_with_lanes(&mut dice);
        let (memory, store) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
        let mut volume = create(store.clone(), options, &memory).expect("a volume");
        for event in events(&mut dice, options.engine.blocks) {
            act(&mut volume, &event).expect("it works");
        }
        let epoch = volume.info().expect("it can be told").epoch;
        drop(volume);
        let mut events = events(&mut dice, options.engine.blocks);
        events.truncate(20);
        let whole = go_on(store.snapshot(), &memory, &events);
        assert_eq!(whole.1, Vec::<String>::new(), "seed {seed}");
        let state = bytes_of(&options, "lane-1-state") / places(&options);
        let newest = epoch % places(&options) * state;
        for _ in 0..20 {
            let lane = lanes(&options)[dice.below(lanes(&options).len() as u64) as usize];
            let object = lane[dice.below(4) as usize];
            let is_state = object == lane[2] && dice.below(2) == 0;
            let at = match is_state {
                true => newest + dice.below(state),
                false => dice.below(bytes_of(&options, object)),
            };
            let hit = object == lane[2] && (newest..newest + state).contains(&at);
            let changed = store.snapshot();
            flip(&changed, (object, at), 1 << dice.below(8));
            let (trace, damaged, found) = go_on(changed, &memory, &events);
            assert_eq!(damaged.contains(&lane[2].to_owned()), hit, "seed {seed}: {object} {at}");
            assert!(trace == whole.0 && found == whole.2, "seed {seed}: {object} {at}");
            named += u64::from(hit);
        }
    }
    assert!(named > 0);
}

/// Who puts back an older state of a lane only is found out by the volume's own state.
#[test]
fn an_older_lane_beside_the_volume_is_named() {
    for seed in (seed(1)..).take(scaled(8) as usize) {
        let mut dice = Dice::new(seed);
        let options = any_with_lanes(&mut dice);
        let (memory, store) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
        let mut volume = create(store.clone(), options, &memory).expect("a volume");
        let older = store.snapshot();
        for event in events(&mut dice, options.engine.blocks) {
            act(&mut volume, &event).expect("it works");
        }
        volume.finish().expect("a clean end");
        drop(volume);
        for object in lanes(&options)[0] {
            let mut buf = vec![0; older.len(object).expect("memory").expect("it exists") as usize];
            older.read(&mut [ReadAt { object, offset: 0, buf: &mut buf }]).expect("memory");
            store.write(&[WriteAt::new(object, 0, &buf)]).expect("memory");
        }
        let volume = open(store, &memory).expect("the volume itself is whole");
        let damaged = volume.damaged();
        assert!(damaged.iter().any(|place| place.object == "lane-1-state"), "{damaged:?}");
    }
}

/// All bytes of all lanes, as far as they were written.
fn stored(store: &MemoryStore, options: &SequentialOptions) -> Vec<u8> {
    let mut all = Vec::new();
    for object in lanes(options).iter().flatten() {
        let mut buf = vec![0; bytes_of(options, object) as usize];
        store.read(&mut [ReadAt { object, offset: 0, buf: &mut buf }]).expect("memory");
        all.extend(buf);
    }
    all
}

/// What is burnt looks random: half of its bits are ones, nothing comes twice, and the same acts of
/// another session leave other bytes.
#[test]
fn what_is_burnt_is_random_and_never_the_same() {
    let mut dice = Dice::new(seed(3));
    let options = SequentialOptions { fill: true, ..any_with_lanes(&mut dice) };
    let (memory, made) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
    drop(create(made.clone(), options, &memory).expect("a volume"));
    let events = events(&mut dice, options.engine.blocks);
    let mut seen = BTreeSet::new();
    for round in 0..2 {
        let store = Arc::new(made.snapshot());
        let mut volume = open(store.clone(), &memory.twin()).expect("it opens");
        for event in &events {
            act(&mut volume, event).expect("it works");
        }
        volume.finish().expect("a clean end");
        drop(volume);
        let before = stored(&made, &options);
        let now = stored(&store, &options);
        let bits = 8 * now.len() as u64;
        let ones: u64 = now.iter().map(|byte| u64::from(byte.count_ones())).sum();
        // Six deviations of a fair coin, doubled.
        let most = (6.0 * (bits as f64).sqrt()) as u64;
        assert!((2 * ones).abs_diff(bits) < most, "{ones} of {bits}");
        // What the session did not reach is as it was made.
        let written = now.chunks(16).zip(before.chunks(16)).filter(|(now, before)| now != before);
        for (piece, _) in written.filter(|(piece, _)| piece.len() == 16) {
            assert!(seen.insert(piece.to_vec()), "round {round}: it repeats");
        }
    }
    assert!(seen.len() > 1000, "{}", seen.len());
}
