//! The local store's promises beyond the trait, on real files.
use oblivio_store::{
    Held, Lease, LocalStore, Log, Objects, PutMode, ReadAt, Result, Slots, StoreError, WriteAt,
};
use oblivio_testkit::eventually;
use oblivio_testkit::rigs::Tmpfs;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::SystemTime;
use tempfile::{TempDir, tempdir};

fn new() -> (TempDir, LocalStore) {
    let dir = tempdir().expect("tempdir");
    let store = LocalStore::create(dir.path()).expect("create");
    (dir, store)
}

fn read(store: &LocalStore, object: &str, len: usize) -> Result<Vec<u8>> {
    let mut buf = vec![0; len];
    store.read(&mut [ReadAt { object, offset: 0, buf: &mut buf }]).map(|()| buf)
}

fn write(store: &LocalStore, object: &str, data: &[u8]) -> Result<()> {
    store.write(&[WriteAt::new(object, 0, data)])
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("metadata").permissions().mode() & 0o777
}

fn kind<T>(result: Result<T>) -> Option<io::ErrorKind> {
    match result {
        Err(StoreError::Io { source, .. }) => Some(source.kind()),
        _ => None,
    }
}

#[test]
fn directories_and_files_are_private() -> Result<()> {
    let outer = tempdir().expect("tempdir");
    let dir = outer.path().join("one/two");
    let store = LocalStore::create(&dir)?;
    write(&store, "a", b"x")?;
    store.put("b", b"y", PutMode::Replace)?;
    store.put("c", b"y", PutMode::IfAbsent)?;
    store.lock()?;
    assert_eq!(mode(&dir), 0o700);
    for file in ["a", "b", "c", ".lock"] {
        assert_eq!(mode(&dir.join(file)), 0o600, "{file}");
    }
    Ok(())
}

#[test]
fn create_refuses_a_full_directory_and_open_a_missing_one() {
    let dir = tempdir().expect("tempdir");
    let missing = dir.path().join("none");
    assert!(matches!(LocalStore::open(&missing), Err(StoreError::Missing { .. })));
    let file = dir.path().join("file");
    fs::write(&file, b"").expect("write");
    assert_eq!(kind(LocalStore::open(&file)), Some(io::ErrorKind::NotADirectory));
    assert!(matches!(LocalStore::create(dir.path()), Err(StoreError::Exists { .. })));
}

#[test]
fn puts_left_by_a_crash_are_removed_unless_in_use() -> Result<()> {
    let (dir, store) = new();
    store.put("a", b"x", PutMode::Replace)?;
    for name in [".tmp-1-1", ".tmp-used"] {
        fs::write(dir.path().join(name), b"half").expect("write");
    }
    assert_eq!(store.list()?, [("a".to_owned(), 1)]);
    let used = fs::File::open(dir.path().join(".tmp-used")).expect("open");
    rustix::fs::flock(&used, rustix::fs::FlockOperation::LockExclusive).expect("flock");
    let _again = LocalStore::open(dir.path())?;
    assert!(!dir.path().join(".tmp-1-1").exists());
    assert!(dir.path().join(".tmp-used").exists());
    Ok(())
}

#[test]
fn a_put_leaves_nothing_beside_its_object() -> Result<()> {
    let (dir, store) = new();
    store.put("a", b"1", PutMode::IfAbsent)?;
    store.put("a", b"22", PutMode::Replace)?;
    assert!(matches!(store.put("a", b"3", PutMode::IfAbsent), Err(StoreError::Exists { .. })));
    let names: Vec<_> = fs::read_dir(dir.path()).expect("read_dir").collect();
    assert_eq!(names.len(), 1);
    assert_eq!(fs::metadata(dir.path().join("a")).expect("metadata").nlink(), 1);
    assert_eq!(read(&store, "a", 2)?, b"22");
    Ok(())
}

#[test]
fn one_of_many_puts_if_absent() {
    let (dir, _store) = new();
    for round in 0..5 {
        let barrier = Arc::new(Barrier::new(4));
        let put = |number: u8| {
            let store = LocalStore::open(dir.path()).expect("open");
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || {
                barrier.wait();
                match store.put(&format!("race-{round}"), &[number; 9000], PutMode::IfAbsent) {
                    Ok(()) => true,
                    Err(StoreError::Exists { .. }) => false,
                    Err(error) => panic!("{error}"),
                }
            })
        };
        let threads: Vec<_> = (0..4).map(put).collect();
        let won = threads.into_iter().map(|thread| thread.join().expect("thread"));
        assert_eq!(won.filter(|won| *won).count(), 1);
    }
}

