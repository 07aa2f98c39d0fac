//! Inspections of a folder: the order in which damage is reported, and which copy mends it.

use super::common::{names, passphrase};
use super::health::{Harm, World, bytes};
use super::{Computer, contents, write};
use crate::damage::sectors::BadSector;
use oblivio_store::record::CallKind;
use oblivio_store::{MemoryStore, Objects, Patience, PutMode, RecordStore, RetryStore};
use oblivio_volume::{BlockSpace, Inspection, OpenOptions, Reached, Volume, Which};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

fn view(folder: Arc<dyn Objects>) -> Volume {
    let open = OpenOptions { incomplete: true, ..Computer::new(9000).session(Which::Newest) };
    Volume::open(folder, &passphrase(), open).expect("most is there")
}

/// A damaged file is told before anybody notes that the inspection is past it: also if it then
/// stops, or is killed.
#[test]
fn damage_is_told_before_the_inspection_moves_on() {
    let world = World::new();
    let mut extents = world.files();
    extents.retain(|name| name.starts_with("x-"));
    extents.sort_by_key(|name| name.split('-').nth(2).map(str::to_owned));
    let extents = &extents[extents.len() - 6..extents.len() - 2];
    let folder = Arc::new(world.folder.snapshot());
    for name in extents {
        folder.corrupt(name, 9, |byte| *byte ^= 4).unwrap();
    }
    let mut volume = view(folder);
    let (mut from, mut told) = (0, Vec::new());
    loop {
        let part = RefCell::new(Vec::new());
        let mut next = None;
        let found = volume.inspect_part(Inspection {
            from,
            at_once: 1,
            amid_requests: false,
            reached: &mut |now: Reached| {
                next = now.next;
                part.borrow_mut().push(None);
                ControlFlow::Break(())
            },
            damaged: &mut |place| part.borrow_mut().push(Some(place.object)),
        });
        let (found, part) = (found.expect("it reads"), part.into_inner());
        let files: Vec<String> = part.iter().flatten().cloned().collect();
        assert_eq!(found.damaged, files.len() as u64);
        if files.iter().any(|name| name.starts_with("x-")) {
            assert_eq!(part.last(), Some(&None), "told first: {part:?}");
        }
        told.extend(files.into_iter().filter(|name| name.starts_with("x-")));
        match next {
            Some(next) => from = next,
            None => break,
        }
    }
    told.sort();
    let mut extents = extents.to_vec();
    extents.sort();
    assert_eq!(told, extents, "each once");
}

/// Files that a view made again in memory are no changes.
#[test]
fn a_view_has_changed_nothing() {
    let world = World::new();
    let gone = world.files().into_iter().find(|name| name.starts_with("x-")).unwrap();
    let mut volume = view(world.harmed(&gone, Harm::Removed).unwrap());
    assert_eq!(contents(&mut volume), world.model);
    let info = volume.extents().unwrap().extent_info().unwrap();
    assert!(info.view && info.changed_extents == 0, "{info:?}");
}

/// One copy of an entry is damaged while the volume is open. The other one is there: a computer
/// that holds nothing beside the folder makes it whole, too.
#[test]
fn a_copy_of_an_entry_is_made_whole_from_the_other() {
    let world = World::new();
    let (entry, before) = (world.newest_entry(), names(&world.folder));
    for name in [entry.clone(), entry.replacen('e', "d", 1)] {
        let folder = Arc::new(world.folder.snapshot());
        let open = OpenOptions { beside: None, ..Computer::new(9000).session(Which::Newest) };
        let mut volume = Volume::open(Arc::clone(&folder), &passphrase(), open).unwrap();
        folder.corrupt(&name, 70, |byte| *byte ^= 1).unwrap();
        let mut bad = Vec::new();
        volume.inspect(&mut |_, _| {}, &mut |place| bad.push(place)).unwrap();
        assert_eq!(bad, [], "{name}");
        let said = volume.damaged();
        assert!(said.len() == 1 && said[0].object == name, "{name}: {said:?}");
        assert!(bytes(&*folder, &name) == bytes(&world.folder, &name));
        assert_eq!(names(&*folder), before);
    }
}

