//! Any one place of what is small, in a bucket: noise, zeros, cut there, or the object is gone. The
//! volume opens by itself, says what it was, and is whole after the next commit. An object that the
//! service does not give is no damage: that is waited for.

use super::damage::{at_rest, small_objects};
use super::{BLOCKS, contents, open, write};
use crate::damage::sectors::{Harm, harm};
use oblivio_store::{Held, MemoryStore};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_volume::{BlockSpace, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

fn sound<T>(what: &str, result: Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// Whether it was said, and the kind of the object.
fn one(rest: &MemoryStore, model: &[Option<u8>], dice: &mut Dice) -> (String, Harm, bool) {
    let small = small_objects(rest);
    let name = &small[dice.below(small.len() as u64) as usize];
    let len = rest.len(name).expect("memory").expect("there");
    let size = [512, 4096][dice.below(2) as usize];
    let start = dice.below(len.div_ceil(size).max(1)) * size;
    let kind = [Harm::Noise, Harm::Zeros, Harm::Gone, Harm::Cut][dice.below(4) as usize];
    let store = Arc::new(rest.snapshot());
    harm(&store, name, start..(start + size).min(len), kind, dice);
    let what = format!("{kind:?} of {name} at {start}, {size} bytes");
    let mut volume = sound(&what, open(store.clone(), 5));
    assert_eq!(contents(&mut volume), model, "{what}");
    let id = dice.below(BLOCKS);
    sound(&what, volume.access(vec![write(id, 99)]));
    sound(&what, volume.finish());
    let said = volume.damaged();
    assert!(said.iter().all(|place| place.object == *name), "{what}: {said:?}");
    drop(volume);
    let mut model = model.to_vec();
    model[id as usize] = Some(99);
    let mut again = sound(&what, open(store.clone(), 6));
    assert_eq!(again.damaged(), [], "{what}");
    sound(&what, again.verify(&mut |_, _| {}));
    assert_eq!(contents(&mut again), model, "{what}");
    sound(&what, again.finish());
    drop(again);
    // Then any other one may be lost.
    let small = small_objects(&store);
    let other = &small[dice.below(small.len() as u64) as usize];
    oblivio_store::Objects::delete(&*store, &[other]).expect("memory");
    let what = format!("{what}, and {other} is lost later");
    let mut volume = sound(&what, open(store, 7));
    assert_eq!(contents(&mut volume), model, "{what}");
    (name[..1].to_owned(), kind, !said.is_empty())
}

#[test]
fn any_sector_of_what_is_small_may_be_lost() {
    let mut table: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    let (tries, mut dice) = (scaled(60), Dice::new(seed(49)));
    let worlds = [(true, 30), (true, 333), (false, 120), (false, 501)];
    let worlds = worlds.map(|(exclusive, steps)| at_rest(exclusive, steps));
    for at in 0..tries {
        let (rest, model) = &worlds[at as usize % worlds.len()];
        let (object, kind, said) = one(rest, model, &mut dice);
        let row = table.entry(format!("{object} {kind:?}")).or_default();
        *row = [row[0] + 1, row[1] + u64::from(said)];
    }
    let said: u64 = table.values().map(|row| row[1]).sum();
    println!("{tries} places, {said} times damage was said; tried and said: {table:?}");
    // Objects of sessions that ended long ago are not read, and not missed.
    assert!(said * 6 > tries, "{said} of {tries}");
}
