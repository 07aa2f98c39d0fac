//! Several computers: by turns, apart, and with files that have not arrived.

use super::common::{BLOCKS, names};
use super::{Computer, contents, write};
use oblivio_store::{Held, MemoryStore, Objects, PutMode, ReadAt, Slots, WriteAt};
use oblivio_testkit::SplitMix64;
use oblivio_volume::{BlockSpace, Error, Volume, Which, drop_history, histories, pick};
use std::sync::Arc;

type Model = Vec<Option<u8>>;

/// Writes to drawn blocks.
fn change(volume: &mut Volume, model: &mut Model, dice: &mut SplitMix64, count: u64) {
    for _ in 0..count {
        let (id, byte) = (dice.below(BLOCKS), dice.below(256) as u8);
        volume.access(vec![write(id, byte)]).expect("works");
        model[id as usize] = Some(byte);
    }
}

fn bytes(folder: &MemoryStore, name: &str) -> Vec<u8> {
    let mut buf = vec![0; folder.len(name).unwrap().unwrap() as usize];
    folder.read(&mut [ReadAt { object: name, offset: 0, buf: &mut buf }]).unwrap();
    buf
}

/// What a sync client does: files that only one side has get to the other. What one side deleted is
/// deleted on the other. No file may differ: then a client would make a conflict copy.
fn sync(one: &MemoryStore, other: &MemoryStore, before: &[(String, u64)]) {
    for (from, to) in [(one, other), (other, one)] {
        for (name, _) in names(from) {
            match to.len(&name).unwrap() {
                Some(_) => assert_eq!(bytes(from, &name), bytes(to, &name), "{name} changed"),
                None if before.iter().any(|it| it.0 == name) => from.delete(&[&name]).unwrap(),
                None => to.put(&name, &bytes(from, &name), PutMode::IfAbsent).unwrap(),
            }
        }
    }
}

struct Pair {
    here: Computer,
    there: Computer,
    folders: [Arc<MemoryStore>; 2],
    before: Vec<(String, u64)>,
    model: Model,
}

/// Two computers, each with its copy of a folder.
fn pair() -> Pair {
    let folders = [(); 2].map(|()| Arc::new(MemoryStore::new()));
    let (mut here, there) = (Computer::new(1), Computer::new(10_000));
    let mut volume = Volume::from(here.create(folders[0].clone()));
    let mut model = vec![None; BLOCKS as usize];
    change(&mut volume, &mut model, &mut SplitMix64::new(1), 50);
    volume.finish().unwrap();
    let mut pair = Pair { here, there, folders, before: Vec::new(), model };
    pair.sync();
    pair
}

impl Pair {
    fn sync(&mut self) {
        sync(&self.folders[0], &self.folders[1], &self.before);
        self.before = names(&*self.folders[0]);
        assert_eq!(self.before, names(&*self.folders[1]));
    }

    /// Both write and finish, apart from each other; gives the contents.
    fn part(&mut self) -> [Model; 2] {
        let mut models = [self.model.clone(), self.model.clone()];
        for (at, computer) in [&mut self.here, &mut self.there].into_iter().enumerate() {
            let mut volume = computer.open(self.folders[at].clone()).unwrap();
            change(&mut volume, &mut models[at], &mut SplitMix64::new(at as u64 + 5), 30);
            volume.finish().unwrap();
        }
        self.sync();
        models
    }
}

#[test]
fn by_turns_each_has_what_the_other_wrote() {
    let (mut pair, mut dice) = (pair(), SplitMix64::new(3));
    let mut most = 0;
    for round in 0..24 {
        let which = usize::from(dice.below(2) == 0);
        let computer = if which == 0 { &mut pair.here } else { &mut pair.there };
        let mut volume = computer.open(pair.folders[which].clone()).unwrap();
        assert_eq!(contents(&mut volume), pair.model, "round {round}");
        change(&mut volume, &mut pair.model, &mut dice, 20);
        volume.finish().unwrap();
        pair.sync();
        if round > 4 {
            most = most.max(pair.before.len());
        }
    }
    let extents = pair.before.iter().filter(|it| it.0.starts_with("x-")).count();
    assert!(extents > 20, "{extents}");
    assert!(most < 5 * extents, "what nobody needs is deleted: {most} files of {extents}");
}

