//! The promises of a store in one file or partition beyond the trait, on real files and devices.

use oblivio_store::partition::Existing;
use oblivio_store::{
    ChangeKind, Held, Lease, Log, Objects, PartitionPlace, PartitionStore, PutMode, ReadAt, Result,
    Slots, StoreError, WriteAt,
};
use oblivio_testkit::rigs::Tmpfs;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::{TempDir, tempdir};

fn places() -> [PartitionPlace<'static>; 3] {
    [
        PartitionPlace::new("header", 4000),
        PartitionPlace::new("log", 1 << 20),
        PartitionPlace::fixed("disk", 3 << 20),
    ]
}

fn new() -> (TempDir, PathBuf, PartitionStore) {
    let dir = tempdir().expect("tempdir");
    let path = dir.path().join("volume");
    let store = PartitionStore::create(&path, &places(), Existing::Refuse).expect("create");
    (dir, path, store)
}

fn read(store: &PartitionStore, object: &str, offset: u64, len: usize) -> Result<Vec<u8>> {
    let mut buf = vec![0; len];
    store.read(&mut [ReadAt { object, offset, buf: &mut buf }]).map(|()| buf)
}

fn write(store: &PartitionStore, object: &str, offset: u64, data: &[u8]) -> Result<()> {
    store.write(&[WriteAt::new(object, offset, data)])
}

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    match result {
        Err(StoreError::Io { source, .. }) => Some(source.kind()),
        _ => None,
    }
}

fn occupied(result: Result<PartitionStore>) -> Option<&'static str> {
    match result {
        Err(StoreError::Occupied { what, .. }) => Some(what),
        _ => None,
    }
}

#[test]
fn a_file_is_private_and_takes_all_of_its_space() -> Result<()> {
    let (_dir, path, store) = new();
    let found = fs::metadata(&path).expect("metadata");
    let size = PartitionStore::size_with(&places())?;
    assert_eq!(size, 8192 + 2 * 4096 + (4 << 20));
    assert_eq!((found.len(), found.permissions().mode() & 0o777), (size, 0o600));
    assert!(found.blocks() * 512 >= size, "no hole");
    assert_eq!(store.free_bytes()?, Some(4000 + (4 << 20)));
    write(&store, "disk", 0, b"x")?;
    assert_eq!(store.free_bytes()?, Some(4000 + (1 << 20)));
    Ok(())
}

#[test]
fn it_is_recognised_and_opened_again() -> Result<()> {
    let (dir, path, store) = new();
    store.put("header", b"head", PutMode::IfAbsent)?;
    write(&store, "disk", 1 << 20, b"in the middle")?;
    store.sync(&["disk"])?;
    drop(store);
    assert!(PartitionStore::is_one(&path)?);
    let store = PartitionStore::open(&path)?;
    let held = [("disk".to_owned(), 3 << 20), ("header".to_owned(), 4)];
    assert_eq!(store.list()?, held);
    assert_eq!(read(&store, "disk", 1 << 20, 13)?, b"in the middle");
    // Half of the table damaged: still one, and still whole.
    let file = fs::OpenOptions::new().write(true).open(&path).expect("open");
    file.write_all_at(&[0; 4096], 0).expect("write");
    assert!(PartitionStore::is_one(&path)?);
    // Other things are none, and opening them reports the reason.
    file.write_all_at(&[0; 4096], 4096).expect("write");
    assert!(!PartitionStore::is_one(&path)?);
    assert_eq!(kind(PartitionStore::open(&path)), Some(ErrorKind::InvalidData));
    assert!(!PartitionStore::is_one(dir.path())?);
    assert!(!PartitionStore::is_one(dir.path().join("none"))?);
    assert!(!PartitionStore::is_one("/dev/null")?);
    assert_eq!(kind(PartitionStore::open("/dev/null")), Some(ErrorKind::InvalidInput));
    assert!(matches!(
        PartitionStore::open(dir.path().join("none")),
        Err(StoreError::Missing { .. })
    ));
    Ok(())
}

