//! Every kind of damage to a stored volume: the right data or an error that names what is wrong,
//! never wrong data, never a panic.
//!
//! `cargo test` takes a sample of a small volume; `just damage` changes every byte of a larger one
//! and prints the table of docs/damage-evidence.md.

mod around;
mod crashed;
mod cut_off;
mod harmed;
mod homes;
mod levels;
mod older_copy;
mod outcome;
mod repairs;
pub mod sectors;
mod top_log;
mod trial;
pub(super) mod world;

use oblivio_store::{Held, Log, Objects, PutMode};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::at_least;
use oblivio_volume::fuzzing;
use outcome::{Outcome, Tally, judge};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use world::{FULL, SAMPLE, SEED, Scale, World, content};

/// One bit of a byte.
fn bit(dice: &mut Dice) -> u8 {
    1 << dice.below(8)
}

/// The parts of the small objects, as in docs/format.md.
fn part_of(object: &str, at: u64, world: &World) -> &'static str {
    let len = world.disk.len(object).expect("memory").unwrap_or(0);
    match object {
        "header" | "header-2" => match at {
            0..88 => "fields",
            88..216 => "slot in use",
            216..1112 => "empty slots",
            _ => "MACs, number and checksum",
        },
        "commit" | "commit-2" => {
            let (record, newest) = (len - 4096, world.known.epoch % 2);
            match at {
                at if at < 4096 && at >= record => "between the records",
                at if at / 4096 == newest => "newest record",
                _ => "record before",
            }
        }
        _ => "",
    }
}

/// One bit in each byte of everything but the slab, before an opening.
fn change_bytes(world: &mut World, tally: &mut Tally) {
    for (object, len) in world.objects() {
        if World::is_slab(&object).is_some() {
            continue;
        }
        let void = world.is_void(&object);
        if void {
            let mut bytes = world.bytes(&world.disk, &object);
            bytes.iter_mut().for_each(|byte| *byte ^= bit(&mut world.dice));
            let outcome = world.whole(world.with(&object, &bytes));
            tally.count(&format!("all bytes of {object} (void) at once"), outcome);
        }
        let states = object.starts_with("state-") || object.starts_with("log-");
        let step = match (void, states) {
            (true, _) => world.scale.void_step,
            // Both of them have everything.
            (false, true) => world.scale.step * 4,
            (false, false) => world.scale.step,
        };
        let mut at = world.dice.below(step.min(len).max(1));
        while at < len {
            let bit = bit(&mut world.dice);
            let disk = world.disk.snapshot();
            disk.corrupt(&object, at, |byte| *byte ^= bit).expect("in range");
            let part = if void { "void" } else { part_of(&object, at, world) };
            tally.count(&format!("byte of {object} ({part})"), world.opened(disk, at));
            at += 1 + world.dice.below(2 * step - 1);
        }
    }
}

/// One bit in each byte of the slab, under an open volume: each change is followed by a read of the
/// path to its bucket.
fn change_slab_bytes(world: &mut World, tally: &mut Tally) {
    let store = Arc::new(world.disk.snapshot());
    let mut volume = world.open(store.clone()).expect("sound");
    let places = fuzzing::places(&mut volume);
    let (mut used, mut objects) = (0, BTreeSet::new());
    for (part, object, place) in &places {
        let mut at = place.start + world.dice.below(world.scale.step);
        while at < place.end {
            let bit = bit(&mut world.dice);
            store.corrupt(object, at, |byte| *byte ^= bit).expect("in range");
            let outcome = judge(|| fuzzing::check_part(&mut volume, *part));
            tally.count("byte of slab (bucket in use, under an open volume)", outcome);
            store.corrupt(object, at, |byte| *byte ^= bit).expect("in range");
            at += world.scale.step;
        }
        used += place.end - place.start;
        objects.insert(object.clone());
    }
    let sound = judge(|| {
        volume.verify(&mut |_, _| {})?;
        world.compare(&mut volume, (0..world.scale.blocks).collect())
    });
    assert_eq!(sound, Outcome::NoEffect, "all changes were taken back");
    assert!(objects.len() > 1, "leaves lack slots, tables have lengths: {objects:?}");
    println!("slab: {used} bytes in {} buckets or tables in use, in {objects:?}", places.len());
}

