//! The promises of the library: what is written is read, what is changed behind its back is
//! refused, and errors say which.

use oblivio::{CreateOptions, Disk, Error, FileKind, OpenOptions, Result, SeenBy, Volume};
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A folder with a place for a volume, and one for what the computer knows.
pub struct Room(pub tempfile::TempDir);

impl Room {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn place(&self) -> PathBuf {
        self.0.path().join("vault")
    }

    pub fn open(&self) -> OpenOptions {
        OpenOptions::new().memory(8 << 20).remember_in(self.0.path().join("state"))
    }

    /// The least cost of guessing, for a passphrase that guards nothing.
    pub fn create(&self) -> CreateOptions {
        let cheap = CreateOptions::new().guessing_cost(32 << 10, 1).size(64 << 20);
        cheap.block_size(4096).opened(self.open())
    }

    pub fn volume(&self) -> Volume {
        self.create().create(self.place(), "secret").expect("an empty place")
    }

    pub fn again(&self) -> Result<Volume> {
        self.open().open(self.place(), "secret")
    }

    /// A copy of the folder while the volume is open: what a crash leaves.
    fn crashed(&self) -> Result<Volume> {
        let place = self.0.path().join("crashed");
        copy(&self.place(), &place);
        self.open().without_rollback_protection().open(&place, "secret")
    }
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("a file");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
    }
}

#[test]
fn files_are_found_by_their_paths() -> Result<()> {
    let room = Room::new();
    let volume = room.volume();
    volume.create_dir_all("/a/b")?;
    volume.write("/a/b/one", b"one")?;
    volume.write("/a/b/one", b"1")?;
    volume.write("/a/two", &[7; 100_000])?;
    volume.write_at("/a/two", 99_999, b"end")?;
    volume.rename("/a/two", "/a/b/two")?;
    volume.close()?;

    let volume = room.again()?;
    assert_eq!(volume.read("/a/b/one")?, b"1");
    assert_eq!(volume.read_at("/a/b/two", 99_998, 100)?, b"\x07end");
    let listed = volume.list("/a/b")?.collect::<Result<Vec<_>>>()?;
    assert_eq!(listed.iter().map(|it| it.name()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(volume.list("/a")?.next().expect("one")?.path(), Path::new("/a/b"));
    assert_eq!(volume.metadata("/a/b/two")?.len(), 100_002);
    assert!(volume.metadata("/a")?.is_dir());
    assert_eq!(listed[0].kind(), FileKind::File);
    assert!(volume.usage()?.used >= 100_002);
    assert!(volume.exists("/a/b/one")? && !volume.exists("/a/two")?);

    assert!(matches!(volume.remove("/a"), Err(Error::NotEmpty(_))));
    volume.remove("/a/b/one")?;
    volume.remove("/a/b/two")?;
    volume.remove("/a/b")?;
    assert!(matches!(volume.read("/a/b/one"), Err(Error::NotFound(path)) if path == "/a/b/one"));
    assert!(matches!(volume.create_dir("/a"), Err(Error::Exists(_))));
    assert!(matches!(volume.read("/a"), Err(Error::IsADirectory(_))));
    assert!(matches!(volume.read("a"), Err(Error::BadPath(_))));
    assert!(matches!(volume.remove("/"), Err(Error::Invalid(_))));
    volume.close()
}

#[test]
fn an_open_file_reads_writes_and_seeks() -> Result<()> {
    let room = Room::new();
    let volume = room.volume();
    let mut file = volume.create_file("/file")?;
    let mut work = || -> std::io::Result<Vec<u8>> {
        file.write_all(b"hello, world")?;
        file.seek(SeekFrom::Current(-5))?;
        file.write_all(b"W")?;
        assert!(file.seek(SeekFrom::Current(-100)).is_err());
        file.rewind()?;
        let mut all = Vec::new();
        file.read_to_end(&mut all)?;
        Ok(all)
    };
    assert_eq!(work().expect("room"), b"hello, World");
    file.set_len(5)?;
    file.sync()?;
    assert_eq!((file.len()?, file.read_at(3, 9)?), (5, b"lo".to_vec()));
    volume.close()?;
    assert!(matches!(file.read_at(0, 1), Err(Error::Closed(_))));
    Ok(())
}

#[test]
fn what_is_dropped_is_kept_too() -> Result<()> {
    let room = Room::new();
    room.volume().write("/file", b"kept")?;
    assert_eq!(room.again()?.read("/file")?, b"kept");
    Ok(())
}

#[test]
fn a_crash_leaves_a_file_as_it_was_or_as_it_became() -> Result<()> {
    let room = Room::new();
    let volume = room.volume();
    volume.write("/file", &[1; 20_000])?;
    volume.sync()?;
    volume.write("/file", &[2; 30_000])?;
    assert_eq!(room.crashed()?.read("/file")?, [1; 20_000]);
    volume.sync()?;
    assert_eq!(room.crashed()?.read("/file")?, [2; 30_000]);
    volume.close()
}

/// What was written without a sync is durable once it is much; what came after that is not.
#[test]
fn much_is_committed_by_itself() -> Result<()> {
    let room = Room::new();
    let volume = room.create().size(256 << 20).create(room.place(), "secret")?;
    let file = volume.create_file("/large")?;
    for at in 0..80 {
        file.write_at(at << 20, &vec![at as u8 + 1; 1 << 20])?;
    }
    let crashed = room.crashed()?;
    let kept = crashed.metadata("/large")?.len() >> 20;
    assert_eq!(kept, 64, "the file itself counts as a little");
    assert_eq!(crashed.read_at("/large", (kept << 20) - 1, 9)?, [64]);
    drop(file);
    volume.close()?;
    assert_eq!(room.again()?.read_at("/large", (80 << 20) - 1, 9)?, [80]);
    Ok(())
}

#[test]
fn an_old_copy_is_refused_unless_the_caller_says_so() -> Result<()> {
    let room = Room::new();
    let (place, old) = (room.place(), room.0.path().join("old"));
    room.volume().close()?;
    copy(&place, &old);
    let volume = room.again()?;
    volume.write("/file", b"new")?;
    volume.close()?;
    copy(&old, &place);
    assert!(matches!(room.again(), Err(Error::RolledBack(_))));
    let unprotected = room.open().without_rollback_protection();
    unprotected.open(&place, "secret")?.close()?;
    copy(&old, &place);
    let volume = room.open().accept_rollback().open(&place, "secret")?;
    assert!(!volume.exists("/file")?);
    volume.close()?;
    room.again()?.close()
}

#[test]
fn each_refusal_has_an_error_of_its_own() -> Result<()> {
    let room = Room::new();
    let place = room.place();
    assert!(matches!(room.again(), Err(Error::NotFound(_))));
    let volume = room.volume();
    assert!(matches!(room.again(), Err(Error::Busy)));
    volume.close()?;
    assert!(matches!(room.open().open(&place, "guess"), Err(Error::WrongPassphrase)));
    assert!(matches!(room.open().open_disk(&place, "secret"), Err(Error::HoldsFiles)));
    assert!(matches!(room.create().create(&place, "secret"), Err(Error::Exists(_))));
    assert!(matches!(room.create().create("", ""), Err(Error::Invalid(_))));
    let empty = room.0.path().join("empty");
    fs::create_dir(&empty).expect("a folder");
    assert!(matches!(room.open().open(&empty, "secret"), Err(Error::NotAVolume(_))));
    let file = room.0.path().join("file");
    fs::write(&file, "text").expect("a file");
    assert!(matches!(room.open().open(&file, "secret"), Err(Error::NotAVolume(_))));
    // Another volume in its place.
    fs::remove_dir_all(&place).expect("a folder");
    let elsewhere = Room::new();
    elsewhere.volume().close()?;
    copy(&elsewhere.place(), &place);
    assert!(matches!(room.again(), Err(Error::OtherVolume(_))));
    room.open().accept_other_volume().open(&place, "secret")?.close()
}

#[test]
fn a_changed_byte_is_noticed() -> Result<()> {
    let room = Room::new();
    let volume = room.volume();
    volume.write("/file", &[5; 50_000])?;
    volume.close()?;
    for entry in fs::read_dir(room.place()).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("slab")) {
            let mut bytes = fs::read(&path).expect("a file");
            bytes.iter_mut().for_each(|byte| *byte ^= 1);
            fs::write(&path, bytes).expect("a file");
        }
    }
    let read = room.again().and_then(|volume| volume.read("/file"));
    assert!(matches!(read, Err(Error::Tampered(_) | Error::Lost(_))), "{read:?}");
    Ok(())
}