#[test]
fn what_is_there_is_not_overwritten_unless_it_may_be_lost() -> Result<()> {
    let (dir, path, store) = new();
    store.put("header", b"head", PutMode::Replace)?;
    let again = || PartitionStore::create(&path, &places(), Existing::Refuse);
    assert!(matches!(again(), Err(StoreError::Busy)), "while it is open for writing");
    drop(store);
    assert_eq!(occupied(again()), Some("an Oblivio volume"));
    assert_eq!(read(&PartitionStore::open(&path)?, "header", 0, 4)?, b"head");
    let store = PartitionStore::create(&path, &places(), Existing::Overwrite)?;
    assert!(store.list()?.is_empty());
    let other = dir.path().join("other");
    fs::write(&other, b"a letter").expect("write");
    let create = || PartitionStore::create(&other, &places(), Existing::Refuse);
    assert_eq!(occupied(create()), Some("data"));
    assert_eq!(fs::read(&other).expect("read"), b"a letter");
    fs::write(&other, b"").expect("write");
    create()?.put("header", b"x", PutMode::Replace)?;
    assert!(kind(PartitionStore::create(dir.path(), &places(), Existing::Overwrite)).is_some());
    Ok(())
}

#[test]
fn objects_stay_in_their_places() -> Result<()> {
    let (_dir, _path, store) = new();
    let full = |result: Result<()>| matches!(result, Err(StoreError::Full));
    assert!(full(write(&store, "log", 1 << 20, b"x")));
    assert!(full(write(&store, "header", 0, &[1; 4001])));
    assert!(full(store.put("header", &[1; 4001], PutMode::Replace)));
    assert!(full(store.allocate("log", (1 << 20) + 1)));
    let both = [WriteAt::new("log", 0, b"fits"), WriteAt::new("disk", (3 << 20) - 1, b"too long")];
    assert!(full(store.write(&both)));
    assert_eq!(store.len("log")?, Some(0), "made by `allocate`; nothing of the call was written");
    assert_eq!(kind(write(&store, "other", 0, b"x")), Some(ErrorKind::InvalidInput));
    assert_eq!(store.len("other")?, None);
    store.delete(&["other"])?;
    Ok(())
}

#[test]
fn a_fixed_object_has_one_length_and_never_changes_the_table() -> Result<()> {
    let (_dir, path, store) = new();
    write(&store, "disk", 5, b"x")?;
    store.sync(&["disk"])?;
    assert_eq!(store.len("disk")?, Some(3 << 20));
    let front = || fs::read(&path).expect("read")[..8192].to_vec();
    let before = front();
    let piece = vec![7; 1 << 20];
    for at in [0, 1 << 20, 2 << 20] {
        write(&store, "disk", at, &piece)?;
        store.sync(&["disk"])?;
    }
    assert_eq!(front(), before);
    assert_eq!(kind(store.truncate("disk", 1)), Some(ErrorKind::InvalidInput));
    store.truncate("disk", 3 << 20)?;
    assert_eq!(kind(store.put("disk", &piece, PutMode::Replace)), Some(ErrorKind::InvalidInput));
    store.delete(&["disk"])?;
    assert_eq!(store.len("disk")?, None);
    store.allocate("disk", 1000)?;
    assert_eq!(store.len("disk")?, Some(3 << 20));
    assert_ne!(front(), before);
    Ok(())
}

#[test]
fn an_object_with_one_place_is_put_once() -> Result<()> {
    let (_dir, path, store) = new();
    store.put("log", &[1; 300_000], PutMode::Replace)?;
    assert_eq!(kind(store.put("log", b"2", PutMode::Replace)), Some(ErrorKind::InvalidInput));
    assert!(matches!(store.put("log", b"2", PutMode::IfAbsent), Err(StoreError::Exists { .. })));
    store.delete(&["log"])?;
    store.put("log", &[3; 300_001], PutMode::IfAbsent)?;
    drop(store);
    assert_eq!(read(&PartitionStore::open(&path)?, "log", 0, 300_001)?, vec![3; 300_001]);
    Ok(())
}

/// Bytes beyond an object's end never come back, whatever is written after them.
#[test]
fn an_object_that_grows_again_holds_zeros_between() -> Result<()> {
    let (_dir, _path, store) = new();
    write(&store, "log", 0, &[9; 100_000])?;
    store.sync(&["log"])?;
    store.truncate("log", 10)?;
    write(&store, "log", 50_000, b"x")?;
    let mut expected = vec![0; 50_001];
    expected[..10].fill(9);
    expected[50_000] = b'x';
    assert_eq!(read(&store, "log", 0, 50_001)?, expected);
    store.truncate("log", 20)?;
    store.truncate("log", 100_000)?;
    expected.resize(100_000, 0);
    expected[50_000] = 0;
    assert_eq!(read(&store, "log", 0, 100_000)?, expected);
    Ok(())
}

