//! The suite of [`Log`].

use super::model::{
    BAD_NAMES, CALLS, Model, bytes, is_invalid, is_missing, is_short, name, place, refuses,
};
use crate::Dice;
use oblivio_store::{Log, ReadAt, StoreError};
use std::ops::Range;

/// What a log must do: durable writes, cuts, and reads from any point.
pub fn log(make: &dyn Fn() -> Box<dyn Log>, seeds: Range<u64>) {
    for seed in seeds {
        let (log, mut model, mut dice) = (make(), Model::new(seed), Dice::new(seed));
        (0..CALLS).for_each(|_| step(&*log, &mut model, &mut dice));
        model.compare(&*log);
    }
    let log = make();
    refuses(&*log);
    for name in BAD_NAMES {
        assert!(is_invalid(&log.write_durable(name, 0, b"x")), "{name}");
        assert!(is_invalid(&log.truncate(name, 0)), "{name}");
    }
    assert!(is_missing(&log.truncate("slab", 3)));
    log.write_durable("slab", 0, b"abc").expect("room");
    let far = u64::MAX - 1;
    assert!(is_invalid(&log.write_durable("slab", far, b"abc")));
    assert!(is_invalid(&log.truncate("slab", u64::MAX)));
    let read = |offset| log.read(&mut [ReadAt { object: "slab", offset, buf: &mut [0; 3] }]);
    assert!(is_invalid(&read(far)));
    assert!(matches!(read(1), Err(StoreError::Short { len: 3, wanted: 4, .. })));
    assert!(is_short(&read(4)));
    assert!(read(0).is_ok());
}

pub(super) fn step(log: &(impl Log + ?Sized), model: &mut Model, dice: &mut Dice) {
    match dice.below(4) {
        0 => model.read(log, dice),
        1 => {
            let (name, len) = (name(dice), place(dice));
            let result = log.truncate(name, len);
            match model.objects.get_mut(name) {
                None => assert!(is_missing(&result), "{result:?}"),
                Some(held) => {
                    result.expect("it is there");
                    held.resize(len as usize, 0);
                }
            }
        }
        _ => {
            let (name, offset, data) = (name(dice), place(dice), bytes(dice));
            log.write_durable(name, offset, &data).expect("room");
            model.write(name, offset, &data);
        }
    }
}
