//! Objects of a volume at rest are lost, cut, changed or swapped in the store: what that costs.

use super::{BLOCKS, BYTES, contents, fill, open, options, passphrase, read, write};
use oblivio_crypto::KdfParams;
use oblivio_engine::Lost;
use oblivio_store::{Held, MemoryStore, Objects, PutMode, ReadAt};
use oblivio_testkit::SplitMix64;
use oblivio_volume::windows::{WindowOptions, WindowVolume};
use oblivio_volume::{
    BlockSpace, CacheOptions, Environment, Error, Inspected, OpenOptions, Volume,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What happens to an object.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Lost,
    Cut,
    Flipped,
    /// It has the bytes of another object of its kind.
    Swapped,
}

const HARMS: [Harm; 4] = [Harm::Lost, Harm::Cut, Harm::Flipped, Harm::Swapped];

fn bytes_of(store: &MemoryStore, object: &str) -> Vec<u8> {
    let mut buf = vec![0; store.len(object).expect("memory").expect("there") as usize];
    store.read(&mut [ReadAt { object, offset: 0, buf: &mut buf }]).expect("there");
    buf
}

/// Whether it could be done.
fn harm(store: &MemoryStore, object: &str, harm: Harm, dice: &mut SplitMix64) -> bool {
    let bytes = bytes_of(store, object);
    let cut = dice.below(bytes.len() as u64) as usize;
    match harm {
        Harm::Lost => store.delete(&[object]).expect("memory"),
        Harm::Cut => store.put(object, &bytes[..cut], PutMode::Replace).expect("memory"),
        Harm::Flipped => store
            .corrupt(object, cut as u64, |byte| *byte ^= 1 << dice.below(8))
            .expect("in the object"),
        Harm::Swapped => {
            let alike = store.list_under(&object[..2]).expect("memory");
            let others: Vec<_> = alike.iter().filter(|other| other.0 != object).collect();
            if others.is_empty() {
                return false;
            }
            let other = &others[dice.below(others.len() as u64) as usize].0;
            let others = bytes_of(store, other);
            store.put(object, &others, PutMode::Replace).expect("memory");
        }
    }
    true
}

/// A volume at rest, after this number of steps and two sessions. Every other one has a larger
/// memory, of seven parts.
pub(super) fn at_rest(exclusive: bool, steps: u64) -> (MemoryStore, Vec<Option<u8>>) {
    let store = Arc::new(MemoryStore::new());
    let mut dice = SplitMix64::new(steps);
    let levels = 3 + 2 * (steps % 2);
    let options = WindowOptions { pool_bytes: BYTES * ((4 << levels) - 4), ..options(exclusive) };
    let environment = Environment::from_seed(1);
    let open_with = OpenOptions { environment, ..OpenOptions::default() };
    let kdf = KdfParams::TEST;
    let mut volume = WindowVolume::create(store.clone(), &passphrase(), kdf, options, open_with)
        .expect("an empty store");
    volume.reserve(BLOCKS).expect("room");
    let mut model = fill(&mut volume, &mut dice, steps);
    volume.finish().expect("memory");
    drop(volume);
    let mut volume = open(store.clone(), 2).expect("sound");
    for _ in 0..dice.below(60) {
        let (id, byte) = (dice.below(BLOCKS), dice.below(256) as u8);
        volume.defer(vec![write(id, byte)]).expect("memory");
        model[id as usize] = Some(byte);
    }
    volume.commit().expect("memory");
    volume.finish().expect("memory");
    (store.snapshot(), model)
}

pub(super) fn small_objects(store: &MemoryStore) -> Vec<String> {
    let names = store.list().expect("memory").into_iter().map(|it| it.0);
    names.filter(|name| !name.starts_with("b-")).collect()
}