#[test]
fn a_replaced_file_is_seen_by_those_who_had_it_open() -> Result<()> {
    let (dir, store) = new();
    write(&store, "a", b"old")?;
    assert_eq!(read(&store, "a", 3)?, b"old");
    store.put("a", b"new", PutMode::Replace)?;
    assert_eq!(read(&store, "a", 3)?, b"new");
    // By another process: a sync client, say.
    let other = LocalStore::open(dir.path())?;
    other.put("a", b"NEWER", PutMode::Replace)?;
    assert_eq!(read(&store, "a", 5)?, b"NEWER");
    other.delete(&["a"])?;
    assert!(matches!(read(&store, "a", 1), Err(StoreError::Missing { .. })));
    write(&store, "a", b"again")?;
    assert_eq!(read(&other, "a", 5)?, b"again");
    Ok(())
}

#[test]
fn special_files_are_refused_and_not_listed() -> Result<()> {
    let (dir, store) = new();
    let outside = tempdir().expect("tempdir");
    let target = outside.path().join("precious");
    fs::write(&target, b"precious").expect("write");
    symlink(&target, dir.path().join("link")).expect("symlink");
    fs::create_dir(dir.path().join("folder")).expect("create_dir");
    let (pipe, mode) = (dir.path().join("pipe"), Mode::RUSR | Mode::WUSR);
    mknodat(CWD, pipe, FileType::Fifo, mode, 0).expect("mkfifo");
    for name in ["link", "folder", "pipe"] {
        assert!(kind(write(&store, name, b"x")).is_some(), "{name}");
        assert!(kind(read(&store, name, 0)).is_some(), "{name}");
        assert!(kind(store.len(name)).is_some(), "{name}");
    }
    assert!(store.list()?.is_empty());
    assert_eq!(fs::read(&target).expect("read"), b"precious");
    // A put replaces the link, not its target.
    store.put("link", b"x", PutMode::Replace)?;
    assert_eq!(fs::read(&target).expect("read"), b"precious");
    Ok(())
}

#[test]
fn more_objects_than_open_files() -> Result<()> {
    let (_dir, store) = new();
    let names: Vec<String> = (0..300).map(|number| format!("o{number}")).collect();
    for name in &names {
        write(&store, name, name.as_bytes())?;
        store.sync(&[name])?;
    }
    let open = fs::read_dir("/proc/self/fd").map(Iterator::count);
    assert!(open.is_ok_and(|open| open < 250), "files are closed again");
    for name in &names {
        assert_eq!(read(&store, name, name.len())?, name.as_bytes());
    }
    Ok(())
}

#[test]
fn a_moved_directory_goes_on_working() -> Result<()> {
    let (dir, store) = new();
    write(&store, "a", b"x")?;
    let moved = dir.path().with_extension("moved");
    fs::rename(dir.path(), &moved).expect("rename");
    let result = write(&store, "b", b"y").and_then(|()| store.sync(&["a", "b"]));
    fs::rename(&moved, dir.path()).expect("rename");
    result
}

/// A disk of 64 KiB.
fn tiny() -> Option<Tmpfs> {
    Tmpfs::mount("64k").inspect_err(|why| eprintln!("skipped: no tmpfs: {why}")).ok()
}

/// An outage passes. A deleted folder does not come back, and no caller should wait for it.
#[test]
fn a_deleted_directory_is_missing() -> Result<()> {
    let (dir, store) = new();
    write(&store, "a", b"a")?;
    dir.close().expect("it goes");
    let missing = |result: Result<()>| matches!(result, Err(StoreError::Missing { .. }));
    assert!(missing(write(&store, "a", b"b")));
    assert!(missing(write(&store, "b", b"b")));
    assert!(missing(store.put("c", b"c", PutMode::Replace)));
    assert!(missing(store.sync(&["a"])));
    Ok(())
}

