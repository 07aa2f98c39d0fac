//! Several clients: what each sees of the others, and what is left when one ends.

use super::common::{BLOCK, NODE, assert_sound, client};
use oblivio_privatefs::Session;
use oblivio_privatefs::testing::Memory;
use oblivio_privatefs::{
    CacheNotice, Error, FileKind, Lock, LockKind, LockOwner, Name, ROOT, RenameMode, SetAttr,
};

#[test]
fn what_one_writes_another_sees_when_it_opens() {
    let memory = Memory::new(BLOCK);
    let (a, b) = (client(&memory, 1, false), client(&memory, 2, false));
    let file = a.fs.create(ROOT, b"f", NODE).unwrap().id;
    a.fs.write(file, 0, b"first").unwrap();
    let found = b.fs.lookup(ROOT, b"f").unwrap();
    assert_eq!((found.id, found.size), (file, 0));
    a.fs.close(file).unwrap();
    assert_eq!(b.fs.open(file).unwrap().size, 5);
    assert_eq!(b.fs.read(file, 0, 10).unwrap(), b"first");
    let notices = b.fs.take_notices();
    assert!(notices.contains(&CacheNotice::Inode(file)), "{notices:?}");
    assert_eq!(b.fs.take_notices(), []);
}

#[test]
fn an_open_file_outlives_its_names() {
    let memory = Memory::new(BLOCK);
    let (a, b) = (client(&memory, 1, false), client(&memory, 2, false));
    let file = a.fs.create(ROOT, b"f", NODE).unwrap().id;
    a.fs.write(file, 0, &[5; 10_000]).unwrap();
    a.fs.fsync(file).unwrap();
    b.fs.unlink(ROOT, b"f").unwrap();
    assert!(matches!(a.fs.lookup(ROOT, b"f"), Err(Error::NotFound)));
    assert_eq!(a.fs.read(file, 9_000, 10_000).unwrap(), [5; 1000]);
    assert!(matches!(b.fs.open(file), Err(Error::Stale)));
    assert!(matches!(b.fs.link(file, ROOT, b"again"), Err(Error::NotFound)));
    // Held, so nothing is wrong with it.
    assert_sound(&memory, 3);
    let before = memory.blocks();
    a.fs.close(file).unwrap();
    assert_eq!(memory.blocks(), before - 4);
    assert!(matches!(a.fs.attr(file), Err(Error::Stale)));
    assert_sound(&memory, 4);
}

#[test]
fn an_ended_session_holds_nothing() {
    let memory = Memory::new(BLOCK);
    let (a, b) = (client(&memory, 1, false), client(&memory, 2, false));
    let file = a.fs.create(ROOT, b"f", NODE).unwrap().id;
    let kept = a.fs.create(ROOT, b"kept", NODE).unwrap().id;
    b.fs.unlink(ROOT, b"f").unwrap();
    memory.end(Session(1));
    assert!(matches!(a.fs.attr(kept), Ok(_) | Err(Error::Below(_))));
    let found = client(&memory, 3, false).fs.check().unwrap();
    assert!(found.problems.len() == 1 && found.problems[0].is_left_over());
    assert_eq!(b.fs.clean_up().unwrap(), 1);
    assert!(matches!(b.fs.attr(file), Err(Error::Stale)));
    // Nobody is left who holds this one.
    b.fs.unlink(ROOT, b"kept").unwrap();
    assert_sound(&memory, 4);
}

#[test]
fn a_seventeenth_holder_takes_the_place_of_an_ended_one() {
    let memory = Memory::new(BLOCK);
    let first = client(&memory, 1, false);
    let file = first.fs.create(ROOT, b"f", NODE).unwrap().id;
    let others: Vec<_> = (2..=16).map(|number| client(&memory, number, false)).collect();
    for other in &others {
        other.fs.open(file).unwrap();
    }
    memory.end(Session(9));
    let last = client(&memory, 17, false);
    last.fs.open(file).unwrap();
    first.fs.unlink(ROOT, b"f").unwrap();
    for other in others.iter().filter(|other| other.fs.attr(file).is_ok()) {
        other.fs.close(file).unwrap();
    }
    first.fs.close(file).unwrap();
    last.fs.attr(file).unwrap();
    last.fs.close(file).unwrap();
    assert!(matches!(last.fs.attr(file), Err(Error::Stale)));
    assert_sound(&memory, 18);
}

