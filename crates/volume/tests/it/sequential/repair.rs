//! A repair makes a damaged volume whole: no damaged place is left, nothing more is lost, and what
//! it writes follows from the schedule. A crash leaves a volume that can be repaired again.

use super::lost::{act, harm, inspect, lost, write_anew};
use super::model::{Model, any_event};
use super::traces::writes;
use super::{MemoryKeeper, any_options, create, open};
use oblivio_store::{MemoryStore, RecordStore};
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_testkit::{CrashStore, Dice};
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::{BlockSpace, EngineVolume};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A damaged volume of some age.
struct Damaged {
    store: Arc<MemoryStore>,
    /// What it held before the damage.
    whole: Arc<MemoryStore>,
    memory: MemoryKeeper,
    model: Model,
    options: SequentialOptions,
}

fn damaged(dice: &mut Dice, what: &str) -> Damaged {
    let options = any_options(dice);
    let (memory, store) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
    let mut volume = create(store.clone(), options, &memory).expect("a volume");
    let mut model = Model::default();
    for _ in 0..40 + dice.below(160) {
        let event = any_event(dice, options.engine.blocks);
        act(&mut volume, &mut model, &event, what);
    }
    if dice.below(3) == 0 { volume.commit() } else { volume.finish() }.expect("it works");
    let whole = Arc::new(store.snapshot());
    (0..1 + dice.below(5)).for_each(|_| harm(&store, dice));
    Damaged { store, whole, memory, model, options }
}

fn repaired(volume: &mut SequentialVolume, what: &str) {
    volume.repair(&mut |_, _| {}).unwrap_or_else(|error| panic!("{what}: {error}"));
    volume.finish().unwrap_or_else(|error| panic!("{what}: {error}"));
}

/// The outcome of a damaged volume's repair.
struct Repaired {
    lost_before: usize,
    lost: usize,
    /// Whether a damaged place was found before.
    with_damage: bool,
}

/// Repairs a damaged volume. What is whole stays, and no damaged place is left.
fn repair_one(round: u64) -> Repaired {
    let what = format!("round {round}");
    let Damaged { store, memory, mut model, options, .. } =
        damaged(&mut Dice::new(round ^ 0x5e9), &what);
    let mut volume = open(store.clone(), &memory).expect("it opens");
    let before = lost(&mut volume, &model, &what);
    let with_damage = !inspect(&mut volume, &before, &what).is_empty();
    repaired(&mut volume, &what);
    // What a damaged leaf or page may have listed, and did not, is not lost any more.
    let after = lost(&mut volume, &model, &what);
    assert!(after.is_subset(&before), "{what}: {after:?} of {before:?}");
    assert_eq!(inspect(&mut volume, &after, &what), [], "{what}");
    drop(volume);
    let mut volume = open(store.clone(), &memory).expect("it opens");
    assert_eq!(inspect(&mut volume, &after, &what), [], "{what}");
    assert_eq!(lost(&mut volume, &model, &what), after, "{what}");
    write_anew(&mut volume, &mut model, options.engine.blocks, 7);
    volume.finish().expect("it works");
    assert_eq!(lost(&mut volume, &model, &what), BTreeSet::new(), "{what}");
    volume.verify(&mut |_, _| {}).expect("it is whole");
    Repaired { lost_before: before.len(), lost: after.len(), with_damage }
}

#[test]
fn what_is_whole_stays_and_no_damaged_place_is_left() {
    let (first, rounds) = (seed(1), scaled(20));
    let (mut hit, mut left, mut with) = (0, 0, 0);
    for round in first..first + rounds {
        let repaired = repair_one(round);
        left += repaired.lost;
        hit += repaired.lost_before;
        with += u64::from(repaired.with_damage);
    }
    println!("{rounds} volumes, {with} with damage that is met; lost: {hit} blocks, then {left}");
    assert!(left > 0 && with * 4 > rounds);
}

/// Volumes whose damage is in generations that are being written, by their seeds. In the second
/// half the access times are in pages.
const DAMAGED_AHEAD: [u64; 10] = [24, 101, 225, 301, 363, 57, 184, 228, 261, 295];