#[test]
fn a_second_handle_finds_it_busy_and_may_read() -> Result<()> {
    let (_dir, path, store) = new();
    store.put("header", b"x", PutMode::Replace)?;
    store.lock()?;
    let second = PartitionStore::open(&path)?;
    assert!(matches!(second.lock(), Err(StoreError::Busy)));
    assert_eq!(read(&second, "header", 0, 1)?, b"x");
    drop(store);
    second.lock()?;
    second.lock()
}

#[test]
fn a_file_that_was_cut_does_not_open() {
    let (_dir, path, store) = new();
    drop(store);
    let file = fs::OpenOptions::new().write(true).open(&path).expect("open");
    file.set_len(1 << 20).expect("set_len");
    let short = PartitionStore::open(&path);
    assert!(matches!(short, Err(StoreError::Short { len: 0x10_0000, .. })));
    file.set_len(100).expect("set_len");
    assert!(matches!(PartitionStore::open(&path), Err(StoreError::Short { len: 100, .. })));
}

/// On a file system with holes. Elsewhere the space stays taken and nothing else changes.
#[test]
fn discarded_ranges_are_holes_within_their_object() -> Result<()> {
    let (_dir, path, store) = new();
    write(&store, "log", 0, &vec![7; 1 << 20])?;
    write(&store, "disk", 0, &vec![8; 1 << 20])?;
    store.sync(&["log", "disk"])?;
    let before = fs::metadata(&path).expect("metadata").blocks();
    store.discard(&[("log", 1000, 1 << 40)])?;
    let data = read(&store, "log", 0, 1 << 20)?;
    assert!(data[..4096].iter().all(|byte| *byte == 7));
    assert!(data[4096..].iter().all(|byte| *byte == data[4096]));
    assert_eq!(read(&store, "disk", 0, 1 << 20)?, vec![8; 1 << 20]);
    if data[4096] == 0 {
        assert!(fs::metadata(&path).expect("metadata").blocks() <= before - 2000);
    }
    Ok(())
}