/// A sample of the slab's bytes, before an opening, and all unused ones at once.
fn change_slab_and_open(world: &mut World, tally: &mut Tally) {
    for (object, len) in world.objects() {
        if World::is_slab(&object).is_some() {
            change_object_and_open(world, tally, &object, len);
        }
    }
}

fn change_object_and_open(world: &mut World, tally: &mut Tally, object: &str, len: u64) {
    let mut volume = world.open(Arc::new(world.disk.snapshot())).expect("sound");
    let places = fuzzing::places(&mut volume).into_iter().filter(|place| place.1 == object);
    let mut places: Vec<Range<u64>> = places.map(|(_, _, place)| place).collect();
    places.sort_by_key(|place| place.start);
    let in_use = |at: u64| {
        let next = places.partition_point(|place| place.end <= at);
        places.get(next).is_some_and(|place| place.contains(&at))
    };
    let mut at = world.dice.below(world.scale.slab_step);
    while at < len {
        let (bit, disk) = (bit(&mut world.dice), world.disk.snapshot());
        disk.corrupt(object, at, |byte| *byte ^= bit).expect("in range");
        let part = if in_use(at) { "bucket in use" } else { "free slots and padding" };
        tally.count(&format!("byte of slab ({part}, before an opening)"), world.quick(disk, at));
        at += 1 + world.dice.below(2 * world.scale.slab_step - 1);
    }
    let mut bytes = world.bytes(&world.disk, object);
    for (at, byte) in (0..).zip(&mut bytes).filter(|(at, _)| !in_use(*at)) {
        *byte ^= bit(&mut Dice::new(at));
    }
    tally.count("slab: all bytes not in use at once", world.whole(world.with(object, &bytes)));
}

/// One byte of each bucket, under a volume that then reads all its blocks.
fn change_slab_and_read(world: &mut World, tally: &mut Tally) {
    let mut volume = world.open(Arc::new(world.disk.snapshot())).expect("sound");
    let places = fuzzing::places(&mut volume);
    let step = (places.len() / if world.scale.step == 1 { 256 } else { 8 }).max(1);
    for (_, object, place) in places.into_iter().step_by(step) {
        let store = Arc::new(world.disk.snapshot());
        let mut volume = world.open(store.clone()).expect("sound");
        let at = place.start + world.dice.below(place.end - place.start);
        store.corrupt(&object, at, |byte| *byte ^= 1).expect("in range");
        let all = (0..world.scale.blocks).collect();
        let outcome = judge(|| world.compare(&mut volume, all));
        tally.count("byte of slab (bucket in use, then all blocks are read)", outcome);
    }
}

/// Every slot swapped with another one.
fn swap_slots(world: &mut World, tally: &mut Tally) {
    for (object, _) in world.objects() {
        if World::is_slab(&object).is_some() {
            swap_slots_of(world, tally, &object);
        }
    }
}

