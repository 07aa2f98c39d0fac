//! The suite of [`Blobs`].

use super::model::{BAD_NAMES, CALLS, Model, bytes, is_exists, is_invalid, name, names, refuses};
use crate::Dice;
use oblivio_store::{Blobs, PutMode};
use std::ops::Range;
use std::sync::Barrier;

/// What blobs must do: they are put as a whole, anew or over older ones, deleted and listed.
pub fn blobs(make: &dyn Fn() -> Box<dyn Blobs>, seeds: Range<u64>) {
    for seed in seeds {
        let (blobs, mut model, mut dice) = (make(), Model::new(seed), Dice::new(seed));
        (0..CALLS).for_each(|_| step(&*blobs, &mut model, &mut dice));
        model.compare(&*blobs);
    }
    let blobs = make();
    refuses(&*blobs);
    for name in BAD_NAMES {
        assert!(is_invalid(&blobs.put(name, b"", PutMode::Replace)), "{name}");
        assert!(is_invalid(&blobs.delete(&[name])), "{name}");
    }
    let version = || blobs.version("slab").expect("a version");
    assert_eq!(version(), None);
    blobs.put("slab", b"one", PutMode::IfAbsent).expect("room");
    let first = version();
    assert_eq!(first.is_some(), blobs.capabilities().versions);
    blobs.put("slab", b"two", PutMode::Replace).expect("room");
    assert!(first.is_none() || version() > first);
    creates_once(&*blobs);
}

/// Of several threads that create one object, one succeeds.
fn creates_once(blobs: &dyn Blobs) {
    let barrier = Barrier::new(4);
    let put = &|byte| {
        barrier.wait();
        blobs.put("C-3", &[byte], PutMode::IfAbsent).is_ok()
    };
    let won = std::thread::scope(|scope| {
        let threads = [0, 1, 2, 3].map(|byte| scope.spawn(move || put(byte)));
        threads.map(|thread| thread.join().expect("no panic"))
    });
    assert_eq!(won.into_iter().filter(|won| *won).count(), 1);
}

pub(super) fn step(blobs: &(impl Blobs + ?Sized), model: &mut Model, dice: &mut Dice) {
    match dice.below(6) {
        0 => model.read(blobs, dice),
        1 => {
            let list = names(dice);
            blobs.delete(&list).expect("a missing one is no error");
            model.objects.retain(|name, _| !list.contains(name));
        }
        _ => {
            let (name, data) = (name(dice), bytes(dice));
            let mode = if dice.percent(50) { PutMode::Replace } else { PutMode::IfAbsent };
            let result = blobs.put(name, &data, mode);
            if mode == PutMode::IfAbsent && model.objects.contains_key(name) {
                assert!(is_exists(&result), "{result:?}");
            } else {
                result.expect("room");
                model.objects.insert(name, data);
            }
        }
    }
}