#[test]
fn two_that_wrote_apart_leave_two_histories_until_one_is_picked() {
    let mut pair = pair();
    let models = pair.part();
    let passphrase = super::common::passphrase();
    for (at, computer) in [&mut pair.here, &mut pair.there].into_iter().enumerate() {
        let Err(Error::Parted(why)) = computer.open(pair.folders[at].clone()) else {
            panic!("there are two")
        };
        assert!(why.contains("2 histories") && why.contains("this computer's"), "{why}");
    }
    let session = pair.here.session(Which::Newest);
    let list = histories(pair.folders[0].clone(), &passphrase, session).unwrap();
    assert_eq!(list.len(), 2);
    for it in &list {
        let expected = if it.own { &models[0] } else { &models[1] };
        let which = Which::View(it.name.clone());
        let before = names(&*pair.folders[0]);
        let mut volume = pair.here.open_as(pair.folders[0].clone(), which).unwrap();
        assert_eq!(&contents(&mut volume), expected, "{it:?}");
        // A file system notes times of access; that goes to memory, and with it.
        volume.access(vec![write(1, 1)]).unwrap();
        volume.finish().unwrap();
        assert_eq!(names(&*pair.folders[0]), before, "a look changes nothing");
    }
    let other = list.iter().find(|it| !it.own).unwrap().name.clone();
    let own = list.iter().find(|it| it.own).unwrap().name.clone();
    let session = pair.here.session(Which::Newest);
    pick(pair.folders[0].clone(), &passphrase, session, &other).unwrap();
    pair.sync();
    for (at, computer) in [&mut pair.here, &mut pair.there].into_iter().enumerate() {
        let mut volume = computer.open(pair.folders[at].clone()).unwrap();
        assert_eq!(contents(&mut volume), models[1], "the picked one goes on");
        volume.finish().unwrap();
    }
    pair.sync();
    // The other is kept, over later epochs too.
    let mut model = models[1].clone();
    for round in 0..3 {
        let mut volume = pair.there.open(pair.folders[1].clone()).unwrap();
        change(&mut volume, &mut model, &mut SplitMix64::new(round), 20);
        volume.finish().unwrap();
        pair.sync();
    }
    let which = Which::View(own.clone());
    let mut volume = pair.there.open_as(pair.folders[1].clone(), which).unwrap();
    assert_eq!(contents(&mut volume), models[0], "it can still be looked at");
    drop(volume);
    let kept = names(&*pair.folders[1]).len();
    let session = pair.there.session(Which::Newest);
    drop_history(pair.folders[1].clone(), &passphrase, session, &own).unwrap();
    pair.sync();
    for (at, computer) in [&mut pair.here, &mut pair.there].into_iter().enumerate() {
        let mut volume = computer.open(pair.folders[at].clone()).unwrap();
        assert_eq!(contents(&mut volume), model);
        volume.access(vec![write(0, 77)]).unwrap();
        model[0] = Some(77);
        volume.finish().unwrap();
        pair.before.clone_from(&names(&*pair.folders[1 - at]));
        sync(&pair.folders[0], &pair.folders[1], &pair.before);
    }
    let left = names(&*pair.folders[1]).len();
    assert!(left < kept, "what only it needed is gone: {left} of {kept}");
}