fn run(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A disk of 1 MiB.
fn tiny() -> Option<Tmpfs> {
    Tmpfs::mount("1m").inspect_err(|why| eprintln!("skipped: no tmpfs: {why}")).ok()
}

#[test]
#[ignore = "system: mounts a tmpfs"]
fn where_there_is_no_room_nothing_is_left() {
    let Some(tiny) = tiny() else { return };
    let path = tiny.path().join("volume");
    let create =
        |places: &[PartitionPlace<'_>]| PartitionStore::create(&path, places, Existing::Refuse);
    assert!(matches!(create(&places()), Err(StoreError::Full)));
    assert!(!path.exists());
    fs::write(&path, b"").expect("write");
    assert!(matches!(create(&places()), Err(StoreError::Full)));
    assert_eq!(fs::metadata(&path).expect("metadata").len(), 0);
    assert!(create(&[PartitionPlace::fixed("disk", 512 << 10)]).is_ok());
}

#[test]
#[ignore = "system: mounts a tmpfs"]
fn a_read_only_medium_can_be_read() -> Result<()> {
    let Some(tiny) = tiny() else { return Ok(()) };
    let path = tiny.path().join("volume");
    PartitionStore::create(&path, &[PartitionPlace::new("a", 100)], Existing::Refuse)?.put(
        "a",
        b"abc",
        PutMode::Replace,
    )?;
    tiny.make_read_only().expect("it can be made read-only");
    let store = PartitionStore::open(&path)?;
    assert_eq!(read(&store, "a", 0, 3)?, b"abc");
    let read_only = Some(ErrorKind::ReadOnlyFilesystem);
    assert_eq!(kind(write(&store, "a", 0, b"x")), read_only);
    assert_eq!(kind(store.put("a", b"x", PutMode::Replace)), read_only);
    assert_eq!(kind(store.lock()), read_only);
    Ok(())
}

/// A loop device, detached on drop.
struct Loop {
    device: String,
    _dir: TempDir,
}

impl Loop {
    fn attach(size: u64) -> Option<Self> {
        let dir = tempdir().ok()?;
        let file = dir.path().join("disk");
        fs::File::create(&file).ok()?.set_len(size).ok()?;
        if !Path::new("/dev/loop-control").exists() {
            return None;
        }
        let device = run("losetup", &["--find", "--show", file.to_str()?])?;
        Some(Self { device, _dir: dir })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

#[test]
#[ignore = "system: a loop device"]
fn a_store_on_a_partition() -> Result<()> {
    let Some(disk) = Loop::attach(16 << 20) else {
        eprintln!("skipped: no loop device can be had here (it takes root)");
        return Ok(());
    };
    let path = &disk.device;
    assert!(!PartitionStore::is_one(path)?);
    let large = [PartitionPlace::fixed("disk", 16 << 20)];
    let none = PartitionStore::create(path, &large, Existing::Overwrite);
    assert!(none.is_err_and(|error| error.to_string().contains("16777216")), "too small");
    let store = PartitionStore::create(path, &places(), Existing::Refuse)?;
    let second = PartitionStore::open(path)?;
    assert!(matches!(second.lock(), Err(StoreError::Busy)));
    store.put("header", b"head", PutMode::Replace)?;
    write(&store, "log", 100, b"logged")?;
    write(&store, "disk", (3 << 20) - 4096, &[5; 4096])?;
    store.sync(&["log", "disk"])?;
    store.discard(&[("disk", 0, 3 << 20)])?;
    assert_eq!(read(&store, "disk", (3 << 20) - 1, 1)?, [5], "nothing is given back by itself");
    let store = store.discards(true);
    store.discard(&[("disk", 0, 3 << 20)])?;
    assert!([0, 5].contains(&read(&store, "disk", (3 << 20) - 1, 1)?[0]));
    drop(store);
    second.lock()?;
    drop(second);
    assert!(PartitionStore::is_one(path)?);
    let store = PartitionStore::open(path)?;
    assert_eq!(read(&store, "log", 0, 106)?[100..], *b"logged");
    assert_eq!(read(&store, "header", 0, 4)?, b"head");
    drop(store);
    let again = PartitionStore::create(path, &places(), Existing::Refuse);
    assert_eq!(occupied(again), Some("an Oblivio volume"));
    Ok(())
}

#[test]
fn a_partition_with_a_file_system_is_left_alone() -> Result<()> {
    let Some(disk) = Loop::attach(320 << 20) else {
        eprintln!("skipped: no loop device can be had here (it takes root)");
        return Ok(());
    };
    let path = &disk.device;
    let create = |existing| PartitionStore::create(path, &places(), existing);
    let makers: [(&str, &[&str], &str); 4] = [
        ("mkfs.ext4", &["-q", "-F"], "an ext2, ext3 or ext4 file system"),
        ("mkfs.xfs", &["-q", "-f"], "an XFS file system"),
        ("mkfs.vfat", &[], "a FAT file system"),
        ("mkswap", &[], "swap space"),
    ];
    for (maker, args, what) in makers {
        if run(maker, &[args, &[path.as_str()]].concat()).is_none() {
            eprintln!("skipped: {maker} does not run here");
            continue;
        }
        assert_eq!(occupied(create(Existing::Refuse)), Some(what));
        if maker == "mkfs.ext4" {
            let mounted = tempdir().expect("tempdir");
            let at = mounted.path().to_str().expect("a path");
            if run("mount", &[path, at]).is_some() {
                let busy = create(Existing::Overwrite);
                assert!(run("umount", &[at]).is_some());
                assert!(matches!(busy, Err(StoreError::Busy)));
            }
        }
        create(Existing::Overwrite)?.put("header", b"x", PutMode::Replace)?;
        // No program recognizes the previous content.
        let seen = run("blkid", &["-p", "-o", "value", "-s", "TYPE", path]);
        assert!(seen.is_none_or(|seen| seen.is_empty()));
        fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|file| file.write_all_at(&vec![0; 1 << 20], 0))
            .expect("wipe");
    }
    Ok(())
}

#[test]
fn kinds_follow_from_the_size() {
    assert_eq!(PartitionPlace::new("a", 64 << 10).kind, ChangeKind::Twice);
    assert_eq!(PartitionPlace::new("a", (64 << 10) + 1).kind, ChangeKind::Growing);
    assert_eq!(PartitionPlace::fixed("a", 1).kind, ChangeKind::Fixed);
}