fn swap_slots_of(world: &mut World, tally: &mut Tally, object: &str) {
    let mut volume = world.open(Arc::new(world.disk.snapshot())).expect("sound");
    let places = fuzzing::places(&mut volume).into_iter().filter(|place| place.1 == object);
    let places: Vec<Range<u64>> = places.map(|(_, _, place)| place).collect();
    // An object that had buckets while the tree grew may have none now.
    let Some(len) = places.first().map(|place| place.end - place.start) else { return };
    let slot_bytes = len.next_multiple_of(World::is_slab(object).expect("a slab"));
    let bytes = world.bytes(&world.disk, object);
    let slots = bytes.len() as u64 / slot_bytes;
    if slots < 2 {
        return;
    }
    let used: BTreeSet<u64> = places.iter().map(|at| at.start / slot_bytes).collect();
    let step = if world.scale.step == 1 { 1 } else { 16 };
    for one in (0..slots).step_by(step) {
        let other = (one + 1 + world.dice.below(slots - 1)) % slots;
        let mut swapped = bytes.clone();
        for at in 0..len {
            swapped.swap((one * slot_bytes + at) as usize, (other * slot_bytes + at) as usize);
        }
        let any = used.contains(&one) || used.contains(&other);
        let what = if any { "slots swapped" } else { "free slots swapped" };
        tally.count(what, world.quick(world.with(object, &swapped), one));
    }
}

/// Objects dropped, swapped, emptied, and taken from another volume.
fn drop_and_swap(world: &mut World, tally: &mut Tally) {
    let other = World::make(Scale { commits: 2, ..SAMPLE });
    let objects = world.objects();
    for (object, _) in &objects {
        let part = if world.is_void(object) { " (void)" } else { "" };
        let dropped = world.whole(world.without(object));
        tally.count(&format!("{object}{part} dropped"), dropped);
        if other.disk.len(object).expect("memory").is_some() {
            let foreign = world.bytes(&other.disk, object);
            let outcome = world.whole(world.with(object, &foreign));
            tally.count(&format!("{object}{part} of another volume"), outcome);
        }
        for (second, _) in objects.iter().filter(|(second, _)| second > object) {
            let disk = world.with(object, &world.bytes(&world.disk, second));
            let bytes = world.bytes(&world.disk, object);
            disk.put(second, &bytes, PutMode::Replace).expect("memory");
            tally.count(&format!("{object} and {second} swapped"), world.whole(disk));
        }
    }
}

/// Objects cut short at many lengths, and made longer.
fn truncate(world: &mut World, tally: &mut Tally) {
    for (object, len) in world.objects() {
        let part = if world.is_void(&object) { " (void)" } else { "" };
        let step = (len / world.scale.cuts).max(1);
        for cut in (0..len).step_by(step as usize).chain([len.saturating_sub(1)]) {
            let disk = world.disk.snapshot();
            disk.truncate(&object, cut).expect("memory");
            tally.count(&format!("{object}{part} cut short"), world.quick(disk, cut));
        }
        let longer = [world.bytes(&world.disk, &object), content(1, 1, 5000)].concat();
        let outcome = world.whole(world.with(&object, &longer));
        tally.count(&format!("{object}{part} made longer"), outcome);
    }
}

/// The volume, and each of its objects alone, as after an earlier commit; every mixture of the last
/// commit and the previous one.
fn roll_back(world: &mut World, tally: &mut Tally) {
    for (index, earlier) in world.earlier.iter().enumerate() {
        tally.count("all rolled back", world.whole(earlier.snapshot()));
        if index % world.scale.rollbacks != 0 {
            continue;
        }
        for (object, _) in world.objects() {
            if earlier.len(&object).expect("memory").is_some() {
                let disk = world.with(&object, &world.bytes(earlier, &object));
                tally.count(&format!("{object} rolled back alone"), world.whole(disk));
            }
        }
    }
    let Some(before) = world.earlier.last() else { return };
    let objects = world.objects();
    for choice in 0..1u32 << objects.len() {
        let disk = world.disk.snapshot();
        for (_, (object, _)) in (0..).zip(&objects).filter(|(at, _)| choice >> at & 1 == 1) {
            if before.len(object).expect("memory").is_some() {
                disk.put(object, &world.bytes(before, object), PutMode::Replace).expect("memory");
            }
        }
        tally.count("a mixture of the last two commits", world.whole(disk));
    }
}