#[test]
#[ignore = "system: mounts a tmpfs"]
fn a_full_disk_is_full_and_recovers() -> Result<()> {
    let Some(tiny) = tiny() else { return Ok(()) };
    let store = LocalStore::create(tiny.path())?;
    write(&store, "a", &[1; 16 << 10])?;
    assert!(matches!(write(&store, "b", &[2; 100 << 10]), Err(StoreError::Full)));
    store.delete(&["b"])?;
    let put = store.put("a", &[3; 100 << 10], PutMode::Replace);
    assert!(matches!(put, Err(StoreError::Full)));
    assert_eq!(read(&store, "a", 16 << 10)?, vec![1; 16 << 10], "the old one is whole");
    let names: Vec<_> = fs::read_dir(tiny.path()).expect("read_dir").collect();
    assert_eq!(names.len(), 1, "no half-written file is left");
    // On a busy computer the system takes a moment to free deleted space.
    eventually("room on the disk", || match store.put("a", &[3; 8 << 10], PutMode::Replace) {
        Err(StoreError::Full) => None,
        done => Some(done),
    })
}

/// A deferred write learns of a full disk later, but always, and is not lost by it.
#[test]
#[ignore = "system: mounts a tmpfs"]
fn a_full_disk_is_told_by_the_sync_and_nothing_is_lost() -> Result<()> {
    let Some(tiny) = tiny() else { return Ok(()) };
    let store = LocalStore::create(tiny.path())?;
    write(&store, "small", &[1; 32 << 10])?;
    let data: Vec<u8> = (0..300 << 10).map(|at| (at / 4096) as u8).collect();
    write(&store, "long", &data)?;
    assert!(matches!(store.sync(&["long"]), Err(StoreError::Full)));
    assert_eq!(read(&store, "long", data.len())?, data);
    assert!(matches!(store.sync(&["long"]), Err(StoreError::Full)), "and again");
    // Cut bytes need not be written, and then there is room.
    store.truncate("long", 10_000)?;
    store.sync(&["long"])?;
    drop(store);
    let store = LocalStore::open(tiny.path())?;
    assert_eq!(read(&store, "long", 10_000)?, data[..10_000]);
    assert_eq!(store.len("long")?, Some(10_000));
    Ok(())
}

#[test]
#[ignore = "system: mounts a tmpfs"]
fn a_read_only_medium_can_be_read() -> Result<()> {
    let Some(tiny) = tiny() else { return Ok(()) };
    LocalStore::create(tiny.path())?.put("a", b"abc", PutMode::Replace)?;
    tiny.make_read_only().expect("it can be made read-only");
    let store = LocalStore::open(tiny.path())?;
    assert_eq!(read(&store, "a", 3)?, b"abc");
    let read_only = Some(io::ErrorKind::ReadOnlyFilesystem);
    assert_eq!(kind(write(&store, "a", b"x")), read_only);
    assert_eq!(kind(write(&store, "b", b"x")), read_only);
    assert_eq!(kind(store.truncate("a", 0)), read_only);
    assert_eq!(kind(store.put("a", b"x", PutMode::Replace)), read_only);
    assert_eq!(kind(store.lock()), read_only);
    assert_eq!(read(&store, "a", 3)?, b"abc");
    Ok(())
}

/// On a file system with holes. Elsewhere the space stays taken and nothing else changes.
#[test]
fn discarded_ranges_give_their_space_back() -> Result<()> {
    let (dir, store) = new();
    write(&store, "a", &vec![7; 1 << 20])?;
    store.sync(&["a"])?;
    let path = dir.path().join("a");
    let before = fs::metadata(&path).expect("metadata").blocks();
    store.discard(&[("a", 256 << 10, 512 << 10), ("a", 0, 0)])?;
    let data = read(&store, "a", 1 << 20)?;
    assert_eq!(store.len("a")?, Some(1 << 20));
    let (first, rest) = data.split_at(256 << 10);
    let (middle, last) = rest.split_at(512 << 10);
    assert!(first.iter().chain(last).all(|&byte| byte == 7));
    assert!(middle.iter().all(|&byte| byte == middle[0]));
    if middle[0] == 0 {
        assert!(fs::metadata(&path).expect("metadata").blocks() <= before - 1024);
    }
    assert!(matches!(store.discard(&[("b", 0, 1)]), Err(StoreError::Missing { .. })));
    Ok(())
}

