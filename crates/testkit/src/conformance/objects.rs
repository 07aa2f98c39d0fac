//! The suite of [`Objects`].

use super::model::{BAD_NAMES, is_exists, is_invalid, is_missing, is_short};
use crate::Dice;
use oblivio_store::Objects;
use std::collections::BTreeMap;
use std::ops::Range;

const NAMES: [&str; 4] = ["a.1", "a.2", "b", "a"];

/// What write-once objects must do. Each seed makes a few calls only: a store may be far away.
pub fn objects(make: &dyn Fn() -> Box<dyn Objects>, seeds: Range<u64>) {
    for seed in seeds {
        let (objects, mut dice) = (make(), Dice::new(seed));
        let mut held: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        for _ in 0..12 {
            step(&*objects, &mut held, &mut dice);
        }
        for prefix in ["", "a", "a.", "c"] {
            let found = held.iter().filter(|(name, _)| name.starts_with(prefix));
            let found = found.map(|(name, data)| ((*name).to_owned(), data.len() as u64));
            let found: Vec<_> = found.collect();
            assert_eq!(objects.list(prefix).expect("a list"), found, "seed {seed}: {prefix:?}");
        }
    }
    let objects = make();
    for name in BAD_NAMES {
        assert!(is_invalid(&objects.put_new(name, b"x")), "{name}");
        assert!(is_invalid(&objects.read(name, 0..1)), "{name}");
        assert!(is_invalid(&objects.delete(name)), "{name}");
    }
}

fn step(objects: &dyn Objects, held: &mut BTreeMap<&str, Vec<u8>>, dice: &mut Dice) {
    let name = NAMES[dice.index(NAMES.len())];
    match dice.below(4) {
        0 => {
            objects.delete(name).expect("a missing one is no error");
            held.remove(name);
        }
        1 => {
            let (begin, len) = (dice.below(40), dice.below(60));
            let result = objects.read(name, begin..begin + len);
            let found = held.get(name);
            match found.map(|data| data.get(begin as usize..(begin + len) as usize)) {
                None => assert!(is_missing(&result), "{result:?}"),
                Some(None) => assert!(is_short(&result), "{result:?}"),
                Some(Some(data)) => assert_eq!(result.expect("it is there"), data),
            }
        }
        _ => {
            let len = dice.index(100);
            let data = dice.bytes(len);
            let result = objects.put_new(name, &data);
            if held.contains_key(name) {
                assert!(is_exists(&result), "{result:?}");
            } else {
                result.expect("room");
                held.insert(name, data);
            }
        }
    }
}