#[test]
fn a_volume_may_hold_a_disk_and_be_one_file() -> Result<()> {
    let room = Room::new();
    let create = || room.create().seen_by(SeenBy::Snapshots);
    let place = room.0.path().join("disk.img");
    assert!(matches!(create().size(0).create(&place, "secret"), Err(Error::Invalid(_))));
    let disk = create().one_file().create_disk(&place, "secret", 1 << 20)?;
    assert_eq!(disk.len(), 1 << 20);
    disk.write_at(5000, b"written")?;
    disk.sync()?;
    disk.write_at((1 << 20) - 3, b"end")?;
    assert!(matches!(disk.write_at((1 << 20) - 3, b"over"), Err(Error::Invalid(_))));
    disk.close()?;
    assert!(place.is_file());
    assert!(matches!(room.open().open(&place, "secret"), Err(Error::HoldsDisk)));
    let disk: Disk = room.open().open_disk(&place, "secret")?;
    assert_eq!(disk.read_at(4999, 9)?, b"\0written\0");
    assert_eq!(disk.read_at((1 << 20) - 3, 3)?, b"end");
    disk.trim(4096, 4096)?;
    assert_eq!(disk.read_at(5000, 7)?, [0; 7]);
    disk.close()
}

#[test]
fn threads_share_a_volume() -> Result<()> {
    let room = Room::new();
    let volume = room.volume();
    std::thread::scope(|scope| {
        for name in ["/a", "/b", "/c"] {
            let volume = &volume;
            scope.spawn(move || {
                for round in 0..10u8 {
                    volume.write(name, &[round; 3000]).expect("room");
                    assert_eq!(volume.read(name).expect("there"), [round; 3000]);
                }
            });
        }
    });
    volume.close()
}

/// Padding is about reads: a volume made against snapshots has none to pad, and opens all the same.
#[test]
fn padding_is_for_volumes_that_hide_reads() -> Result<()> {
    for seen_by in [SeenBy::Storage, SeenBy::Snapshots] {
        let room = Room::new();
        let create = room.create().seen_by(seen_by).opened(room.open().pad(true));
        let volume = create.create(room.place(), "secret")?;
        volume.write("/a", b"padded")?;
        volume.close()?;
        let volume = room.open().pad(true).open(room.place(), "secret")?;
        assert_eq!(volume.read("/a")?, b"padded");
        volume.close()?;
    }
    Ok(())
}