/// There are two of what is small: with any one object damaged but for buckets, all is there, and
/// the next end of a session heals it.
#[test]
fn any_one_object_but_of_buckets_costs_nothing() {
    let (mut tried, mut said) = (0, 0);
    for (exclusive, steps) in [(true, 30), (true, 333), (false, 120), (false, 501)] {
        let (rest, model) = at_rest(exclusive, steps);
        let mut dice = SplitMix64::new(steps);
        let small = small_objects(&rest);
        for (name, kind) in small.iter().flat_map(|name| HARMS.map(|kind| (name, kind))) {
            let store = Arc::new(rest.snapshot());
            if !harm(&store, name, kind, &mut dice) {
                continue;
            }
            let failed = |error: Error| panic!("{name} {kind:?}: {error}");
            let mut volume = open(store.clone(), 5).unwrap_or_else(failed);
            assert_eq!(contents(&mut volume), model, "{name} {kind:?}");
            (tried, said) = (tried + 1, said + volume.damaged().len());
            volume.finish().expect("healed");
            drop(volume);
            // It is whole again: another one may be lost.
            let small = small_objects(&store);
            let next = &small[dice.below(small.len() as u64) as usize];
            harm(&store, next, Harm::Lost, &mut dice);
            let failed = |error: Error| panic!("{name} {kind:?}, then {next}: {error}");
            let mut volume = open(store, 6).unwrap_or_else(failed);
            assert_eq!(contents(&mut volume), model, "{name} {kind:?}, then {next}");
        }
    }
    assert!(said > 20, "{said}: damage was healed and not named");
    eprintln!("{tried} objects damaged, {said} named");
}

/// The memory in all its forms: growing, with groups that go.
#[test]
fn any_one_part_comes_back_however_old_the_volume_is() {
    for steps in (7..700).step_by(23) {
        let (rest, model) = at_rest(true, steps);
        for (part, _) in rest.list_under("p-").expect("memory") {
            let store = Arc::new(rest.snapshot());
            store.delete(&[&part]).expect("memory");
            let mut volume = open(store.clone(), 5).expect("the others make it again");
            let named = volume.damaged();
            assert_eq!(contents(&mut volume), model, "{part}");
            volume.finish().expect("memory");
            // A part that is only kept for its group is not read.
            if let Some(place) = named.first() {
                assert_eq!(place.object, part);
                let after = store.list_under("p-").expect("memory");
                let number = |name: &str| name.rsplit_once('-').map(|it| it.1.to_owned());
                let gone = after.iter().all(|(other, _)| number(other) > number(&part));
                assert!(gone || after.iter().any(|it| it.0 == part), "{part}: {after:?}");
            }
        }
    }
}

#[test]
fn what_is_lost_is_named() {
    let (rest, _) = at_rest(true, 100);
    let store = Arc::new(rest);
    let (part, _) = store.list_under("p-").expect("memory").pop().expect("a part");
    store.delete(&[&part]).expect("memory");
    let mut volume = open(store, 5).expect("healed");
    let places = volume.damaged();
    let said: Vec<String> = places.iter().map(ToString::to_string).collect();
    assert_eq!(said, [format!("{part}: it is gone; its group made it again")]);
    assert_eq!(volume.access(vec![read(0)]).expect("sound").len(), 1);
}

/// All blocks: their first bytes, or that they are lost.
fn outcomes(volume: &mut impl BlockSpace) -> Vec<Result<Option<u8>, Lost>> {
    let found = volume.access_each((0..BLOCKS).map(read).collect()).expect("the rest goes on");
    found.into_iter().map(|it| it.map(|block| block.map(|bytes| bytes[0]))).collect()
}

/// Checks a volume with damage against what is in it; the blocks that it says are lost.
fn judged(volume: &mut impl BlockSpace, model: &[Option<u8>], what: &str) -> BTreeSet<u64> {
    let mut lost = BTreeSet::new();
    for (id, (found, right)) in (0..).zip(outcomes(volume).into_iter().zip(model)) {
        match found {
            Ok(found) => assert_eq!(found, *right, "{what}: block {id}"),
            Err(_) => assert!(right.is_some() && lost.insert(id), "{what}: block {id} never was"),
        }
    }
    lost
}