/// On a file system that can reserve. Elsewhere zeros are written, with the same result.
#[test]
fn what_is_allocated_has_its_space() -> Result<()> {
    let (dir, store) = new();
    store.allocate("a", 1 << 20)?;
    assert_eq!(store.len("a")?, Some(1 << 20));
    assert!(fs::metadata(dir.path().join("a")).expect("metadata").blocks() >= 2048);
    assert_eq!(read(&store, "a", 1 << 20)?, vec![0; 1 << 20]);
    write(&store, "b", &vec![1; 300 << 10])?;
    store.allocate("b", 200 << 10)?;
    assert_eq!(read(&store, "b", 300 << 10)?, vec![1; 300 << 10], "it is not cut");
    store.allocate("b", 400 << 10)?;
    assert_eq!(store.len("b")?, Some(400 << 10));
    assert_eq!(read(&store, "b", 300 << 10)?, vec![1; 300 << 10]);
    store.allocate("c", 0)?;
    assert_eq!(store.len("c")?, Some(0));
    Ok(())
}

/// Whether the write is deferred, under way or in the file.
#[test]
fn an_object_is_as_long_as_what_was_written_to_it_at_every_moment() {
    let (_dir, store) = new();
    let piece = vec![7; 300 << 10];
    for at in 0..100 {
        let offset = at * piece.len() as u64;
        store.write(&[WriteAt::new("o", offset, &piece)]).expect("write");
        for _ in 0..200 {
            assert_eq!(store.len("o").expect("len"), Some(offset + piece.len() as u64));
        }
    }
    store.sync(&["o"]).expect("sync");
}

#[test]
fn a_long_call_reads_every_range_or_says_what_is_wrong() -> Result<()> {
    const PIECE: usize = 100 << 10;
    let (_dir, store) = new();
    let piece = |object: usize, at: usize| vec![(object * 50 + at) as u8; PIECE];
    let names = ["a", "b", "c"];
    for (object, name) in names.into_iter().enumerate() {
        let all: Vec<_> = (0..20).flat_map(|at| piece(object, at)).collect();
        write(&store, name, &all)?;
    }
    let mut wanted: Vec<_> =
        (0..3).flat_map(|object| (0..20).map(move |at| (object, at))).collect();
    for step in [1, 7, 11] {
        let mut bufs = vec![vec![0; PIECE]; wanted.len()];
        let places = wanted.iter().zip(&mut bufs);
        let mut reads: Vec<_> = places
            .map(|(&(object, at), buf)| ReadAt {
                object: names[object],
                offset: (at * PIECE) as u64,
                buf,
            })
            .collect();
        store.read(&mut reads)?;
        for (index, object, offset) in
            [(0, "d", 0), (59, "d", 0), (0, "c", 1 << 30), (59, "c", 1 << 30)]
        {
            let (name, place) = (reads[index].object, reads[index].offset);
            (reads[index].object, reads[index].offset) = (object, offset);
            match store.read(&mut reads) {
                Err(StoreError::Missing { object: named }) => {
                    assert_eq!((named.as_str(), object), ("d", "d"))
                }
                Err(StoreError::Short { object: named, .. }) => {
                    assert_eq!((named.as_str(), object), ("c", "c"))
                }
                other => panic!("{other:?}"),
            }
            (reads[index].object, reads[index].offset) = (name, place);
        }
        store.read(&mut reads)?;
        for (&(object, at), buf) in wanted.iter().zip(&bufs) {
            assert!(*buf == piece(object, at), "object {object}, piece {at}");
        }
        wanted = (0..wanted.len()).map(|index| wanted[index * step % wanted.len()]).collect();
    }
    Ok(())
}

/// Otherwise each read would make the file system write, and sometimes wait for that.
#[test]
fn reading_is_not_noted_in_the_files() -> Result<()> {
    let (dir, store) = new();
    write(&store, "slab", &[7; 9000])?;
    store.sync(&["slab"])?;
    let path = dir.path().join("slab");
    let noted = || fs::metadata(&path).and_then(|found| found.accessed());
    // A reading after so long is noted by file systems that note hardly any, too.
    let old = fs::FileTimes::new().set_accessed(SystemTime::UNIX_EPOCH);
    fs::File::open(&path).and_then(|file| file.set_times(old)).expect("its times are set");
    let before = noted().expect("it is there");
    assert_eq!(read(&store, "slab", 9000)?, [7; 9000]);
    assert_eq!(noted().expect("it is there"), before);
    Ok(())
}