/// Their blocks are read elsewhere, and were lost once those generations were complete.
#[test]
fn damage_where_nobody_reads_yet_costs_nothing() {
    for round in DAMAGED_AHEAD {
        assert_eq!(repair_one(round).lost, 0, "round {round}");
    }
}

/// How many blocks a repair saves does not show.
#[test]
fn what_a_repair_writes_is_the_same_for_blocks_that_it_saves() {
    for round in DAMAGED_AHEAD {
        let what = format!("round {round}");
        let Damaged { store, whole, memory, .. } = damaged(&mut Dice::new(round ^ 0x5e9), &what);
        let [with, without] = [store, whole].map(|store| {
            let (memory, store) = (memory.twin(), Arc::new(RecordStore::new(store.snapshot())));
            let mut volume = open(store.clone(), &memory).expect("it opens");
            repaired(&mut volume, &what);
            writes(store.take())
        });
        assert!(!with.is_empty() && with == without, "{what}");
    }
}

/// Volumes with two damaged leaves that may have listed a block. The older one did; a repair took
/// what was before it for the newest.
#[test]
fn a_lost_block_does_not_come_back_as_an_older_one() {
    for round in [51, 88, 246, 283] {
        assert!(repair_one(round).lost > 0, "round {round}");
    }
}

/// A repair that dies at any operation is done again.
#[test]
fn a_repair_survives_crashes() {
    let (first, rounds) = (seed(1), scaled(16));
    let mut more = 0;
    for round in first..first + rounds {
        let what = format!("round {round}");
        let mut dice = Dice::new(round ^ 0xc4a5);
        let Damaged { store, memory, model, .. } = damaged(&mut dice, &what);
        let whole = Arc::new(CrashStore::holding(&store));
        let mut volume = open(whole.clone(), &memory.twin()).expect("it opens");
        let before = lost(&mut volume, &model, &what);
        let begun = whole.operations();
        repaired(&mut volume, &what);
        let operations = whole.operations() - begun;
        drop(volume);

        let memory = memory.twin();
        let crashing = Arc::new(CrashStore::holding(&store));
        let mut volume = open(crashing.clone(), &memory).expect("it opens");
        crashing.crash_after(dice.below(operations));
        let died = volume.repair(&mut |_, _| {}).and_then(|()| volume.finish());
        assert!(died.is_err(), "{what}: it died before its end");
        drop(volume);
        let left = Arc::new(crashing.survivors(dice.next_u64()));
        let mut volume = open(left.clone(), &memory).expect("it opens");
        // Without the access times, all that a damaged leaf may have listed is lost.
        let now = lost(&mut volume, &model, &what);
        more += now.difference(&before).count();
        repaired(&mut volume, &what);
        drop(volume);
        let mut volume = open(left, &memory).expect("it opens");
        let after = lost(&mut volume, &model, &what);
        assert!(after.is_subset(&now), "{what}: {after:?} of {now:?}");
        assert_eq!(inspect(&mut volume, &after, &what), [], "{what}");
    }
    println!("{rounds} crashed repairs; {more} more blocks lost, for want of access times");
}

/// What a repair writes, and where, tells nothing of what is lost.
#[test]
fn what_a_repair_writes_follows_from_the_schedule() {
    for round in 0..scaled(8) {
        let what = format!("round {round}");
        let mut dice = Dice::new(round ^ 0x7ace);
        let options = any_options(&mut dice);
        let (memory, start) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
        let mut volume = create(start.clone(), options, &memory).expect("a volume");
        let mut model = Model::default();
        for _ in 0..100 {
            let event = any_event(&mut dice, options.engine.blocks);
            act(&mut volume, &mut model, &event, &what);
        }
        volume.finish().expect("it works");
        drop(volume);
        let traces = [0, 1, 6].map(|harms| {
            let (memory, left) = (memory.twin(), start.snapshot());
            (0..harms).for_each(|_| harm(&left, &mut dice));
            let store = Arc::new(RecordStore::new(left));
            let mut volume = open(store.clone(), &memory).expect("it opens");
            repaired(&mut volume, &what);
            writes(store.take())
        });
        assert!(!traces[0].is_empty());
        assert!(traces.iter().all(|trace| *trace == traces[0]), "{what}");
    }
}
