//! One computer.

use super::common::{BLOCKS, names};
use super::{Computer, contents, write};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::MemoryStore;
use oblivio_volume::extents::ExtentOptions;
use oblivio_volume::{BlockSpace, Clock, Error, OpenOptions, Volume, Which};
use std::sync::Arc;

#[test]
fn what_is_written_is_there_on_this_computer_and_on_a_new_one() {
    let folder = Arc::new(MemoryStore::new());
    let mut here = Computer::new(1);
    let mut volume = here.create(folder.clone());
    let mut model = vec![None; BLOCKS as usize];
    for step in 0..200 {
        let (id, byte) = (step * 7 % BLOCKS, step as u8);
        volume.access(vec![write(id, byte)]).expect("works");
        model[id as usize] = Some(byte);
    }
    volume.commit().expect("works");
    drop(volume);
    let mut volume = here.open(folder.clone()).expect("on the same computer nothing is lost");
    assert_eq!(contents(&mut volume), model);
    volume.finish().expect("works");
    drop(volume);
    let mut there = Computer::new(100);
    let mut volume = there.open(folder.clone()).expect("all of it is in the folder");
    assert_eq!(contents(&mut volume), model);
    volume.finish().expect("works");
}

/// A session that only reads leaves no epoch, and no file but where a new computer stands.
#[test]
fn who_only_reads_leaves_nothing() {
    let folder = Arc::new(MemoryStore::new());
    let (mut here, mut there) = (Computer::new(1), Computer::new(100));
    let mut volume = here.create(folder.clone());
    volume.access(vec![write(3, 4)]).expect("works");
    volume.finish().expect("works");
    drop(volume);
    let before = names(&*folder);
    for _ in 0..2 {
        let mut volume = here.open(folder.clone()).expect("works");
        contents(&mut volume);
        volume.finish().expect("works");
    }
    assert_eq!(names(&*folder), before);
    for _ in 0..2 {
        let mut volume = there.open(folder.clone()).expect("works");
        contents(&mut volume);
        volume.finish().expect("works");
    }
    let after = names(&*folder);
    let new: Vec<_> = after.iter().filter(|it| !before.contains(it)).collect();
    assert!(matches!(&new[..], [(name, _)] if name.starts_with("k-")), "{new:?}");
}

/// The names of the epochs in a folder.
fn epochs(folder: &MemoryStore) -> Vec<String> {
    names(folder).into_iter().map(|it| it.0).filter(|name| name.starts_with("e-")).collect()
}

/// Five minutes after the first change.
#[test]
fn an_epoch_ends_after_a_time() {
    let folder = Arc::new(MemoryStore::new());
    let mut here = Computer::new(1);
    let mut volume = here.create(folder.clone());
    let first = epochs(&folder);
    volume.access(vec![write(1, 1)]).unwrap();
    volume.commit().unwrap();
    assert_eq!(epochs(&folder), first, "a sync is no epoch");
    assert!(!volume.wants_commit());
    let clock = here.clock.clone();
    let left = volume.idle().unwrap().expect("it wants to be called again");
    clock.sleep(left);
    assert!(volume.wants_commit());
    volume.idle().unwrap();
    let second = epochs(&folder);
    assert_ne!(second, first, "the time is up");
    assert_eq!(volume.idle().unwrap(), None, "and nothing waits any more");
}

#[test]
fn an_epoch_ends_after_many_writes() {
    let folder = Arc::new(MemoryStore::new());
    let (mut here, bytes) = (Computer::new(1), 256 << 10);
    let options = ExtentOptions::new(bytes, 64 * bytes as u64);
    let mut volume = here.create_with(folder.clone(), options);
    let first = epochs(&folder);
    let mut written = 0;
    while !volume.wants_commit() {
        let block = BlockOp { id: BlockId(written as u64 % 64), action: Action::Write(vec![1]) };
        volume.access(vec![block]).unwrap();
        written += 1;
    }
    assert_eq!(written * bytes, 64 << 20, "no sync padded anything");
    assert_eq!(epochs(&folder), first, "nobody committed");
    volume.commit().unwrap();
    assert_ne!(epochs(&folder), first, "so much was written");
}

#[test]
fn padding_and_pacing_are_refused() {
    let folder = Arc::new(MemoryStore::new());
    let mut here = Computer::new(1);
    drop(here.create(folder.clone()));
    let open = OpenOptions { pad: true, ..here.session(Which::Newest) };
    let refused = Volume::open(folder, &super::common::passphrase(), open);
    assert!(matches!(refused.map(drop), Err(Error::Invalid(_))));
}
