//! Lines of the contract in docs/leakage without another test.

use super::create;
use crate::common::pairs::{Session, padded};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::MemoryStore;
use oblivio_store::record::CallKind;
use oblivio_volume::disk::Disk;
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO, RenameMode};
use oblivio_volume::{BlockSpace, OpenOptions};

const BLOCK: usize = 4096;

fn plain() -> OpenOptions {
    OpenOptions { memory_bytes: 64 << 20, ..OpenOptions::default() }
}

fn op(id: u64, action: Action) -> BlockOp {
    BlockOp { id: BlockId(id), action }
}

/// Every operation on any block reads one path. The schedule adds one after every 3 that is written
/// as well, and the map one after every 256.
#[test]
fn every_operation_reads_one_path() {
    let (store, mut volume) = create(512, 1 << 20);
    volume.reserve(1024).expect("room");
    volume.defer((0..100).map(|id| op(id, Action::Write(vec![1; 512]))).collect()).expect("room");
    volume.finish().expect("memory");
    let actions: [fn(u64) -> BlockOp; 6] = [
        |_| op(3, Action::Read),
        |at| op(at % 100, Action::Read),
        |at| op(600 + at % 100, Action::Read),
        |at| op(at % 100, Action::Write(vec![2; 512])),
        |at| op(at % 100, Action::Patch { offset: 9, bytes: vec![1; 3] }),
        |at| op(50 + at % 50, Action::Remove),
    ];
    for action in actions {
        let (session, mut volume) = Session::open(&store, plain());
        session.seen();
        for _ in 0..32 {
            volume.access((0..16).map(action).collect()).expect("memory");
        }
        let (drawn, scheduled) = (session.seen(), 512 / 3);
        let paths: usize = drawn.paths.iter().map(|path| path.1).sum();
        assert!((scheduled - 1..=scheduled + 1).contains(&paths), "{paths}");
        assert_eq!(drawn.drawn(), 512 + 2);
        assert_eq!(drawn.paths.len(), 32, "each batch at once");
    }
}

/// A record that extends the journal sets its new end, which follows from the record's end.
#[test]
fn zeros_follow_a_record_by_the_length_of_the_journal() {
    let (store, mut volume) = create(512, 1 << 20);
    volume.reserve(1024).expect("room");
    volume.finish().expect("memory");
    let ends = |first: u64| {
        let (session, mut volume) = Session::open(&store, plain());
        session.seen();
        for round in 0..20 {
            let write = |at| op(first + at, Action::Write(vec![round as u8; 512]));
            volume.defer((0..20 * round % 90).map(write).collect()).expect("room");
            volume.commit().expect("memory");
        }
        session.seen().writes_to("journal")
    };
    let lens = ends(0);
    assert_eq!(lens, ends(700));
    assert!(lens.iter().any(|&len| len > 64 << 10), "zeros behind one: {lens:?}");
    let class = |len: &&u64| **len < 64 << 10;
    assert!(lens.iter().filter(class).all(|len| len.is_multiple_of(4096)), "{lens:?}");
}

/// A read of a deferred block shows an access, and its write is carried out at its usual time.
#[test]
fn what_waits_is_read_like_anything_else() {
    let (store, mut volume) = create(512, 1 << 20);
    volume.reserve(1024).expect("room");
    volume.finish().expect("memory");
    let paths = |read: u64| {
        let (session, mut volume) = Session::open(&store, plain());
        volume.defer((0..9).map(|id| op(id, Action::Write(vec![4; 512]))).collect()).expect("room");
        session.seen();
        let answer = volume.access(vec![op(read, Action::Read)]).expect("memory");
        assert_eq!(answer[0].is_some(), read < 9);
        let now = session.seen().drawn();
        volume.finish().expect("memory");
        (now, session.seen().drawn())
    };
    assert_eq!(paths(5), (1, 9));
    assert_eq!(paths(500), (1, 9));
}

/// A trim reveals only that there was one.
#[test]
fn a_trim_does_not_tell_what_existed() {
    const SIZE: u64 = 8 << 20;
    let (store, volume) = create(512, SIZE);
    let mut disk = Disk::format(Box::new(volume), SIZE).expect("a disk");
    for at in 0..2000 {
        disk.write(at * 1024, &[1; 512]).expect("room");
    }
    disk.write(5 << 20, &vec![2; 1 << 20]).expect("room");
    drop(disk.into_blocks().expect("memory"));
    let records = |at: u64| {
        let (session, volume) = Session::open(&store, plain());
        let mut disk = Disk::open(Box::new(volume)).expect("a disk");
        session.seen();
        disk.trim(at, 1 << 20).expect("inside");
        disk.flush().expect("memory");
        session.seen().writes_to("journal")[0]
    };
    // Every second block, all, none.
    let [scattered, all, none] = [0, 5 << 20, 7 << 20].map(records);
    assert_eq!((scattered, all), (none, none));
}

/// A file system with names of this length, and two files: one of data, one a hole.
fn named(name_bytes: usize) -> std::sync::Arc<MemoryStore> {
    let (store, volume) = create(BLOCK, 64 << 20);
    let fs = FileSystem::format(Box::new(volume)).expect("room");
    for (name, from) in [("data", 0), ("hole", (1 << 20) - 1)] {
        let (_, file) = fs.create(ROOT_INO, name.as_bytes(), NewNode::default()).expect("room");
        fs.write(file, from, &vec![1; (1 << 20) - from as usize]).expect("room");
        fs.close(file).expect("open");
    }
    let dir = fs.mkdir(ROOT_INO, b"dir", NewNode::default()).expect("room").ino;
    for number in 0..800 {
        let name = format!("{number:0>name_bytes$}");
        fs.mkdir(dir, name.as_bytes(), NewNode::default()).expect("room");
    }
    drop(fs.into_blocks().expect("memory"));
    store
}

