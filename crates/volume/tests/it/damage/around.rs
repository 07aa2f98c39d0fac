//! A tree with damaged buckets: all that they did not carry is read, a check names what is lost,
//! and a repair makes it whole, through crashes as well.

use super::sectors::{BadSector, Harm, harm};
use super::world::{SAMPLE, Scale, World, content, passphrase, read};
use oblivio_engine::{Action, BlockId, BlockOp, Lost};
use oblivio_store::{AnyStore, Held, MemoryStore};
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_testkit::{CrashStore, Dice};
use oblivio_volume::{BlockSpace, DamagedPlace, MemoryKeeper, OpenOptions, Volume};
use std::collections::BTreeSet;
use std::sync::Arc;

const KINDS: [Harm; 4] = [Harm::Noise, Harm::Zeros, Harm::Cut, Harm::Unreadable];

/// A damaged volume, and what is known of it.
pub struct Damaged {
    pub what: String,
    pub disk: Arc<MemoryStore>,
    /// With a sector that cannot be read, if there is one.
    pub store: AnyStore,
}

impl Damaged {
    /// Up to `most` harms to the slabs. A flipped bit is the usual one.
    pub fn any(world: &World, dice: &mut Dice, most: u64) -> Self {
        Self::of(&world.disk, dice, most)
    }

    pub fn of(whole: &MemoryStore, dice: &mut Dice, most: u64) -> Self {
        let slabs: Vec<(String, u64)> = whole.list().expect("memory");
        let is_slab = |(name, len): &(String, u64)| World::is_slab(name).is_some() && *len > 0;
        let slabs: Vec<_> = slabs.into_iter().filter(is_slab).collect();
        let disk = Arc::new(whole.snapshot());
        let (mut what, mut store) = (String::new(), AnyStore::from(Arc::clone(&disk)));
        for _ in 0..1 + dice.below(most) {
            let (object, _) = &slabs[dice.below(slabs.len() as u64) as usize];
            let Some(len) = disk.len(object).expect("memory").filter(|len| *len > 512) else {
                continue;
            };
            let at = dice.below(len);
            if dice.below(2) == 0 {
                let bit = 1 << dice.below(8);
                disk.corrupt(object, at, |byte| *byte ^= bit).expect("in range");
                what += &format!("bit of {object} at {at}; ");
                continue;
            }
            // An object that is gone as a whole is another matter.
            let start = (at / 512 * 512).max(512);
            let kind = KINDS[dice.below(KINDS.len() as u64) as usize];
            let bad = harm(&disk, object, start..(start + 512).min(len), kind, dice);
            what += &format!("{kind:?} of {object} at {start}; ");
            if kind == Harm::Unreadable {
                store = Arc::new(BadSector::new(&disk, object, bad)).into();
            }
        }
        Self { what, disk, store }
    }

    pub fn open(&self, world: &World) -> Volume {
        world.open(self.store.clone()).unwrap_or_else(|error| panic!("{}: {error}", self.what))
    }
}

/// The damaged places that an inspection names, and the lost blocks.
pub fn inspected(volume: &mut Volume) -> (Vec<String>, BTreeSet<u64>) {
    let mut named = Vec::new();
    let mut name = |place: DamagedPlace| named.push(place.to_string());
    let found = volume.inspect(&mut |_, _| {}, &mut name).expect("it goes on");
    assert_eq!(found.damaged, named.len() as u64, "{named:?}");
    let lost = found.lost.iter().cloned().flatten().collect();
    (named, lost)
}

/// Every block is right, or one of these, which are lost.
pub fn expect(world: &World, volume: &mut Volume, lost: &BTreeSet<u64>, what: &str) {
    let ids: Vec<u64> = (0..world.scale.blocks).collect();
    let outcomes = volume.access_each(ids.iter().map(|id| read(*id)).collect()).expect("it reads");
    for (id, outcome) in ids.iter().zip(outcomes) {
        let written = content(*id, world.versions[id], world.scale.block_bytes);
        let right = if lost.contains(id) { Err(Lost) } else { Ok(Some(written)) };
        assert_eq!(outcome, right, "{what}: block {id}");
    }
}