/// One crashes with writes that only it has; the other goes on: nothing is lost.
#[test]
fn what_only_one_had_becomes_a_history_of_its_own() {
    let mut pair = pair();
    let mut models = [pair.model.clone(), pair.model.clone()];
    let mut volume = pair.here.open(pair.folders[0].clone()).unwrap();
    change(&mut volume, &mut models[0], &mut SplitMix64::new(5), 10);
    volume.commit().unwrap();
    drop(volume);
    let mut volume = pair.there.open(pair.folders[1].clone()).unwrap();
    change(&mut volume, &mut models[1], &mut SplitMix64::new(6), 10);
    volume.finish().unwrap();
    pair.sync();
    let error = pair.here.open(pair.folders[0].clone()).err().expect("two histories");
    assert!(matches!(error, Error::Parted(_)), "{error}");
    let session = pair.here.session(Which::Newest);
    let passphrase = super::common::passphrase();
    for it in histories(pair.folders[0].clone(), &passphrase, session).unwrap() {
        let which = Which::View(it.name.clone());
        let mut volume = pair.here.open_as(pair.folders[0].clone(), which).unwrap();
        assert_eq!(contents(&mut volume), models[usize::from(!it.own)], "{it:?}");
    }
}

/// Looking at an epoch whose session is not over makes no history.
#[test]
fn who_only_reads_beside_a_writer_parts_nothing() {
    let mut pair = pair();
    let mut model = pair.model.clone();
    let mut volume = pair.here.open(pair.folders[0].clone()).unwrap();
    let mut dice = SplitMix64::new(8);
    for _ in 0..4 {
        change(&mut volume, &mut model, &mut dice, 12);
        // An epoch in the middle of a session, as after five minutes.
        volume.extents().expect("it is one").end_epoch().unwrap();
        pair.sync();
        let mut reader = pair.there.open(pair.folders[1].clone()).unwrap();
        assert_eq!(contents(&mut reader), model);
        reader.finish().unwrap();
        drop(reader);
        pair.sync();
    }
    volume.finish().unwrap();
    drop(volume);
    pair.sync();
    let mut volume = pair.there.open(pair.folders[1].clone()).expect("one history");
    assert_eq!(contents(&mut volume), model);
}

/// Files arrive in any order, some in part at first. At no point is anything wrong believed.
#[test]
fn files_that_have_not_arrived_are_still_to_come() {
    let mut pair = pair();
    let mut volume = pair.there.open(pair.folders[1].clone()).unwrap();
    volume.finish().unwrap();
    drop(volume);
    pair.sync();
    let old = pair.model.clone();
    let mut new = old.clone();
    let mut volume = pair.here.open(pair.folders[0].clone()).unwrap();
    change(&mut volume, &mut new, &mut SplitMix64::new(4), 25);
    volume.finish().unwrap();
    drop(volume);
    for seed in 0..6 {
        let mut dice = SplitMix64::new(seed);
        let (arriving, mut there) = (pair.folders[1].snapshot(), pair.there.clone());
        there.beside = Arc::new(snapshot_of(&there));
        there.keeper = pair.there.keeper.twin();
        let arriving = Arc::new(arriving);
        let mut coming: Vec<String> = names(&*pair.folders[0]).into_iter().map(|it| it.0).collect();
        coming.retain(|name| arriving.len(name).unwrap().is_none());
        assert!(coming.len() > 5);
        let (mut waited, total) = (0, coming.len());
        while !coming.is_empty() {
            let name = coming.swap_remove(dice.below(coming.len() as u64) as usize);
            let whole = bytes(&pair.folders[0], &name);
            if dice.below(2) == 0 {
                let part = &whole[..dice.below(whole.len() as u64) as usize];
                arriving.put(&name, part, PutMode::Replace).unwrap();
                look(&mut there, &arriving, [&old, &new], &mut waited);
                // Or all of its length, and zeros in between.
                arriving.put(&name, &vec![0; whole.len()], PutMode::Replace).unwrap();
                arriving.write(&[WriteAt::new(&name, 0, part)]).unwrap();
                look(&mut there, &arriving, [&old, &new], &mut waited);
            }
            arriving.put(&name, &whole, PutMode::Replace).unwrap();
            look(&mut there, &arriving, [&old, &new], &mut waited);
        }
        assert!(waited > 0, "seed {seed}: once it had to wait, of {total}");
        let mut volume = there.open(arriving).unwrap();
        assert_eq!(contents(&mut volume), new);
    }
}