/// Names of ours with any length: a provider can make such a file, which takes no space there. None
/// is read that is longer than what is made under that name.
#[test]
fn a_length_in_the_folder_takes_no_memory() {
    let world = World::new();
    let folder = world.folder.snapshot();
    let long = vec![0; 3 << 20];
    let (entry, extent) = (world.newest_entry(), world.files());
    let extent = extent.into_iter().find(|name| name.starts_with("x-")).unwrap();
    let planted = [
        "k-00000000000000ab-00000007".to_owned(),
        "e-000000000000feed-00000012".to_owned(),
        entry.replacen('e', "d", 1),
        extent,
    ];
    for name in &planted {
        folder.put(name, &long, PutMode::Replace).unwrap();
    }
    let folder = Arc::new(RecordStore::new(folder));
    for mut computer in [Computer::new(9000), world.writer()] {
        let mut volume = computer.open(folder.clone()).expect("the others are whole");
        assert_eq!(contents(&mut volume), world.model);
        volume.inspect(&mut |_, _| {}, &mut |_| {}).unwrap();
        let reads = folder.take().into_iter().filter(|event| event.op == CallKind::Read);
        let longest = reads.map(|event| event.len).max().unwrap();
        assert!(longest < 3 << 20, "{longest} bytes of a file are read");
        for name in &planted[2..] {
            folder.put(name, &long, PutMode::Replace).unwrap();
        }
        folder.take();
    }
}

/// In a mount a layer outlasts outages. A file that cannot be read is none: it is made again, while
/// the volume is opened and while it is checked.
#[test]
fn an_unreadable_file_is_no_outage() {
    let world = World::new();
    let files: Vec<String> = world.files().into_iter().filter(|it| !it.starts_with("k-")).collect();
    for name in files.iter().step_by(files.len() / 6) {
        let disk = Arc::new(world.folder.snapshot());
        let folder = Arc::new(BadSector::new(&disk, name, 0..512));
        let (ended, waits) = mpsc::channel::<()>();
        let patience = Patience::default();
        let outlasts = RetryStore::new(folder, patience.clone(), Box::new(|_| {}));
        let watch = thread::spawn(move || {
            let late = waits.recv_timeout(Duration::from_secs(60)).is_err();
            patience.end();
            late
        });
        let mut volume =
            Computer::new(9000).open(Arc::new(outlasts)).expect("the others are there");
        assert_eq!(contents(&mut volume), world.model, "{name}");
        volume.inspect(&mut |_, _| {}, &mut |place| panic!("{place}")).expect("it goes on");
        let said = volume.damaged();
        ended.send(()).expect("it waits");
        assert!(!watch.join().expect("it ends"), "{name}: it waits for ever");
        assert!(said.len() == 1 && said[0].object == *name, "{name}: {said:?}");
    }
}

/// The parity of the log is lost during a long session, after a first epoch of it that needed no
/// reading of all: the next epoch has it again.
#[test]
fn a_parity_that_is_lost_later_is_made_anew() {
    let world = World::new();
    let (folder, mut writer) = (Arc::new(world.folder.snapshot()), world.writer());
    let mut volume = writer.open(folder.clone()).unwrap();
    let end_epoch = |volume: &mut Volume, byte: u8| {
        volume.access(vec![write(3, byte)]).unwrap();
        volume.extents().unwrap().end_epoch().unwrap();
    };
    end_epoch(&mut volume, 70);
    let number = |name: &str| u64::from_str_radix(name.split('-').nth(2).unwrap(), 16).unwrap();
    let of_log = |folder: &MemoryStore| -> Vec<String> {
        let all = names(folder).into_iter().map(|it| it.0).filter(|it| it.starts_with("x-"));
        let all: Vec<String> = all.collect();
        let last = all.iter().map(|name| number(name)).max().unwrap();
        all.into_iter().filter(|name| number(name) + 1 == last).collect()
    };
    for parity in of_log(&folder) {
        folder.corrupt(&parity, 5, |byte| *byte ^= 1).unwrap();
        if writer.beside.len(&parity).unwrap().is_some() {
            let mut own = bytes(&*writer.beside, &parity);
            own[5] ^= 1;
            writer.beside.put(&parity, &own, PutMode::Replace).unwrap();
        }
    }
    end_epoch(&mut volume, 71);
    volume.finish().unwrap();
    drop(volume);
    let mut model = world.model.clone();
    model[3] = Some(71);
    // Each file of the newest epoch may be lost again.
    let beside = names(&*writer.beside).into_iter().map(|it| it.0);
    for name in beside.filter(|name| name.starts_with("x-")) {
        let folder = Arc::new(folder.snapshot());
        folder.delete(&[&name]).unwrap();
        let mut volume =
            Computer::new(9000).open(folder).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(contents(&mut volume), model, "{name}");
    }
}