/// One bit in each byte of a crashed session's journal. The records before a damaged one are
/// replayed; the last commit's content survives in any case.
fn change_live_journal(world: &mut World, tally: &mut Tally) {
    let volume = world.open(Arc::new(world.crashed.snapshot())).expect("a crash is recovered");
    assert!(volume.info().expect("memory").replayed > 0, "something was shown again");
    let records = world.records();
    let last = records.last().expect("records").clone();
    println!("journal of the crashed session: {} records, {} bytes", records.len(), last.end);
    let mut at = world.dice.below(world.scale.step);
    while at < last.end {
        let (bit, disk) = (bit(&mut world.dice), world.crashed.snapshot());
        disk.corrupt("journal", at, |byte| *byte ^= bit).expect("in range");
        let part = if last.contains(&at) { "last record" } else { "earlier records" };
        let outcome = world.quick(disk, at);
        tally.count(&format!("byte of journal ({part} of a crashed session)"), outcome);
        at += world.scale.step;
    }
    let len = last.end;
    for cut in (0..=len).step_by(512) {
        let disk = world.crashed.snapshot();
        disk.truncate("journal", cut).expect("memory");
        tally.count("journal of a crashed session cut short", world.quick(disk, cut));
    }
}

/// What the current commit needs must not change unnoticed.
fn expect_refused(tally: &Tally) {
    for (what, outcomes) in &tally.0 {
        let needed = ["bucket in use, before", "slots swapped"]
            .iter()
            .any(|part| what.contains(part) && !what.contains("free slots"));
        let needed = needed || what.contains("under an open") || what == "all rolled back";
        assert!(!needed || tally.no_effect(what) == 0, "{what} unnoticed: {outcomes:?}");
        // What is small has a second copy.
        let small = ["header", "commit", "state-", "log-"];
        let of_one = |what: &str| small.iter().any(|name| what.starts_with(name));
        let alone = what.strip_prefix("byte of ").is_some_and(of_one)
            || [" dropped", " cut short", " made longer", " rolled back alone"]
                .iter()
                .any(|end| of_one(what) && what.ends_with(end));
        let idle = ["slab: all bytes not in use at once", "free slots swapped"];
        let harmless = alone || idle.contains(&what.as_str());
        let tried: u64 = outcomes.values().sum();
        assert!(!harmless || tally.no_effect(what) == tried, "{what}: {outcomes:?}");
    }
}

/// A volume of this scale, or of the other one where everything is tried.
fn world(sample: Scale, full: Scale) -> World {
    let world = World::make(if is_full() { full } else { sample });
    assert_eq!(world.whole(world.disk.snapshot()), Outcome::NoEffect);
    world
}

/// Whether to try everything.
fn is_full() -> bool {
    at_least(100.0)
}

fn damage_the_log(mut world: World) {
    let mut tally = Tally::default();
    change_live_journal(&mut world, &mut tally);
    tally.print();
    tally.expect_no_bugs();
    let earlier = "byte of journal (earlier records of a crashed session)";
    assert_eq!(tally.no_effect(earlier), 0, "later records tell that one is damaged");
}

fn damage_everything(mut world: World) {
    println!("seed {SEED}, commit {}, objects {:?}", world.known.epoch, world.objects());
    let mut tally = Tally::default();
    for work in [
        change_bytes,
        change_slab_bytes,
        change_slab_and_open,
        change_slab_and_read,
        swap_slots,
        drop_and_swap,
        truncate,
        roll_back,
    ] {
        work(&mut world, &mut tally);
        if is_full() {
            tally.print();
        }
    }
    tally.print();
    tally.expect_no_bugs();
    expect_refused(&tally);
}

#[test]
fn a_damaged_log_of_a_crashed_session_gives_no_wrong_data() {
    damage_the_log(world(SAMPLE, FULL));
}

#[test]
fn damage_is_refused_and_named_wherever_it_is() {
    damage_everything(world(SAMPLE, FULL));
}
