//! A mount of a full volume reports it to `write()`, and existing data stays writable.

use crate::common::noise;
use crate::mount::{Rig, rig};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

/// A mounted volume with this size limit.
fn small(size: &str, options: &[&str]) -> Option<Rig> {
    let rig = rig()?;
    rig.scratch.good(["resize", "v", size]);
    rig.mount(options);
    Some(rig)
}

/// Writes pieces until there is no room, and ignores the result of closing; returns the number of
/// accepted bytes.
fn fill(path: &Path, piece: usize, most: usize) -> usize {
    let mut file = File::create(path).expect("made");
    let data = noise(piece, 7);
    let mut accepted = 0;
    while accepted < most {
        match file.write(&data) {
            Ok(0) => break,
            Ok(written) => accepted += written,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
                return accepted;
            }
        }
    }
    panic!("{accepted} bytes were accepted");
}

/// Free bytes as `df` shows them.
fn offered(rig: &Rig) -> u64 {
    let found = rustix::fs::statvfs(&rig.dir).expect("known");
    found.f_bavail * found.f_frsize
}

/// Unmounts; returns the exit code and the output.
fn umount(rig: &Rig) -> (Option<i32>, String) {
    let ended = rig.scratch.run(["umount", "m"]);
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_write_that_finds_no_room_says_so() {
    for piece in [4 << 10, 128 << 10, 1 << 20] {
        let Some(rig) = small("32M", &[]) else { return };
        let room = offered(&rig) as usize;
        let path = rig.path("f");
        let accepted = fill(&path, piece, room + (4 << 20));
        assert!(accepted + (2 << 20) > room, "{accepted} of {room} in pieces of {piece}");
        // No accepted byte is lost, and programs with open files get the error too.
        assert_eq!(umount(&rig), (Some(0), String::new()), "in pieces of {piece}");
        rig.mount(&[]);
        let stored = fs::read(&path).expect("read");
        let expected = noise(piece, 7);
        assert_eq!(stored.len(), accepted, "in pieces of {piece}");
        assert!(stored.chunks(piece).all(|found| *found == expected[..found.len()]));
        rig.umount();
    }
}

/// A program that ignores the results of `write()` and `close()` comes to an end too.
#[test]
#[ignore = "system: mounts through FUSE"]
fn dd_ends() {
    let Some(rig) = small("32M", &[]) else { return };
    let of = format!("of={}", rig.path("f").display());
    let dd = Command::new("dd").args(["if=/dev/zero", &of, "bs=1M", "count=200"]).output();
    let dd = dd.expect("dd is everywhere");
    let said = String::from_utf8_lossy(&dd.stderr).into_owned();
    assert!(!dd.status.success() && said.contains("No space left"), "{said}");
    let size = fs::metadata(rig.path("f")).expect("there").len();
    assert!(size < 36 << 20, "{size} bytes");
    fs::remove_file(rig.path("f")).expect("removed");
    rig.umount();
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_file_that_was_open_before_room_was_short_is_told_too() {
    let Some(rig) = small("32M", &[]) else { return };
    let mut old = File::options().create_new(true).read(true).write(true).open(rig.path("old"));
    let old = old.as_mut().expect("made");
    old.write_all(&noise(1 << 20, 1)).expect("room");
    let mut log = File::options().create(true).append(true).open(rig.path("log")).expect("made");
    log.write_all(b"begun\n").expect("room");
    fill(&rig.path("f"), 1 << 20, 48 << 20);
    fill(&rig.path("g"), 4 << 10, 8 << 20);
    let mut longer = || (0..64).find_map(|_| old.write(&noise(128 << 10, 2)).err());
    assert_eq!(longer().expect("no room").kind(), ErrorKind::StorageFull);
    let line = noise(64 << 10, 3);
    let full = (0..64).find_map(|_| log.write(&line).err()).expect("no room");
    assert_eq!(full.kind(), ErrorKind::StorageFull);
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn on_a_full_volume_what_is_there_is_written_in_place() {
    let Some(rig) = small("32M", &[]) else { return };
    fs::write(rig.path("small"), noise(5_000, 1)).expect("room");
    fs::write(rig.path("large"), noise(3_000_000, 2)).expect("room");
    fill(&rig.path("f"), 1 << 20, 48 << 20);
    fill(&rig.path("g"), 4 << 10, 8 << 20);
    for (name, len, seed) in [("small", 5_000, 1), ("large", 3_000_000, 2)] {
        let file = File::options().read(true).write(true).open(rig.path(name)).expect("opened");
        for turn in 0..5 {
            for at in [0, 10, len / 2, len - 1] {
                file.write_all_at(&[turn], at as u64).expect("it needs no room");
            }
            file.sync_all().expect("it was stored");
        }
        let mut expected = noise(len, seed);
        [0, 10, len / 2, len - 1].into_iter().for_each(|at| expected[at] = 4);
        assert!(fs::read(rig.path(name)).expect("read") == expected, "{name}");
    }
    // Times and modes too.
    let file = File::open(rig.path("small")).expect("opened");
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("a time");
    drop(file);
    assert_eq!(umount(&rig), (Some(0), String::new()));
    rig.mount(&[]);
    assert_eq!(fs::read(rig.path("small")).expect("read")[10], 4);
    rig.umount();
    rig.scratch.good(["check", "v"]);
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn small_files_that_were_removed_make_room() {
    let Some(rig) = small("32M", &[]) else { return };
    let put = |name: String| {
        let mut file = File::create(rig.path(&name))?;
        file.write_all(&noise(4096, 1)).and_then(|()| file.sync_data())
    };
    // Fills a part of the volume, to save time.
    fill(&rig.path("f"), 1 << 20, 48 << 20);
    File::options()
        .write(true)
        .open(rig.path("f"))
        .expect("opened")
        .set_len(16 << 20)
        .expect("cut");
    let count = (0..).find(|number| put(format!("s{number}")).is_err()).expect("full");
    let _ = fs::remove_file(rig.path(&format!("s{count}")));
    (0..count).step_by(2).for_each(|number| {
        fs::remove_file(rig.path(&format!("s{number}"))).expect("removed");
    });
    File::open(&rig.dir).and_then(|dir| dir.sync_all()).expect("synced");
    let more = (0..count).find(|number| put(format!("t{number}")).is_err()).unwrap_or(count);
    assert!(more * 10 > count / 2 * 8, "{more} more, of {count} every other one was removed");
    assert!(fs::read(rig.path("s1")).expect("read") == noise(4096, 1));
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn what_df_offers_can_be_set_aside() {
    let Some(rig) = small("128M", &[]) else { return };
    fs::write(rig.path("some"), noise(20 << 20, 1)).expect("room");
    File::open(&rig.dir).and_then(|dir| dir.sync_all()).expect("synced");
    let file = File::create(rig.path("f")).expect("made");
    let len = offered(&rig) - (512 << 10);
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, len).expect("it was offered");
    let more = rustix::fs::fallocate(&file, FallocateFlags::empty(), len, 64 << 20);
    assert_eq!(more, Err(Errno::NOSPC));
}

/// Writes into a hole of a file when there is no room left: the kernel accepts that without asking.
fn lose(rig: &Rig) {
    let hole = File::create(rig.path("hole")).expect("made");
    hole.set_len(4 << 20).expect("a hole");
    hole.sync_all().expect("synced");
    fill(&rig.path("f"), 1 << 20, 48 << 20);
    fill(&rig.path("g"), 4 << 10, 8 << 20);
    hole.write_all_at(&noise(2 << 20, 1), 0).expect("taken");
    // Nobody checks the result of closing.
    drop(hole);
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn what_was_lost_is_told_by_the_exit_code() {
    let Some(rig) = small("32M", &[]) else { return };
    lose(&rig);
    let (code, said) = umount(&rig);
    assert_eq!(code, Some(7), "{said}");
    assert!(said.contains("lost") && !rig.mounted(), "{said}");
    // A mount in the foreground, ended by a signal.
    fs::create_dir_all(&rig.dir).expect("there");
    let child = {
        rig.mount(&[]);
        ["f", "g", "hole"].into_iter().for_each(|name| {
            fs::remove_file(rig.path(name)).expect("removed");
        });
        rig.umount();
        rig.child(&[])
    };
    lose(&rig);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let ended = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    // On a busy computer the kernel accepts more of the last filler, too.
    let lost = ["1 file was lost", "2 files was lost"].iter().any(|words| said.contains(words));
    assert!(lost, "{said}");
    // Removed files do not count as lost.
    let child = rig.child(&[]);
    fs::remove_file(rig.path("f")).expect("removed");
    fs::remove_file(rig.path("g")).expect("removed");
    fs::remove_file(rig.path("hole")).expect("removed");
    lose(&rig);
    ["f", "g", "hole"].into_iter().for_each(|name| {
        fs::remove_file(rig.path(name)).expect("removed");
    });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let ended = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(0), "{said}");
}