/// The numbers of paths that listing and reading show, in a session that has read nothing yet.
fn look(store: &MemoryStore, options: OpenOptions, ahead: usize) -> [usize; 4] {
    let (session, volume) = Session::open(store, options);
    session.seen();
    let fs = FileSystem::open_ahead(Box::new(volume), ahead).expect("sound");
    fs.attr(ROOT_INO).expect("there");
    let opened = session.seen().drawn();
    let dir = fs.lookup(ROOT_INO, b"dir").expect("there").ino;
    assert_eq!(fs.read_dir(dir, None, 1000).expect("names").len(), 800);
    let listed = session.seen().drawn();
    let [data, hole] = ["data", "hole"].map(|name| {
        let file = fs.lookup(ROOT_INO, name.as_bytes()).expect("there").ino;
        let file = fs.open_file(file).expect("a file");
        fs.attr(ROOT_INO).expect("there");
        session.seen();
        fs.read(file, 0, 1 << 20).expect("data");
        session.seen().drawn()
    });
    [opened, listed, data, hole]
}

/// Names take metadata, and metadata that is not in memory shows; so do holes, which have no
/// blocks. With padding only the amount of metadata does, once, as the session begins.
#[test]
fn lengths_of_names_and_holes_show_without_padding() {
    let (short, long) = (named(4), named(240));
    let [opened, listed, data, hole] = look(&short, plain(), 0);
    let [long_opened, long_listed, ..] = look(&long, plain(), 0);
    let (few, many) = (opened + listed, long_opened + long_listed);
    assert!(many > 2 * few, "{few} and {many} paths to list");
    assert!(data > 200 && hole < 20, "{data} and {hole} paths to read");
    let [short_opened, short_listed, data, hole] = look(&short, padded(), usize::MAX);
    let [opened, listed, ..] = look(&long, padded(), usize::MAX);
    assert!(opened > short_opened, "{short_opened} and {opened} paths to open");
    assert_eq!((short_listed, listed), (0, 0));
    assert_eq!(data, hole);
    assert!(data > 200, "{data}");
}

/// A mount prefetches up to `most` blocks of metadata together, if there are that many.
#[test]
fn metadata_is_read_ahead_at_once() {
    let (few, many) = (named(4), named(240));
    let ahead = |store: &MemoryStore, most: usize| {
        let (session, volume) = Session::open(store, plain());
        session.seen();
        let _fs = FileSystem::open_ahead(Box::new(volume), most).expect("sound");
        let (paths, scheduled) = session.seen().paths[0];
        paths - scheduled
    };
    assert_eq!([16, 64].map(|most| ahead(&many, most)), [16, 64]);
    let all = ahead(&few, 64);
    assert!((16..64).contains(&all), "{all}");
}

/// A session makes only the requests in the rows of the contract.
#[test]
fn a_session_touches_the_objects_that_the_contract_names() {
    let store = named(4);
    let (session, volume) = Session::open(&store, plain());
    let fs = FileSystem::open(Box::new(volume)).expect("sound");
    fs.mkdir(ROOT_INO, b"new", NewNode::default()).expect("room");
    fs.commit().expect("memory");
    drop(fs.into_blocks().expect("memory"));
    let known = ["header", "commit", "state-", "log-", "journal"];
    for (what, object, _) in session.seen().calls {
        let named = known.iter().any(|name| object.starts_with(name));
        assert!(named || what == CallKind::List, "{what:?} of {object}");
    }
}

/// The rows of the table of padded operations.
#[test]
fn what_padded_operations_show() {
    let store = named(4);
    let (session, volume) = Session::open(&store, padded());
    let fs = FileSystem::open_ahead(Box::new(volume), usize::MAX).expect("sound");
    let file = fs.lookup(ROOT_INO, b"data").expect("there").ino;
    let file = fs.open_file(file).expect("a file");
    session.seen();
    for (len, paths) in [(1, 4), (5000, 4), (10 * BLOCK, 16), (60 * BLOCK, 64)] {
        fs.read(file, 77, len).expect("data");
        assert_eq!(session.seen().drawn(), paths, "to read {len} bytes");
    }
    let dir = fs.lookup(ROOT_INO, b"dir").expect("there").ino;
    fs.read_dir(dir, None, 1000).expect("names");
    fs.mkdir(dir, b"new", NewNode::default()).expect("room");
    fs.rename(dir, b"new", ROOT_INO, b"newer", RenameMode::Replace).expect("room");
    fs.rmdir(ROOT_INO, b"newer").expect("there");
    assert_eq!(session.seen().drawn(), 0, "names");
    fs.commit().expect("memory");
    // 28 and 2 for each of the three.
    assert_eq!(session.seen().records, [record(34)]);
    // 30 blocks touch at most 31, two bytes more at most 32. One more each for the old end,
    // and 31 of the sync.
    for (len, accesses) in [(30 * BLOCK, 63), (30 * BLOCK + 2, 64)] {
        fs.write(file, 9, &vec![8; len]).expect("room");
        assert!(session.seen().drawn() >= 4, "a tail may have to be read");
        fs.commit().expect("memory");
        assert_eq!(session.seen().records, [record(accesses)], "{len} bytes");
    }
    let tail = |len| fs.punch(file, 0, len).and_then(|()| fs.commit());
    tail(10).expect("room");
    // Two edges, 31 of the sync.
    assert_eq!(session.seen().records, [record(33)]);
}

/// The length of a record with room for `accesses` blocks and their heads.
fn record(accesses: usize) -> u64 {
    let bytes = (accesses * (BLOCK + 24)).next_power_of_two() + 4096;
    bytes.next_multiple_of(bytes.next_power_of_two() / 8) as u64
}
