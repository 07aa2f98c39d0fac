//! A sync client brings the files of a folder in any order: what has not arrived is no damage, and
//! nobody publishes it anew before it had its time.

use super::common::names;
use super::health::{Harm, World, bytes};
use super::{Computer, contents, write};
use oblivio_store::{MemoryStore, Objects, PutMode};
use oblivio_volume::{BlockSpace, Clock, DamagedPlace, Volume};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The second copy of the newest entry, an extent of each group, and a parity.
fn some_files(world: &World) -> Vec<String> {
    let mut extents = world.files();
    extents.retain(|name| name.starts_with("x-"));
    extents.sort_by_key(|name| name.split('-').nth(2).map(str::to_owned));
    let entry = world.newest_entry();
    let (first, last) = (extents[0].clone(), extents[extents.len() - 3].clone());
    vec![entry.replacen('e', "d", 1), entry, first, last, extents[extents.len() - 1].clone()]
}

/// What a session names, and what a check does.
fn named(volume: &mut Volume) -> Vec<DamagedPlace> {
    let mut bad = Vec::new();
    volume.inspect(&mut |_, _| {}, &mut |place| bad.push(place)).expect("it goes on");
    [volume.damaged(), bad].concat()
}

/// What is in a folder, but for where computers stand.
fn inside(folder: &MemoryStore) -> Vec<(String, Vec<u8>)> {
    let all = names(folder).into_iter().filter(|it| !it.0.starts_with("k-"));
    all.map(|(name, _)| (name.clone(), bytes(folder, &name))).collect()
}

/// Another computer opens the volume, and checks it, before a file has arrived, or while it is cut.
#[test]
fn what_arrives_late_is_no_damage_and_is_not_published() {
    let world = World::new();
    for name in some_files(&world) {
        for harm in [Harm::Removed, Harm::Cut] {
            let what = format!("{name}, {harm:?}");
            let folder = world.harmed(&name, harm).unwrap();
            let before = inside(&folder);
            let mut there = Computer::new(9000);
            // It may be opened more than once meanwhile.
            for _ in 0..2 {
                let mut volume = there.open(folder.clone()).expect("all else is there");
                assert_eq!(contents(&mut volume), world.model, "{what}");
                assert_eq!(named(&mut volume), [], "{what}");
                volume.finish().unwrap();
                drop(volume);
                assert!(inside(&folder) == before, "{what}: nothing is put into the folder");
                there.clock.sleep(DAY / 3);
            }
            let late = bytes(&world.folder, &name);
            folder.put(&name, &late, PutMode::Replace).unwrap();
            there.clock.sleep(DAY);
            let mut volume = there.open(folder.clone()).expect("all is there");
            assert_eq!(named(&mut volume), [], "{what}");
            drop(volume);
            // It has come, so it is lost if it goes again.
            folder.delete(&[&name]).unwrap();
            let mut volume = there.open(folder.clone()).expect("it has all itself");
            let places = named(&mut volume);
            assert!(places.len() == 1 && places[0].object == name, "{what}: {places:?}");
            assert!(inside(&folder) == inside(&world.folder), "{what}");
        }
    }
}

/// What has not come in a day is lost: it is named, and put back.
#[test]
fn what_does_not_come_is_lost() {
    let world = World::new();
    for name in some_files(&world) {
        let folder = world.harmed(&name, Harm::Removed).unwrap();
        let mut there = Computer::new(9000);
        there.open(folder.clone()).unwrap().finish().unwrap();
        there.clock.sleep(DAY);
        let mut volume = there.open(folder.clone()).expect("it has all itself");
        let places = named(&mut volume);
        assert!(places.len() == 1 && places[0].object == name, "{name}: {places:?}");
        assert!(inside(&folder) == inside(&world.folder), "{name}");
    }
}

/// Who publishes an epoch answers for all files that it names.
#[test]
fn an_epoch_names_nothing_that_is_still_to_come() {
    let world = World::new();
    for name in some_files(&world).into_iter().filter(|name| name.starts_with("x-")) {
        let folder = world.harmed(&name, Harm::Removed).unwrap();
        let mut there = Computer::new(9000);
        let mut volume = there.open(folder.clone()).unwrap();
        volume.access(vec![write(3, 77)]).unwrap();
        volume.finish().unwrap();
        assert_eq!(volume.damaged(), [], "{name}");
        drop(volume);
        // With nothing else to make a file from.
        let mut third = Computer::new(9100).open(folder).expect("all is there");
        assert_eq!(third.damaged(), [], "{name}");
        assert_eq!(named(&mut third), [], "{name}");
        let mut model = world.model.clone();
        model[3] = Some(77);
        assert_eq!(contents(&mut third), model, "{name}");
    }
}

/// A changed file has arrived: it is damage at once.
#[test]
fn what_is_changed_is_not_late() {
    let world = World::new();
    for name in some_files(&world) {
        let folder = world.harmed(&name, Harm::Flipped).unwrap();
        let mut volume = Computer::new(9000).open(folder.clone()).unwrap();
        let said = volume.damaged();
        assert!(said.len() == 1 && said[0].object == name, "{name}: {said:?}");
        assert!(named(&mut volume).len() == 1 && inside(&folder) == inside(&world.folder));
    }
}
