//! The suite of [`Slots`].

use super::model::{
    BAD_NAMES, CALLS, Model, bytes, is_invalid, is_missing, name, names, place, refuses,
};
use crate::Dice;
use oblivio_store::{Hint, ReadAt, Slots, WriteAt};
use std::ops::Range;

/// What slots must do: writes of many ranges over older ones, syncs, space, and hints that change
/// no result.
pub fn slots(make: &dyn Fn() -> Box<dyn Slots>, seeds: Range<u64>) {
    for seed in seeds {
        let (slots, mut model, mut dice) = (make(), Model::new(seed), Dice::new(seed));
        (0..CALLS).for_each(|_| step(&*slots, &mut model, &mut dice));
        model.compare(&*slots);
    }
    let slots = make();
    refuses(&*slots);
    for name in BAD_NAMES {
        assert!(is_invalid(&slots.write(&[WriteAt::new(name, 0, b"x")])), "{name}");
        assert!(is_invalid(&slots.sync(&[name])), "{name}");
    }
    assert!(is_invalid(&slots.write(&[WriteAt::new("slab", u64::MAX - 1, b"abc")])));
    assert!(is_missing(&slots.sync(&["x_"])) && is_missing(&slots.discard(&[("x_", 0, 1)])));
    slots.free_bytes().expect("a forecast");
}

pub(super) fn step(slots: &(impl Slots + ?Sized), model: &mut Model, dice: &mut Dice) {
    match dice.below(12) {
        0..3 => model.read(slots, dice),
        3..7 => write(slots, model, dice),
        7 => {
            let (name, len) = (name(dice), place(dice));
            slots.allocate(name, len).expect("room");
            let held = model.objects.entry(name).or_default();
            held.resize(held.len().max(len as usize), 0);
        }
        8 => discard(slots, model, dice),
        9 => hint(slots, dice),
        _ => {
            let list = names(dice);
            let result = slots.sync(&list);
            match list.iter().all(|name| model.objects.contains_key(name)) {
                true => assert!(result.is_ok(), "{result:?}"),
                false => assert!(is_missing(&result), "{result:?}"),
            }
        }
    }
}

/// A call may apply overlapping ranges in any order, so there are none.
fn write(slots: &(impl Slots + ?Sized), model: &mut Model, dice: &mut Dice) {
    let mut ranges: Vec<(&'static str, u64, Vec<u8>)> = Vec::new();
    for _ in 0..dice.below(4) {
        let range = (name(dice), place(dice), bytes(dice));
        let end = |range: &(&str, u64, Vec<u8>)| range.1 + range.2.len() as u64;
        let apart = |other: &(&str, u64, Vec<u8>)| {
            other.0 != range.0 || end(other) <= range.1 || end(&range) <= other.1
        };
        if ranges.iter().all(apart) {
            ranges.push(range);
        }
    }
    let writes = ranges.iter().map(|(name, offset, data)| WriteAt::new(name, *offset, data));
    slots.write(&writes.collect::<Vec<_>>()).expect("room");
    for (name, offset, data) in &ranges {
        model.write(name, *offset, data);
    }
}

/// Discarded bytes are zero or as before; nothing else changes.
fn discard(slots: &(impl Slots + ?Sized), model: &mut Model, dice: &mut Dice) {
    let (name, at, len) = (name(dice), place(dice), dice.below(9000));
    let result = slots.discard(&[(name, at, len)]);
    let Some(held) = model.objects.get_mut(name) else {
        assert!(is_missing(&result) || len == 0, "{result:?}");
        return;
    };
    result.expect("it is there");
    assert_eq!(slots.len(name).expect("a length"), Some(held.len() as u64));
    let from = held.len().min(at as usize);
    let to = held.len().min((at + len) as usize);
    let mut now = vec![0; to - from];
    let mut reads = [ReadAt { object: name, offset: from as u64, buf: &mut now }];
    slots.read(&mut reads).expect("it is there");
    assert!(now.iter().zip(&held[from..to]).all(|(now, old)| *now == 0 || now == old));
    held[from..to].copy_from_slice(&now);
}

/// Not rounding up: that is true only of writers that leave room.
fn hint(slots: &(impl Slots + ?Sized), dice: &mut Dice) {
    match dice.below(2) {
        0 => slots.hint(Hint::Reads(&[(name(dice), place(dice), dice.below(9000))])),
        _ => slots.hint(Hint::Keep(dice.index(9000))),
    }
}