/// Repairs a volume; what is found then.
fn repaired(volume: &mut Volume) -> Inspected {
    volume.repair(&mut |_, _| {}).expect("it is repaired");
    volume.inspect(&mut |_, _| {}, &mut |_| {}).expect("it goes on")
}

fn ids(ranges: &[std::ops::Range<u64>]) -> BTreeSet<u64> {
    ranges.iter().cloned().flatten().collect()
}

/// The most blocks that an object holds: four turns of four slots.
const MOST_IN_OBJECT: usize = 16;

/// Each object of buckets: it costs its own blocks, says so, and nothing else. What an inspection
/// says is what is lost; a second computer sees the same; a repair makes the tree whole.
#[test]
fn an_object_of_buckets_costs_its_own_blocks() {
    let (mut some, mut named) = (0, 0);
    for (exclusive, steps) in [(true, 333), (false, 700)] {
        let (rest, model) = at_rest(exclusive, steps);
        let mut dice = SplitMix64::new(steps);
        let buckets = rest.list_under("b-").expect("memory");
        for (nth, (name, kind)) in
            buckets.iter().flat_map(|it| HARMS.map(|kind| (&it.0, kind))).enumerate()
        {
            let what = &format!("{name} {kind:?}");
            let store = Arc::new(rest.snapshot());
            if !harm(&store, name, kind, &mut dice) {
                continue;
            }
            let mut volume = open(store.clone(), 5).expect("it opens");
            let mut places = Vec::new();
            let inspected = volume.inspect(&mut |_, _| {}, &mut |place| places.push(place));
            let inspected = inspected.expect("it goes on");
            assert_eq!(inspected.damaged, places.len() as u64, "{what}");
            // One of an object that is no longer current, or of its end, costs nothing.
            named += usize::from(places.iter().any(|place| place.object == *name));
            assert!(places.iter().all(|place| place.object == *name), "{what}: {places:?}");
            let lost = judged(&mut volume, &model, what);
            assert_eq!(lost, ids(&inspected.lost), "{what}");
            assert!(lost.len() <= MOST_IN_OBJECT, "{what}: {lost:?}");
            some += lost.len();
            if nth % 3 == 0 {
                volume.finish().expect("it ends");
            }
            drop(volume);
            // Another computer; then what is lost is written, and gone.
            let mut volume = open(store.clone(), 6).expect("it opens");
            assert_eq!(judged(&mut volume, &model, what), lost, "{what}");
            let mut model = model.clone();
            for &id in &lost {
                volume.defer(vec![write(id, 7)]).expect("memory");
                model[id as usize] = Some(7);
            }
            let whole = repaired(&mut volume);
            assert_eq!((whole.damaged, &whole.lost[..]), (0, &[][..]), "{what}");
            assert!(judged(&mut volume, &model, what).is_empty(), "{what}");
            volume.verify(&mut |_, _| {}).expect("whole");
            volume.finish().expect("it ends");
        }
    }
    assert!(some > 100 && named > 100, "{some} blocks, {named} objects");
}

/// One in a hundred objects, and the small ones, as long as none is lost with what stands for it.
#[test]
fn much_damage_costs_what_it_hit() {
    let (mut whole, mut lost) = (0, 0);
    for seed in 0..20 {
        let (rest, model) = at_rest(seed % 2 == 0, 300 + 20 * seed);
        let mut dice = SplitMix64::new(seed);
        let store = Arc::new(rest.snapshot());
        let mut names = rest.list_under("b-").expect("memory");
        for _ in 0..names.len().div_ceil(100) {
            let at = dice.below(names.len() as u64) as usize;
            let kind = HARMS[dice.below(4) as usize];
            harm(&store, &names.swap_remove(at).0, kind, &mut dice);
        }
        let (small, _) = rest.list_under("p-").expect("memory").pop().expect("a part");
        harm(&store, &small, Harm::Lost, &mut dice);
        let what = &format!("seed {seed}");
        let mut volume = open(store.clone(), 5).expect("it opens");
        let before = judged(&mut volume, &model, what);
        let repaired = repaired(&mut volume);
        assert_eq!(repaired.damaged, 0, "{what}");
        assert_eq!(ids(&repaired.lost), before, "{what}");
        volume.finish().expect("it ends");
        drop(volume);
        let mut volume = open(store, 6).expect("it opens");
        assert_eq!(judged(&mut volume, &model, what), before, "{what}");
        lost += before.len();
        whole += model.iter().flatten().count() - before.len();
    }
    assert!(whole > 20 * lost, "{whole} blocks came back, {lost} are lost");
}

