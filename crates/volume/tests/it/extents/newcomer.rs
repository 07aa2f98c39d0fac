//! A computer that has nothing but a folder with one harmed file: whatever the file is, all is
//! there, it says which one it was unless that may be late, and the folder is whole afterwards.

use super::common::{BLOCKS, names, passphrase};
use super::health::{HARMS, Harm, World, bytes};
use super::{Computer, contents, write};
use crate::damage::sectors::{self, BadSector};
use oblivio_store::{Held, Objects, PutMode};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{every, scaled, seed};
use oblivio_volume::{BlockSpace, DamagedPlace, Error, OpenOptions, Result, Volume, Which};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the newest epoch needs, where computers stand, and the headers.
fn all_files(world: &World) -> Vec<String> {
    let mut files = world.files();
    let headers = names(&world.folder).into_iter().map(|it| it.0);
    files.extend(headers.filter(|name| name.starts_with("header")));
    files
}

/// The kind of a file, for a table.
fn kind_of(name: &str) -> String {
    name.split('-').next().expect("a first part").to_owned()
}

fn sound<T>(what: &str, result: Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// Only the computer whose stand it is can say it anew, and nobody else needs it.
fn is_stand(name: &str) -> bool {
    name.starts_with("k-")
}

fn places(volume: &mut Volume) -> Vec<DamagedPlace> {
    let mut bad = Vec::new();
    volume.inspect(&mut |_, _| {}, &mut |place| bad.push(place)).expect("it goes on");
    bad
}

/// Every file of a folder, harmed in every way: a newcomer has all, and leaves a whole folder.
#[test]
fn any_one_file_costs_a_newcomer_nothing() {
    let world = World::new();
    let mut table: BTreeMap<(String, String), [usize; 3]> = BTreeMap::new();
    let files = all_files(&world).into_iter();
    let harms = files.flat_map(|name| HARMS.map(|harm| (name.clone(), harm)));
    for (at, (name, harm)) in harms.enumerate() {
        if name.starts_with("x-") && !at.is_multiple_of(every(3)) {
            continue;
        }
        let Some(folder) = world.harmed(&name, harm) else { continue };
        let what = format!("{name}, {harm:?}");
        let mut volume = sound(&what, Computer::new(9000).open(folder.clone()));
        assert_eq!(contents(&mut volume), world.model, "{what}");
        volume.access(vec![write(3, 77)]).unwrap();
        volume.finish().unwrap();
        let said = volume.damaged();
        drop(volume);
        assert!(said.iter().all(|place| place.object == name), "{what}: {said:?}");
        // What has not arrived may be late.
        let late = matches!(harm, Harm::Removed | Harm::Cut) && !name.starts_with("header");
        assert!(is_stand(&name) || late == said.is_empty(), "{what}: {said:?}");
        let mut model = world.model.clone();
        model[3] = Some(77);
        let mut next = sound(&what, Computer::new(9100).open(folder.clone()));
        assert_eq!(contents(&mut next), model, "{what}");
        assert_eq!(next.damaged(), [], "{what}");
        let left = places(&mut next);
        assert!(is_stand(&name) || left.is_empty(), "{what}: {left:?}");
        let row = table.entry((kind_of(&name), format!("{harm:?}"))).or_default();
        *row = [row[0] + 1, row[1] + said.len(), row[2] + left.len()];
    }
    eprintln!("file, harm: tried and whole, said, still named: {table:#?}");
    let tried: usize = table.values().map(|row| row[0]).sum();
    assert!(tried * every(3) > 200, "{tried}");
}

/// A look does not write: it reads all of it, too.
#[test]
fn a_look_reads_around_any_one_file() {
    let world = World::new();
    for (at, name) in all_files(&world).into_iter().enumerate() {
        let folder = world.harmed(&name, HARMS[at % 4]).unwrap();
        let before: Vec<_> =
            names(&*folder).into_iter().map(|(name, _)| bytes(&*folder, &name)).collect();
        let open = OpenOptions { incomplete: true, ..Computer::new(9000).session(Which::Newest) };
        let mut volume = Volume::open(folder.clone(), &passphrase(), open)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(contents(&mut volume), world.model, "{name}");
        drop(volume);
        let after: Vec<_> =
            names(&*folder).into_iter().map(|(name, _)| bytes(&*folder, &name)).collect();
        assert!(before == after, "{name}: a look changes nothing");
    }
}

/// The writer's own copy is a second name of the file in the folder: both rot at once.
#[test]
fn what_rots_in_both_places_is_made_again() {
    let world = World::new();
    let mut tried = 0;
    for name in world.files().into_iter().filter(|name| name.starts_with("x-")) {
        let folder = world.harmed(&name, Harm::Flipped).unwrap();
        let writer = world.writer();
        writer.beside.put(&name, &bytes(&*folder, &name), PutMode::Replace).unwrap();
        let mut writer = writer;
        let mut volume =
            writer.open(folder.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let left = places(&mut volume);
        assert_eq!(left, [], "{name}");
        let said = volume.damaged();
        assert!(said.len() == 1 && said[0].object == name, "{name}: {said:?}");
        assert_eq!(contents(&mut volume), world.model, "{name}");
        drop(volume);
        let right = bytes(&world.folder, &name);
        assert!(bytes(&*folder, &name) == right && bytes(&*writer.beside, &name) == right);
        tried += 1;
    }
    assert!(tried > 10, "{tried}");
}

/// Two of one group cannot be made again; and what is made counts only with its digest.
#[test]
fn two_of_the_log_are_still_to_come() {
    let world = World::new();
    let folder = Arc::new(world.folder.snapshot());
    let log: Vec<String> = log_files(&world);
    assert!(log.len() > 2, "{log:?}");
    folder.delete(&[&log[0]]).unwrap();
    folder.corrupt(&log[1], 5, |byte| *byte ^= 1).unwrap();
    let before = names(&*folder);
    let Err(Error::StillToCome(why)) = Computer::new(9000).open(folder.clone()) else {
        panic!("two are gone")
    };
    assert!(why.contains(&log[0]) && why.contains(&log[1]), "{why}");
    let after: Vec<_> = names(&*folder).into_iter().filter(|it| !is_stand(&it.0)).collect();
    let before: Vec<_> = before.into_iter().filter(|it| !is_stand(&it.0)).collect();
    assert_eq!(after, before);
}

/// The files of one group: the last parity but one, and those whose loss costs nothing without it
/// only.
fn log_files(world: &World) -> Vec<String> {
    let number = |name: &String| u64::from_str_radix(name.split('-').nth(2).unwrap(), 16).unwrap();
    let extents = world.files().into_iter().filter(|name| name.starts_with("x-"));
    let all: Vec<String> = extents.collect();
    let parity = all.iter().map(number).max().unwrap() - 1;
    let parity = all.iter().find(|name| number(name) == parity).unwrap();
    let needs_it = |name: &&String| {
        let folder = world.harmed(name, Harm::Removed).unwrap();
        folder.delete(&[parity]).unwrap();
        *name != parity && Computer::new(9000).open(folder).is_err()
    };
    all.iter().filter(needs_it).cloned().collect()
}

/// One place of one file: noise, zeros, unreadable, cut there, or the file is gone.
fn one(world: &World, files: &[String], dice: &mut Dice) -> bool {
    let name = &files[dice.below(files.len() as u64) as usize];
    let len = world.folder.len(name).unwrap().unwrap();
    let size = [512, 4096][dice.below(2) as usize];
    let start = dice.below(len.div_ceil(size)) * size;
    let kind = sectors::HARMS[dice.below(5) as usize];
    let disk = Arc::new(world.folder.snapshot());
    let bad = sectors::harm(&disk, name, start..(start + size).min(len), kind, dice);
    let what = format!("{kind:?} of {name} at {start}, {size} bytes");
    let folder = Arc::new(BadSector::new(&disk, name, bad));
    let mut volume = sound(&what, Computer::new(9000).open(folder.clone()));
    assert_eq!(contents(&mut volume), world.model, "{what}");
    let id = dice.below(BLOCKS);
    volume.access(vec![write(id, 99)]).unwrap();
    sound(&what, volume.finish());
    let said = volume.damaged();
    assert!(said.iter().all(|place| place.object == *name), "{what}: {said:?}");
    drop(volume);
    let mut model = world.model.clone();
    model[id as usize] = Some(99);
    let mut again = sound(&what, Computer::new(9100).open(folder.clone()));
    assert_eq!(again.damaged(), [], "{what}");
    assert_eq!(contents(&mut again), model, "{what}");
    let left = places(&mut again);
    assert!(is_stand(name) || left.is_empty(), "{what}: {left:?}");
    drop(again);
    // Then any other file may be lost.
    let all: Vec<String> = names(&*disk).into_iter().map(|it| it.0).collect();
    let other = &all[dice.below(all.len() as u64) as usize];
    disk.delete(&[other]).unwrap();
    let mut third = Computer::new(9200)
        .open(disk)
        .unwrap_or_else(|error| panic!("{what}, and {other} is lost later: {error}"));
    assert_eq!(contents(&mut third), model, "{what}, then {other}");
    !said.is_empty()
}

#[test]
fn any_sector_of_any_file_may_be_lost() {
    let world = World::new();
    let files = all_files(&world);
    let (tries, mut dice) = (scaled(60), Dice::new(seed(49)));
    let said = (0..tries).filter(|_| one(&world, &files, &mut dice)).count() as u64;
    println!("{tries} places of {} files, {said} times damage was said", files.len());
    assert!(said * 3 > tries, "most harm is said that is not late: {said} of {tries}");
}

/// An older parity in the place of the newest is no parity.
#[test]
fn nothing_is_made_again_from_what_is_not_the_newest() {
    let world = World::new();
    let parity = world
        .files()
        .into_iter()
        .filter(|name| name.starts_with("x-"))
        .max_by_key(|it| it.split('-').nth(2).map(str::to_owned))
        .unwrap();
    let folder = world.harmed(&parity, Harm::Older).expect("there was an older one");
    let extent = world.files().into_iter().find(|name| name.starts_with("x-")).unwrap();
    folder.delete(&[&extent]).unwrap();
    assert!(matches!(Computer::new(9000).open(folder), Err(Error::StillToCome(_))));
}