fn snapshot_of(computer: &Computer) -> MemoryStore {
    let copy = MemoryStore::new();
    for (name, len) in computer.beside.list().unwrap() {
        let mut buf = vec![0; len as usize];
        computer.beside.read(&mut [ReadAt { object: &name, offset: 0, buf: &mut buf }]).unwrap();
        copy.put(&name, &buf, PutMode::IfAbsent).unwrap();
    }
    copy
}

/// The old or the new content; if not all is there, the older one on request.
fn look(there: &mut Computer, folder: &Arc<MemoryStore>, models: [&Model; 2], waited: &mut u32) {
    match there.open(folder.clone()) {
        Ok(mut volume) => {
            let found = contents(&mut volume);
            assert!(models.contains(&&found));
            volume.finish().unwrap();
        }
        Err(Error::StillToCome(_)) => {
            *waited += 1;
            let mut volume = there.open_as(folder.clone(), Which::Older).unwrap();
            assert_eq!(&contents(&mut volume), models[0]);
            volume.finish().unwrap();
        }
        Err(error) => panic!("{error}"),
    }
}

/// Names that a sync client or anybody makes up are as good as not there.
#[test]
fn copies_that_a_client_makes_are_ignored() {
    let mut pair = pair();
    let folder = pair.folders[0].clone();
    for (name, _) in names(&*folder) {
        let copy = format!("{name}.sync-conflict-20260101");
        let garbage = [bytes(&folder, &name), vec![7]].concat();
        folder.put(&copy[..copy.len().min(64)], &garbage, PutMode::IfAbsent).unwrap();
    }
    folder.put("desktop.ini", b"[.ShellClassInfo]", PutMode::IfAbsent).unwrap();
    let before = names(&*folder).len();
    let mut volume = pair.here.open(folder.clone()).unwrap();
    assert_eq!(contents(&mut volume), pair.model);
    volume.access(vec![write(9, 9)]).unwrap();
    volume.finish().unwrap();
    drop(volume);
    let mut volume = Computer::new(77).open(folder.clone()).unwrap();
    assert_eq!(contents(&mut volume)[9], Some(9));
    assert!(names(&*folder).len() + 20 > before, "and nobody deletes them");
    assert!(folder.len("desktop.ini").unwrap().is_some());
}

/// A state folder that is a copy, or was put back from a backup: its acts do not bear numbers that
/// others know, and nothing is lost.
#[test]
fn a_copy_of_a_state_folder_is_another_computer() {
    let mut pair = pair();
    let mut copy = pair.there.clone();
    copy.seed += 500;
    // Before it ever opened the volume both are nobody; so it opens first, and is copied then.
    pair.there.open(pair.folders[1].clone()).unwrap().finish().unwrap();
    copy.beside = Arc::new(snapshot_of(&pair.there));
    copy.keeper = pair.there.keeper.twin();
    pair.sync();
    for round in 0..4 {
        for which in 0..2 {
            let computer = if which == 0 { &mut pair.there } else { &mut copy };
            let mut volume = computer.open(pair.folders[which].clone()).unwrap();
            assert_eq!(contents(&mut volume), pair.model, "round {round}");
            change(&mut volume, &mut pair.model, &mut SplitMix64::new(round), 9);
            volume.finish().unwrap();
            drop(volume);
            pair.sync();
        }
    }
    let passphrase = super::common::passphrase();
    let session = copy.session(Which::Newest);
    assert_eq!(histories(pair.folders[1].clone(), &passphrase, session).unwrap().len(), 1);
    // Apart, from the same copy: two histories, as of any two computers.
    for (which, computer) in [&mut pair.there, &mut copy].into_iter().enumerate() {
        let mut volume = computer.open(pair.folders[which].clone()).unwrap();
        volume.access(vec![write(which as u64, 99)]).unwrap();
        volume.finish().unwrap();
    }
    pair.sync();
    let session = copy.session(Which::Newest);
    assert_eq!(histories(pair.folders[1].clone(), &passphrase, session).unwrap().len(), 2);
}
