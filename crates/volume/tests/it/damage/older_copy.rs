//! A repair with an older copy: exactly the lost blocks that were not accessed since come back, and
//! nothing older ever does, whatever the copy is.

use super::around::{Damaged, expect, inspected, reopened};
use super::world::{SAMPLE, World, content, passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{MemoryStore, Slots, WriteAt};
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_testkit::{CrashStore, Dice};
use oblivio_volume::{BlockSpace, OpenOptions, Volume};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copy {
    /// As it was after this commit.
    Whole,
    /// And its disk has harms of its own.
    Harmed,
    /// Some of its bytes are those of the newer volume at the same places.
    Newer,
    /// Somebody went on from it, apart from the volume.
    Fork,
    /// Its session crashed.
    Crashed,
}

const COPIES: [Copy; 6] =
    [Copy::Whole, Copy::Whole, Copy::Harmed, Copy::Newer, Copy::Fork, Copy::Crashed];

fn open(world: &World, store: MemoryStore) -> Option<Volume> {
    let memory_bytes = world.scale.memory_bytes;
    let options = OpenOptions { memory_bytes, ..OpenOptions::default() };
    Volume::open(Arc::new(store), &passphrase(), options).ok()
}

/// A copy of the volume as it was after commit `round`; nothing if it does not open.
fn copy_of(world: &World, kind: Copy, round: usize, dice: &mut Dice) -> Option<Volume> {
    let then = world.earlier.get(round).unwrap_or(&world.disk).snapshot();
    match kind {
        Copy::Whole => {}
        Copy::Crashed => return open(world, world.crashed.snapshot()),
        Copy::Harmed => return open(world, Damaged::of(&then, dice, 6).disk.snapshot()),
        Copy::Newer => {
            for (object, len) in world.objects() {
                if World::is_slab(&object).is_some() && len > 4096 {
                    let at = dice.below(len - 4096) as usize;
                    let bytes = &world.bytes(&world.disk, &object)[at..at + 4096];
                    then.write(&[WriteAt::new(&object, at as u64, bytes)]).expect("memory");
                }
            }
        }
        Copy::Fork => {
            let mut fork = open(world, then.snapshot())?;
            let ids = 0..world.scale.blocks;
            let write = |id| BlockOp {
                id: BlockId(id),
                action: Action::Write(content(id, 1 << 40, world.scale.block_bytes)),
            };
            fork.access(ids.map(write).collect()).expect("sound");
            fork.finish().expect("sound");
            return Some(fork);
        }
    }
    open(world, then)
}

#[test]
fn an_older_copy_gives_exactly_what_was_not_touched_since() {
    let world = World::make(SAMPLE);
    let mut dice = Dice::new(seed(493));
    let (mut given_by_all, mut lost_by_all) = (0, 0);
    for _ in 0..scaled(40) {
        let kind = COPIES[dice.index(COPIES.len())];
        let round = dice.index(world.earlier.len() + 1);
        let damaged = Damaged::any(&world, &mut dice, 6);
        let what = format!("{kind:?} of commit {round}; {}", damaged.what);
        let mut volume = damaged.open(&world);
        let (_, mut lost) = inspected(&mut volume);
        if dice.below(2) == 0 {
            // Somebody asks for the lost blocks before, and again.
            expect(&world, &mut volume, &lost, &what);
            expect(&world, &mut volume, &lost, &what);
        }
        volume.finish().expect("it commits");
        let mut known = volume.known();
        drop(volume);
        let mut store = damaged.store.clone();
        if dice.below(3) == 0
            && let Some(mut copy) = copy_of(&world, kind, round, &mut dice)
        {
            // A first try dies somewhere.
            let crashing = Arc::new(CrashStore::holding(&damaged.disk));
            let mut volume = reopened(&world, Arc::clone(&crashing).into(), known);
            let same = volume.found_in(&mut copy, &mut |_, _| {}).unwrap_or_default();
            crashing.crash_after(dice.below(120));
            let _ = volume.restore_from(&mut copy, &same, &mut |_, _| {});
            drop(volume);
            let left = Arc::new(crashing.survivors(dice.below(1 << 32)));
            let mut volume = world.open(Arc::clone(&left)).expect("it opens after a crash");
            let (_, still) = inspected(&mut volume);
            assert!(still.is_subset(&lost), "{what}: more is lost after a crash");
            lost = still;
            volume.finish().expect("it commits");
            (known, store) = (volume.known(), left.into());
        }
        let Some(mut copy) = copy_of(&world, kind, round, &mut dice) else { continue };
        let mut volume = reopened(&world, store.clone(), known);
        let same = volume.found_in(&mut copy, &mut |_, _| {}).expect("both are read");
        let given = volume.restore_from(&mut copy, &same, &mut |_, _| {}).expect("it is repaired");
        volume.finish().expect("it commits");
        let known = volume.known();
        drop(volume);

        let given: BTreeSet<u64> = given.into_iter().collect();
        let untouched = |id: &&u64| world.versions[id] <= round as u64;
        let expected: BTreeSet<u64> = lost.iter().filter(untouched).copied().collect();
        match kind {
            Copy::Whole => assert_eq!(given, expected, "{what}"),
            Copy::Harmed | Copy::Newer => assert!(given.is_subset(&expected), "{what}"),
            Copy::Fork | Copy::Crashed => assert!(given.is_empty(), "{what}"),
        }
        (given_by_all, lost_by_all) =
            (given_by_all + given.len() as u64, lost_by_all + lost.len() as u64);
        let mut volume = reopened(&world, store, known);
        let (named, still) = inspected(&mut volume);
        let left: BTreeSet<u64> = lost.difference(&given).copied().collect();
        assert_eq!((named, &still), (Vec::new(), &left), "{what}: after the repair");
        expect(&world, &mut volume, &left, &what);
    }
    println!("{lost_by_all} blocks were lost, {given_by_all} came back");
    assert!(given_by_all * 5 > lost_by_all, "{given_by_all} of {lost_by_all}");
}
