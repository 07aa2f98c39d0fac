//! Several computers, one at a time.

use super::{BLOCKS, contents, create, fill, open, write};
use oblivio_store::{Held, MemoryStore};
use oblivio_testkit::SplitMix64;
use oblivio_volume::{BlockSpace, Error};
use std::sync::Arc;

/// In both ways to begin a session.
#[test]
fn who_opens_takes_over_and_the_other_is_told() {
    for exclusive in [true, false] {
        let store = Arc::new(MemoryStore::new());
        let mut first = create(store.clone(), exclusive, 1);
        let mut model = fill(&mut first, &mut SplitMix64::new(1), 150);
        // Accepted and never synced: it is lost to the other computer, and that is all.
        first.defer(vec![write(3, 0xee)]).expect("memory");
        let mut second = open(store.clone(), 2).expect("taken over");
        assert_eq!(contents(&mut second), model);
        let error = first.commit().expect_err("it is over");
        assert!(matches!(error, Error::Overtaken), "{error}");
        let error = first.access(vec![super::read(3)]).expect_err("it stays so");
        assert!(matches!(error, Error::Overtaken), "{error}");
        drop(first);
        second.defer(vec![write(7, 9)]).expect("memory");
        second.commit().expect("it is in force");
        model[7] = Some(9);
        second.finish().expect("memory");
        drop(second);
        let mut third = open(store, 3).expect("sound");
        assert_eq!(contents(&mut third), model);
        assert_eq!(third.info().expect("memory").replayed, 0, "it ended well");
        third.verify(&mut |_, _| {}).expect("sound");
    }
}

/// One that took over reads nothing old, however often that happens, and old objects go.
#[test]
fn take_overs_follow_on_each_other_and_leave_no_garbage_that_grows() {
    let store = Arc::new(MemoryStore::new());
    let mut dice = SplitMix64::new(5);
    let mut volume = create(store.clone(), true, 1);
    let mut model = fill(&mut volume, &mut dice, 100);
    drop(volume);
    let mut buckets = Vec::new();
    for seed in 10..40 {
        let mut volume = open(store.clone(), seed).expect("sound");
        for _ in 0..20 {
            let (id, byte) = (dice.below(BLOCKS), dice.below(256) as u8);
            volume.defer(vec![write(id, byte)]).expect("memory");
            model[id as usize] = Some(byte);
        }
        volume.commit().expect("memory");
        // Killed: neither a commit nor a release.
        drop(volume);
        let names = store.list().expect("memory");
        buckets.push(names.iter().filter(|(name, _)| name.starts_with("b-")).count());
    }
    let mut volume = open(store, 99).expect("sound");
    assert_eq!(contents(&mut volume), model);
    assert!(buckets[29] <= buckets[5] * 2, "{buckets:?}");
}

#[test]
fn what_it_does_not_have_is_refused() {
    let store = Arc::new(MemoryStore::new());
    drop(create(store.clone(), true, 1));
    let pace = oblivio_volume::Pace { interval: std::time::Duration::from_secs(1), batch: 4 };
    for (pad, pace) in [(true, None), (false, Some(pace))] {
        let options = oblivio_volume::OpenOptions { pad, pace, ..Default::default() };
        let error = oblivio_volume::Volume::open(store.clone(), &super::passphrase(), options)
            .map(drop)
            .expect_err("not yet");
        assert!(error.to_string().contains("no --pad and no --pace"), "{error}");
    }
}