#[test]
fn appends_of_two_clients_follow_each_other() {
    let memory = Memory::new(1024);
    let (a, b) = (client(&memory, 1, false), client(&memory, 2, false));
    let file = a.fs.create(ROOT, b"f", NODE).unwrap().id;
    b.fs.open(file).unwrap();
    let mut ends = 0;
    for round in 0..200u64 {
        let by = if round % 3 == 0 { &b } else { &a };
        let line = format!("{round:05}\n").into_bytes();
        assert_eq!(by.fs.append(file, &line).unwrap(), ends);
        ends += line.len() as u64;
    }
    let text = String::from_utf8(b.fs.read(file, 0, 10_000).unwrap()).unwrap();
    assert!(text.lines().map(|line| line.parse::<u64>().unwrap()).eq(0..200));
}

#[test]
fn what_was_read_ahead_gives_way_to_what_was_written() {
    let memory = Memory::new(BLOCK);
    let (a, b) = (client(&memory, 1, false), client(&memory, 2, false));
    let file = a.fs.create(ROOT, b"f", NODE).unwrap().id;
    let page = |value: u8| vec![value; BLOCK];
    let at = |number: usize| (number * BLOCK) as u64;
    a.fs.write(file, 0, &vec![1; 100 * BLOCK]).unwrap();
    a.fs.close(file).unwrap();
    b.fs.open(file).unwrap();
    assert_eq!(b.fs.read(file, 0, BLOCK).unwrap(), page(1));
    // Another client, and then this one, write what is here already.
    a.fs.open(file).unwrap();
    a.fs.write(file, at(10), &page(2)).unwrap();
    a.fs.close(file).unwrap();
    b.fs.open(file).unwrap();
    assert_eq!(b.fs.read(file, at(1), 10 * BLOCK).unwrap()[9 * BLOCK..], page(2));
    b.fs.write(file, at(12), &page(3)).unwrap();
    assert_eq!(b.fs.read(file, at(12), BLOCK).unwrap(), page(3), "it waits");
    b.fs.fsync(file).unwrap();
    assert_eq!(b.fs.read(file, at(12), BLOCK).unwrap(), page(3));
    let short = SetAttr { size: Some(at(20)), ..SetAttr::default() };
    b.fs.set_attr(file, short).unwrap();
    let long = SetAttr { size: Some(at(30)), ..SetAttr::default() };
    b.fs.set_attr(file, long).unwrap();
    assert_eq!(b.fs.read(file, at(13), 10 * BLOCK).unwrap()[7 * BLOCK..], vec![0; 3 * BLOCK]);
}

#[test]
fn locks_meet_across_clients_and_end_with_their_session() {
    let memory = Memory::new(BLOCK);
    let (a, b) = (client(&memory, 1, false), client(&memory, 2, false));
    let file = a.fs.create(ROOT, b"f", NODE).unwrap().id;
    b.fs.open(file).unwrap();
    let owner = LockOwner { number: 7, whole_file: false };
    let lock = |kind, start, end| Lock { kind, start, end, pid: 1 };
    let (shared, exclusive) = (LockKind::Shared, LockKind::Exclusive);
    a.fs.lock(file, owner, lock(shared, 0, 99)).unwrap();
    b.fs.lock(file, owner, lock(shared, 50, 150)).unwrap();
    let refused = b.fs.lock(file, owner, lock(exclusive, 90, 95));
    assert!(matches!(refused, Err(Error::Locked)));
    // Another kind of lock does not meet it.
    let whole = LockOwner { number: 7, whole_file: true };
    b.fs.lock(file, whole, lock(exclusive, 0, u64::MAX)).unwrap();
    a.fs.write(file, 5, b"while it was locked").unwrap();
    a.fs.unlock(file, owner, (60, 99)).unwrap();
    assert_eq!(b.fs.attr_now(file).unwrap().size, 24, "written before it was unlocked");
    b.fs.lock(file, owner, lock(exclusive, 90, 95)).unwrap();
    let wanted = lock(shared, 0, u64::MAX);
    let way = a.fs.lock_in_the_way(file, owner, wanted).unwrap().unwrap();
    assert_eq!((way.kind, way.start, way.end), (exclusive, 90, 95));
    memory.end(Session(2));
    assert_eq!(a.fs.lock_in_the_way(file, owner, wanted).unwrap(), None);
    a.fs.lock(file, owner, lock(exclusive, 0, u64::MAX)).unwrap();
}

