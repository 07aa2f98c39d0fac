//! A computer that has nothing but a folder of which a file is missing or damaged: it says which,
//! and on request reads everything that is in no such file.

use super::Computer;
use super::common::{BLOCKS, names};
use super::health::{HARMS, Model, World};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::record::CallKind;
use oblivio_store::{MemoryStore, Objects, RecordStore};
use oblivio_testkit::campaign::every;
use oblivio_volume::{BlockSpace, Error, OpenOptions, Result, Volume, Which};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Opens what is there, on a computer that knows nothing.
fn look_at(folder: Arc<dyn Objects>, history: Which) -> Result<Volume> {
    let mut computer = Computer::new(8000);
    let open = OpenOptions { incomplete: true, ..computer.session(history) };
    Volume::open(folder, &super::common::passphrase(), open)
}

/// A block, if it is not lost.
fn read(volume: &mut Volume, id: u64) -> Option<Option<u8>> {
    let op = BlockOp { id: BlockId(id), action: Action::Read };
    match volume.access(vec![op]) {
        Ok(found) => Some(found[0].as_ref().map(|bytes| bytes[0])),
        Err(Error::Lost(_) | Error::Tampered(_)) => None,
        Err(error) => panic!("block {id}: {error}"),
    }
}

/// The files that the read of each block reads.
fn touched(folder: &MemoryStore) -> Vec<BTreeSet<String>> {
    let folder = Arc::new(RecordStore::new(folder.snapshot()));
    let taken = |folder: &RecordStore<MemoryStore>| -> BTreeSet<String> {
        let reads = folder.take().into_iter().filter(|event| event.op == CallKind::Read);
        reads.map(|event| event.object.to_string()).collect()
    };
    let mut by_block = Vec::new();
    for id in 0..BLOCKS {
        let mut volume = look_at(folder.clone(), Which::Newest).unwrap();
        taken(&folder);
        read(&mut volume, id);
        by_block.push(taken(&folder));
    }
    by_block
}

/// All blocks that are not lost; a failure of one must not hide another.
fn all(folder: &Arc<MemoryStore>) -> Result<Vec<Option<Option<u8>>>> {
    let mut volume = look_at(folder.clone(), Which::Newest)?;
    let mut found = Vec::new();
    for id in 0..BLOCKS {
        let one = read(&mut volume, id);
        if one.is_none() {
            volume = look_at(folder.clone(), Which::Newest)?;
        }
        found.push(one);
    }
    Ok(found)
}

fn right(found: &[Option<Option<u8>>], model: &Model, what: &str) -> usize {
    let judged = found.iter().zip(model).map(|(found, right)| match found {
        Some(found) => {
            assert_eq!(found, right, "{what}: wrong bytes");
            1
        }
        None => 0,
    });
    judged.sum()
}

/// A file is lost, and so is its parity: it cannot be made again.
#[test]
fn what_is_in_no_damaged_file_is_read() {
    let world = World::new();
    let touched = touched(&world.folder);
    let (mut opened, mut refused, mut back, mut listed) = (0, 0, 0, 0);
    let number = |name: &String| name.split('-').nth(2).map(str::to_owned);
    let mut extents: Vec<String> =
        world.files().into_iter().filter(|name| name.starts_with("x-")).collect();
    extents.sort_by_key(number);
    let parities = extents.split_off(extents.len() - 2);
    for (at, name) in extents.into_iter().enumerate() {
        let harm = HARMS[at % 4];
        let folder = world.harmed(&name, harm).unwrap();
        folder.delete(&parities.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        let what = format!("{name}, {harm:?}");
        let before = names(&*folder);
        let copy = Arc::new(folder.snapshot());
        let Err(Error::StillToCome(why)) = Computer::new(9000).open(copy) else {
            panic!("{what}: a file is not there")
        };
        assert!(why.starts_with("1 of ") && why.contains(&name), "{what}: {why}");
        match all(&folder) {
            Ok(found) => {
                back += right(&found, &world.model, &what);
                let elsewhere = |(id, files): (usize, &BTreeSet<String>)| {
                    found[id].is_none() && !files.contains(&name)
                };
                // A file with leaves of the map costs what these list.
                listed += touched.iter().enumerate().filter(|&it| elsewhere(it)).count();
                opened += 1;
            }
            // What was written last is in the log, and the map is needed to open.
            Err(Error::StillToCome(_) | Error::Tampered(_)) => refused += 1,
            Err(error) => panic!("{what}: {error}"),
        }
        assert_eq!(names(&*folder), before, "{what}: a look changes nothing");
    }
    eprintln!("{opened} opened, {refused} refused, {back} blocks back, {listed} lost with the map");
    assert!(opened > refused && listed * 10 < back, "{opened} {refused} {back} {listed}");
}

/// A changed bit of a file costs what it hit, and not the file.
#[test]
fn a_changed_bit_costs_less_than_its_file() {
    let world = World::new();
    let extents: Vec<String> =
        world.files().into_iter().filter(|name| name.starts_with("x-")).collect();
    let (mut changed, mut gone) = (0, 0);
    for (at, pair) in extents.windows(2).enumerate().step_by(every(3)) {
        let what = format!("{pair:?}");
        let lost = |folder: &Arc<MemoryStore>| {
            let found = all(folder).ok()?;
            Some(found.len() - right(&found, &world.model, &what))
        };
        let folder = Arc::new(world.folder.snapshot());
        for name in pair {
            folder.corrupt(name, 97 * at as u64 % 256, |byte| *byte ^= 1).unwrap();
        }
        let Some(by_bits) = lost(&folder) else { continue };
        folder.delete(&[&pair[0], &pair[1]]).unwrap();
        if let Some(by_files) = lost(&folder) {
            (changed, gone) = (changed + by_bits, gone + by_files);
        }
    }
    eprintln!("{changed} blocks lost by changed bits, {gone} by files that are gone");
    // A bit of a leaf of the map costs the blocks that it lists.
    assert!(changed * 2 < gone, "{changed} {gone}");
}