/// The disk cache has it still: then nothing is lost, and the next windows put it back.
#[test]
fn what_the_disk_cache_holds_is_not_lost() {
    let cache = Arc::new(MemoryStore::new());
    let opened = |store: &Arc<MemoryStore>, seed| {
        let cache = CacheOptions { store: cache.clone(), bytes: 1 << 30 };
        let environment = Environment::from_seed(seed);
        let open = OpenOptions { environment, cache: Some(cache), ..OpenOptions::default() };
        Volume::open(store.clone(), &passphrase(), open).expect("it opens")
    };
    let (rest, model) = at_rest(true, 333);
    let store = Arc::new(rest);
    let mut volume = opened(&store, 3);
    for _ in 0..4 {
        assert_eq!(contents(&mut volume), model);
    }
    volume.finish().expect("memory");
    drop(volume);
    let mut dice = SplitMix64::new(1);
    for (nth, (name, _)) in store.list_under("b-").expect("memory").iter().enumerate() {
        harm(&store, name, HARMS[nth % 4], &mut dice);
    }
    let mut volume = opened(&store, 4);
    let mut places = Vec::new();
    let found = volume.inspect(&mut |_, _| {}, &mut |place| places.push(place)).expect("goes on");
    assert!(found.damaged > 10 && places.iter().any(|it| it.why.contains("still has it")));
    let lost = judged(&mut volume, &model, "cached");
    let written = model.iter().flatten().count();
    assert!(lost.len() * 4 < written, "{} of {written} are lost", lost.len());
    assert_eq!(repaired(&mut volume).damaged, 0);
    volume.finish().expect("memory");
    drop(volume);
    // The store has it again, for a computer without the cache.
    let mut volume = open(store, 6).expect("whole");
    assert_eq!(judged(&mut volume, &model, "without"), lost);
}

/// Damage below an open volume: an inspection finds it, makes it whole, and names it.
#[test]
fn a_check_makes_whole_what_is_small() {
    for steps in [120, 333] {
        let (rest, model) = at_rest(true, steps);
        let mut dice = SplitMix64::new(steps);
        for kind in HARMS {
            let store = Arc::new(rest.snapshot());
            let mut volume = open(store.clone(), 5).expect("sound");
            volume.verify(&mut |_, _| {}).expect("sound");
            let looked_at = ["d-", "p-", "r-"];
            let small = small_objects(&store).into_iter();
            let small: Vec<String> =
                small.filter(|name| looked_at.iter().any(|it| name.starts_with(it))).collect();
            assert!(small.len() >= 4, "{small:?}");
            for name in &small {
                let before = volume.damaged().len();
                // The checkpoint before may have replaced it.
                if store.len(name).expect("memory").is_none()
                    || !harm(&store, name, kind, &mut dice)
                {
                    continue;
                }
                volume.verify(&mut |_, _| {}).expect("whole again");
                let said = volume.damaged();
                assert_eq!(said.len(), before + 1, "{name} {kind:?}: {said:?}");
                assert_eq!(said[before].object, *name, "{kind:?}");
                volume.verify(&mut |_, _| {}).expect("whole");
                assert_eq!(volume.damaged().len(), before + 1, "{name} {kind:?}");
            }
            assert_eq!(contents(&mut volume), model, "{kind:?}");
            volume.finish().expect("memory");
        }
    }
}