pub fn reopened(world: &World, store: AnyStore, known: oblivio_volume::Known) -> Volume {
    let options = OpenOptions {
        memory_bytes: world.scale.memory_bytes,
        keeper: Some(Box::new(MemoryKeeper::knowing(known))),
        ..OpenOptions::default()
    };
    Volume::open(store, &passphrase(), options).expect("it opens again")
}

/// One damaged volume; gives how many blocks were lost.
fn one(world: &World, dice: &mut Dice, most: u64) -> u64 {
    let damaged = Damaged::any(world, dice, most);
    let what = &damaged.what;
    let mut volume = damaged.open(world);
    let (named, lost) = inspected(&mut volume);
    assert!(!named.is_empty() || lost.is_empty(), "{what}: lost without a cause");
    expect(world, &mut volume, &lost, what);
    // Reads write paths: what is lost stays lost, with nothing damaged on the path any more.
    expect(world, &mut volume, &lost, what);
    if dice.below(2) == 0 {
        volume.finish().expect("it commits");
        let known = volume.known();
        drop(volume);
        volume = reopened(world, damaged.store.clone(), known);
    }
    volume.repair(&mut |_, _| {}).unwrap_or_else(|error| panic!("{what}: {error}"));
    volume.finish().expect("it commits");
    let known = volume.known();
    drop(volume);

    let mut volume = reopened(world, damaged.store.clone(), known);
    let (named, still) = inspected(&mut volume);
    assert_eq!((named, &still), (Vec::new(), &lost), "{what}: after a repair");
    expect(world, &mut volume, &lost, what);
    // A part of a lost block cannot be written, all of it can.
    for id in &lost {
        let part = Action::Patch { offset: 1, bytes: vec![1] };
        let outcome = volume.access_each(vec![BlockOp { id: BlockId(*id), action: part }]);
        assert_eq!(outcome.expect("it goes on"), [Err(Lost)], "{what}");
        let written = content(*id, world.versions[id], world.scale.block_bytes);
        let all = Action::Write(written);
        volume.access(vec![BlockOp { id: BlockId(*id), action: all }]).expect("it is written");
    }
    volume.finish().expect("it commits");
    volume.verify(&mut |_, _| {}).unwrap_or_else(|error| panic!("{what}: {error}"));
    expect(world, &mut volume, &BTreeSet::new(), what);
    lost.len() as u64
}

fn campaign(scale: Scale, tries: u64, most: u64) {
    let world = World::make(scale);
    let mut dice = Dice::new(seed(491));
    let (mut with, mut lost) = (0, 0);
    for _ in 0..tries {
        let of_one = one(&world, &mut dice, most);
        lost += of_one;
        with += u64::from(of_one > 0);
    }
    println!("{tries} volumes, {with} of them lost {lost} blocks of {} each", world.scale.blocks);
    assert!(with * 3 > tries, "damage costs something: {with} of {tries}");
}

#[test]
fn all_that_a_damaged_bucket_did_not_carry_is_read() {
    campaign(SAMPLE, scaled(40), 4);
}

/// With two checkpoints, leaves that lack slots, and a tree that is mostly not in memory.
#[test]
fn the_same_in_a_larger_tree() {
    campaign(Scale { blocks: 700, commits: 12, ..SAMPLE }, scaled(8), 60);
}

/// A repair that dies at any operation is done again; nothing more is lost.
#[test]
fn a_repair_survives_crashes() {
    let world = World::make(SAMPLE);
    let mut dice = Dice::new(seed(492));
    for _ in 0..scaled(24) {
        let damaged = Damaged::any(&world, &mut dice, 4);
        let what = &damaged.what;
        let store = Arc::new(CrashStore::holding(&damaged.disk));
        let mut volume = world.open(Arc::clone(&store)).expect("it opens");
        let (_, lost) = inspected(&mut volume);
        store.crash_after(dice.below(120));
        let _ = volume.repair(&mut |_, _| {}).and_then(|()| volume.finish());
        drop(volume);
        let left = Arc::new(store.survivors(dice.below(1 << 32)));
        let mut volume = world.open(left).unwrap_or_else(|error| panic!("{what}: {error}"));
        expect(&world, &mut volume, &lost, what);
        volume.repair(&mut |_, _| {}).expect("it is repaired");
        let (named, still) = inspected(&mut volume);
        assert_eq!((named, &still), (Vec::new(), &lost), "{what}: after a repair");
    }
}
