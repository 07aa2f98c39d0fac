//! Objects of a volume at rest are lost, cut, changed or swapped in the store: what that costs.

use super::{BLOCKS, contents, create, fill, open, read, write};
use oblivio_store::{Held, MemoryStore, Objects, PutMode, ReadAt};
use oblivio_testkit::SplitMix64;
use oblivio_volume::{BlockSpace, Error};
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

/// A volume at rest, after this number of steps and two sessions.
fn at_rest(exclusive: bool, steps: u64) -> (MemoryStore, Vec<Option<u8>>) {
    let store = Arc::new(MemoryStore::new());
    let mut dice = SplitMix64::new(steps);
    let mut volume = create(store.clone(), exclusive, 1);
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

/// There are two of what is small: with any one object damaged but for buckets, all is there, and
/// the next end of a session heals it.
#[test]
fn any_one_object_but_of_buckets_costs_nothing() {
    let mut said = 0;
    for (exclusive, steps) in [(true, 30), (true, 333), (false, 120)] {
        let (rest, model) = at_rest(exclusive, steps);
        let mut dice = SplitMix64::new(steps);
        let kinds = ["d-", "e-", "h-", "p-", "r-", "s-", "t-", "w-"];
        let names = rest.list().expect("memory").into_iter().map(|it| it.0);
        let small: Vec<String> =
            names.filter(|name| kinds.iter().any(|kind| name.starts_with(kind))).collect();
        for (name, kind) in small.iter().flat_map(|name| HARMS.map(|kind| (name, kind))) {
            let store = Arc::new(rest.snapshot());
            if !harm(&store, name, kind, &mut dice) {
                continue;
            }
            let failed = |error: Error| panic!("{name} {kind:?}: {error}");
            let mut volume = open(store.clone(), 5).unwrap_or_else(failed);
            assert_eq!(contents(&mut volume), model, "{name} {kind:?}");
            said += volume.take_damage().len();
            volume.finish().expect("healed");
            drop(volume);
            // It is whole again: another one of what matters now may be lost.
            let names = store.list().expect("memory").into_iter().map(|it| it.0);
            let small: Vec<String> =
                names.filter(|name| ["e-", "p-"].iter().any(|it| name.starts_with(it))).collect();
            let next = &small[dice.below(small.len() as u64) as usize];
            harm(&store, next, Harm::Lost, &mut dice);
            let failed = |error: Error| panic!("{name} {kind:?}, then {next}: {error}");
            let mut volume = open(store, 6).unwrap_or_else(failed);
            assert_eq!(contents(&mut volume), model, "{name} {kind:?}, then {next}");
        }
    }
    assert!(said > 20, "{said}: damage was healed and not named");
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
            let named = volume.take_damage();
            assert_eq!(contents(&mut volume), model, "{part}");
            volume.finish().expect("memory");
            // A part that is only kept for its group is not read.
            if let Some(place) = named.first() {
                assert_eq!(place.object, part);
                let again = store.len(&part).expect("memory").is_some();
                let after = store.list_under("p-").expect("memory");
                assert!(again || after.len() < 5, "{part}: {after:?}");
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
    let places = volume.take_damage();
    let said: Vec<String> = places.iter().map(ToString::to_string).collect();
    assert_eq!(said, [format!("{part}: it is gone; its group made it again")]);
    assert_eq!(volume.access(vec![read(0)]).expect("sound").len(), 1);
}