#[test]
fn two_renames_make_no_circle() {
    let memory = Memory::new(BLOCK);
    let (a, b) = (client(&memory, 1, false), client(&memory, 2, false));
    let x = a.fs.mkdir(ROOT, b"x", NODE).unwrap().id;
    let y = a.fs.mkdir(ROOT, b"y", NODE).unwrap().id;
    b.fs.lookup(ROOT, b"x").unwrap();
    b.fs.lookup(ROOT, b"y").unwrap();
    a.fs.rename((ROOT, b"x"), (y, b"x"), RenameMode::Replace).unwrap();
    let back = b.fs.rename((ROOT, b"y"), (x, b"y"), RenameMode::Replace);
    assert!(matches!(back, Err(Error::Invalid(_))), "{back:?}");
    assert_eq!(a.fs.parent(x).unwrap(), y);
    assert_sound(&memory, 3);
}

#[test]
fn what_lies_beyond_the_end_never_comes_to_light() {
    let memory = Memory::new(BLOCK);
    let a = client(&memory, 1, false);
    let file = a.fs.create(ROOT, b"f", NODE).unwrap().id;
    a.fs.write(file, 0, &[1; 3 * BLOCK]).unwrap();
    a.fs.flush(file).unwrap();
    // A client dies between its pages and its inode.
    let dying = client(&memory, 2, false);
    dying.fs.open(file).unwrap();
    dying.fs.write(file, 3 * BLOCK as u64 - 10, &[9; 5 * BLOCK]).unwrap();
    dying.line.die_after(6);
    dying.fs.flush(file).unwrap_err();
    memory.end(Session(2));
    let size = |size| SetAttr { size: Some(size), ..SetAttr::default() };
    a.fs.set_attr(file, size(9 * BLOCK as u64)).unwrap();
    let read = a.fs.read(file, 3 * BLOCK as u64, 10 * BLOCK).unwrap();
    assert_eq!(read, vec![0; 6 * BLOCK]);
    a.fs.set_attr(file, size(100)).unwrap();
    a.fs.write(file, 200, b"x").unwrap();
    a.fs.flush(file).unwrap();
    assert_eq!(a.fs.read(file, 100, 200).unwrap()[..100], [0; 100]);
}

#[test]
fn damage_is_an_error_and_repair_leaves_nothing_wrong() {
    let memory = Memory::new(BLOCK);
    let a = client(&memory, 1, false);
    let file = a.fs.mknod(ROOT, b"f", FileKind::File, 0, NODE).unwrap().id;
    let lost = a.fs.mknod(ROOT, b"lost", FileKind::File, 0, NODE).unwrap().id;
    let inode = |owner| Name { owner, index: 0 };
    // The number of names, and a missing inode.
    memory.tamper(inode(file), |block| block.as_mut().unwrap()[320] = 9);
    memory.tamper(inode(lost), |block| *block = None);
    memory.tamper(Name { owner: [77; 16], index: 5 }, |block| *block = Some(vec![1; BLOCK]));
    let b = client(&memory, 2, false);
    assert!(matches!(b.fs.lookup(ROOT, b"lost"), Err(Error::Damaged(_))));
    let found = b.fs.check().unwrap();
    assert_eq!(found.problems.len(), 3, "{:?}", found.problems);
    let lines: Vec<String> = found.problems.iter().map(|it| found.line(it)).collect();
    let said = |line: &str| lines.iter().any(|it| it == line);
    assert!(said("/f: it says 9 links, and 1 are there"), "{lines:?}");
    assert!(said("the name \"lost\" in / leads to nothing"), "{lines:?}");
    assert_eq!(b.fs.repair(&found).unwrap(), 3);
    assert_sound(&memory, 3);
    memory.tamper(inode(file), |block| block.as_mut().unwrap()[324] ^= 1);
    let found = client(&memory, 4, false).fs.check().unwrap();
    assert_eq!(found.problems.len(), 1, "{:?}", found.problems);
    assert!(matches!(client(&memory, 5, false).fs.attr(file), Err(Error::Damaged(_))));
}

#[test]
fn a_full_volume_refuses_and_stays_sound() {
    let memory = Memory::new(BLOCK);
    let a = client(&memory, 1, false);
    let file = a.fs.create(ROOT, b"f", NODE).unwrap().id;
    memory.fill(true);
    assert!(matches!(a.fs.mkdir(ROOT, b"d", NODE), Err(Error::Full(_))));
    a.fs.write(file, 0, &[1; 20_000]).unwrap();
    assert!(matches!(a.fs.fsync(file), Err(Error::Full(_))));
    a.fs.set_attr(file, SetAttr { size: Some(0), ..SetAttr::default() }).unwrap();
    a.fs.close(file).unwrap();
    a.fs.unlink(ROOT, b"f").unwrap();
    assert_sound(&memory, 2);
}
