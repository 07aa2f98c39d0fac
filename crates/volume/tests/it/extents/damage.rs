//! Every file of a folder with changed bytes: found, named, and made again from what else is there.

use super::common::{BLOCKS, names};
use super::{Computer, contents, write};
use oblivio_store::MemoryStore;
use oblivio_testkit::campaign::every;
use oblivio_volume::{BlockSpace, Error};
use std::sync::Arc;

#[test]
fn a_changed_byte_costs_nothing_and_is_named() {
    let folder = Arc::new(MemoryStore::new());
    let mut here = Computer::new(1);
    let mut volume = here.create(folder.clone());
    for id in 0..BLOCKS {
        volume.access(vec![write(id, id as u8)]).unwrap();
    }
    volume.finish().unwrap();
    drop(volume);
    let mut there = Computer::new(50);
    there.open(folder.clone()).unwrap().finish().unwrap();
    let expected: Vec<_> = (0..BLOCKS).map(|id| Some(id as u8)).collect();
    let mut tried = 0;
    for (name, len) in names(&*folder) {
        let step = if name.starts_with("x-") { 509 } else { 37 } * every(8);
        for offset in (0..len).step_by(step).chain([len - 1]) {
            let changed = Arc::new(folder.snapshot());
            changed.corrupt(&name, offset, |byte| *byte ^= 0x20).unwrap();
            let mut volume = Computer::new(900)
                .open(changed)
                .unwrap_or_else(|error| panic!("{name} {offset}: {error}"));
            assert_eq!(contents(&mut volume), expected, "{name} {offset}");
            volume.commit().unwrap();
            let said = volume.damaged();
            assert!(said.iter().all(|it| it.object == name), "{name} {offset}: {said:?}");
            assert!(name.starts_with("k-") || said.len() == 1, "{name} {offset}: {said:?}");
            tried += 1;
        }
    }
    assert!(tried * every(8) > 300, "{tried}");
}

/// The computer that stands on it has all of it itself, and puts back what is gone.
#[test]
fn what_is_deleted_from_the_folder_is_put_back() {
    let folder = Arc::new(MemoryStore::new());
    let mut here = Computer::new(1);
    let mut volume = here.create(folder.clone());
    volume.access(vec![write(5, 5)]).unwrap();
    volume.finish().unwrap();
    drop(volume);
    let before = names(&*folder);
    let gone: Vec<&str> =
        before.iter().map(|it| it.0.as_str()).filter(|name| *name != "header").collect();
    oblivio_store::Objects::delete(&*folder, &gone).unwrap();
    assert!(matches!(Computer::new(9).open(folder.clone()), Err(Error::StillToCome(_))));
    let mut volume = here.open(folder.clone()).unwrap();
    assert_eq!(contents(&mut volume)[5], Some(5));
    volume.finish().unwrap();
    assert_eq!(names(&*folder), before);
    assert_eq!(contents(&mut Computer::new(9).open(folder).unwrap())[5], Some(5));
}
