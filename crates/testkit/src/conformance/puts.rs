//! The suite of what a [`Store`](oblivio_store::Store) puts: its [`Objects`] are also written over.

use super::model::{BAD_NAMES, CALLS, Model, bytes, is_exists, is_invalid, name, names, refuses};
use crate::Dice;
use oblivio_store::{Objects, PutMode};
use std::ops::Range;
use std::sync::Barrier;

/// What such objects must do: they are put as a whole, anew or over older ones, deleted and listed.
pub fn puts(make: &dyn Fn() -> Box<dyn Objects>, seeds: Range<u64>) {
    for seed in seeds {
        let (objects, mut model, mut dice) = (make(), Model::new(seed), Dice::new(seed));
        (0..CALLS).for_each(|_| step(&*objects, &mut model, &mut dice));
        model.compare(&*objects);
    }
    let objects = make();
    refuses(&*objects);
    for name in BAD_NAMES {
        assert!(is_invalid(&objects.put(name, b"", PutMode::Replace)), "{name}");
        assert!(is_invalid(&objects.delete(&[name])), "{name}");
    }
    objects.begin(&[("slab", b"one"), ("x_", b"two")]).expect("room");
    objects.settle(&["slab", "x_"]).expect("they were begun");
    assert_eq!(objects.lens(&["x_", "slab", "C-3"]).expect("lengths"), [Some(3), Some(3), None]);
    creates_once(&*objects);
}

/// Of several threads that create one object, one succeeds.
fn creates_once(objects: &dyn Objects) {
    let barrier = Barrier::new(4);
    let put = &|byte| {
        barrier.wait();
        objects.put("C-3", &[byte], PutMode::IfAbsent).is_ok()
    };
    let won = std::thread::scope(|scope| {
        let threads = [0, 1, 2, 3].map(|byte| scope.spawn(move || put(byte)));
        threads.map(|thread| thread.join().expect("no panic"))
    });
    assert_eq!(won.into_iter().filter(|won| *won).count(), 1);
}

pub(super) fn step(objects: &(impl Objects + ?Sized), model: &mut Model, dice: &mut Dice) {
    match dice.below(6) {
        0 => model.read(objects, dice),
        1 => {
            let list = names(dice);
            objects.delete(&list).expect("a missing one is no error");
            model.objects.retain(|name, _| !list.contains(name));
        }
        _ => {
            let (name, data) = (name(dice), bytes(dice));
            let mode = [PutMode::Replace, PutMode::IfAbsent, PutMode::Restore][dice.index(3)];
            let result = objects.put(name, &data, mode);
            if mode == PutMode::IfAbsent && model.objects.contains_key(name) {
                assert!(is_exists(&result), "{result:?}");
            } else {
                result.expect("room");
                model.objects.insert(name, data);
            }
        }
    }
}
