//! What nothing needs is found in a list, and goes. Everything else stays.

use super::{BLOCKS, contents, create, fill, open, passphrase, write};
use oblivio_store::{Held, MemoryStore, Objects, PutMode};
use oblivio_testkit::SplitMix64;
use oblivio_volume::windows::{Collected, status};
use oblivio_volume::{BlockSpace, Environment, Error, MemoryKeeper, OpenOptions};
use std::collections::BTreeSet;
use std::sync::Arc;

const UNHEARD: fn(u64, u64) = |_, _| {};

fn names(store: &MemoryStore) -> BTreeSet<String> {
    store.list().expect("memory").into_iter().map(|(name, _)| name).collect()
}

/// After many sessions that were lost, at any of their operations.
#[test]
fn only_what_nothing_needs_goes() {
    for exclusive in [true, false] {
        let store = Arc::new(MemoryStore::new());
        let mut dice = SplitMix64::new(5);
        let mut volume = create(store.clone(), exclusive, 1);
        let mut model = fill(&mut volume, &mut dice, 200);
        drop(volume);
        for seed in 10..30 {
            let mut volume = open(store.clone(), seed).expect("sound");
            for _ in 0..dice.below(40) {
                let (id, byte) = (dice.below(BLOCKS), dice.below(256) as u8);
                volume.defer(vec![write(id, byte)]).expect("memory");
                model[id as usize] = Some(byte);
            }
            volume.commit().expect("memory");
        }
        // Left by a session that is over, which no later one knows of; and no object of ours.
        for name in ["b-00000000000000aa-05-000000000001", "w-00000000000000aa", "notes.txt"] {
            store.put(name, &[1; 100], PutMode::Replace).expect("memory");
        }
        let mut volume = open(store.clone(), 99).expect("sound");
        let windows = volume.windows().expect("its engine");
        let before = names(&store);
        let found = windows.collect(false, &mut { UNHEARD }).expect("memory");
        assert!(found.objects > 20 && found.bytes > 2000 && found.strange == 1, "{found:?}");
        let looked = names(&store);
        assert!(looked.contains("w-00000000000000aa"), "it was only looked for");
        let deleted = windows.collect(true, &mut { UNHEARD }).expect("memory");
        assert_eq!(deleted.objects, found.objects);
        let after = names(&store);
        // But for what its own commit made.
        assert!(after.len() as u64 <= looked.len() as u64 - found.objects + 3, "{after:?}");
        assert!(after.contains("notes.txt") && !after.contains("w-00000000000000aa"));
        let claims =
            |names: &BTreeSet<String>| names.iter().filter(|it| it.starts_with("s-")).count();
        assert_eq!(claims(&after), claims(&before), "claims stay");
        let again = windows.collect(true, &mut { UNHEARD }).expect("memory");
        assert_eq!(again, Collected { strange: 1, ..Collected::default() });
        volume.verify(&mut |_, _| {}).expect("sound");
        // Killed after it: the next one finds all that it needs.
        volume.defer(vec![write(7, 0xab)]).expect("memory");
        volume.commit().expect("memory");
        model[7] = Some(0xab);
        drop(volume);
        let mut volume = open(store.clone(), 100).expect("sound");
        assert_eq!(contents(&mut volume), model);
        volume.verify(&mut |_, _| {}).expect("sound");
    }
}

/// A session that changed nothing may collect too: it stands on nothing that goes.
#[test]
fn one_that_did_nothing_else_needs_nothing_of_others() {
    for exclusive in [true, false] {
        let store = Arc::new(MemoryStore::new());
        let mut volume = create(store.clone(), exclusive, 1);
        let model = fill(&mut volume, &mut SplitMix64::new(1), 90);
        volume.finish().expect("memory");
        drop(volume);
        for seed in 2..6 {
            let mut volume = open(store.clone(), seed).expect("sound");
            volume.windows().expect("its engine").collect(true, &mut { UNHEARD }).expect("memory");
            if seed % 2 == 0 {
                volume.finish().expect("memory");
            }
        }
        let mut volume = open(store.clone(), 9).expect("sound");
        assert_eq!(contents(&mut volume), model);
        volume.verify(&mut |_, _| {}).expect("sound");
    }
}

/// A session that was taken over deletes nothing, not even what it had listed.
#[test]
fn one_that_was_taken_over_deletes_nothing() {
    let store = Arc::new(MemoryStore::new());
    let mut first = create(store.clone(), true, 1);
    let model = fill(&mut first, &mut SplitMix64::new(1), 150);
    let mut second = open(store.clone(), 2).expect("taken over");
    let before = names(&store);
    let error = first.collect(true, &mut { UNHEARD }).expect_err("it is over");
    assert!(matches!(error, Error::Overtaken), "{error}");
    assert!(names(&store).is_superset(&before));
    assert_eq!(contents(&mut second), model);
}

/// Two computers that see the same history say the same words. Nothing is stored by asking.
#[test]
fn who_has_the_volume_is_said_without_disturbing_anybody() {
    let store = Arc::new(MemoryStore::new());
    let mut volume = create(store.clone(), true, 1);
    fill(&mut volume, &mut SplitMix64::new(1), 40);
    let keeper = MemoryKeeper::default();
    let options = |seed, keeper: &MemoryKeeper| OpenOptions {
        keeper: Some(Box::new(keeper.clone())),
        environment: Environment::from_seed(seed),
        host: format!("host{seed}"),
        ..OpenOptions::default()
    };
    let ask = |seed, keeper: &MemoryKeeper| {
        let before = names(&store);
        let said = status(store.clone(), &passphrase(), options(seed, keeper));
        assert_eq!(names(&store), before);
        said.map(|status| status.expect("a session"))
    };
    let said = ask(2, &keeper).expect("sound");
    assert!(!said.ended && !said.own && said.session == 1 && said.entries > 3, "{said:?}");
    volume.finish().expect("memory");
    drop(volume);
    assert!(ask(2, &keeper).expect("sound").ended);
    let copy = MemoryStore::new();
    for name in names(&store) {
        let mut bytes = vec![0; store.len(&name).expect("memory").expect("there") as usize];
        let mut read = [oblivio_store::ReadAt { object: &name, offset: 0, buf: &mut bytes }];
        store.read(&mut read).expect("memory");
        copy.put(&name, &bytes, PutMode::Replace).expect("memory");
    }
    let mut volume =
        oblivio_volume::Volume::open(store.clone(), &passphrase(), options(2, &keeper))
            .expect("released");
    volume.defer(vec![write(1, 1)]).expect("memory");
    volume.finish().expect("memory");
    drop(volume);
    let (own, other) = (ask(3, &keeper), ask(4, &MemoryKeeper::default()));
    let (own, other) = (own.expect("sound"), other.expect("sound"));
    assert!(own.own && own.ended && !other.own, "{own:?}");
    assert_eq!((own.host.as_deref(), &own.phrase), (Some("host2"), &other.phrase));
    // A store that shows the past to who knows more.
    let error = status(Arc::new(copy), &passphrase(), options(5, &keeper)).expect_err("older");
    assert!(matches!(error, Error::RolledBack(_)), "{error}");
}
