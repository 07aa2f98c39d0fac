//! The files of an open lane, in a directory below the mount that no listing has.

use crate::common::{Notes, failed, json, noise, succeeded, until};
use crate::mount::{Rig, lane_rig};
use rustix::fs::{AtFlags, CWD, RenameFlags};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::Write;
use std::process::{Output, Stdio};

/// What the command does with this passphrase.
fn by(rig: &Rig, passphrase: &str, args: &str) -> Output {
    let mut command = rig.scratch.command(args.split_whitespace());
    command.env("OBLIVIO_PASSPHRASE", passphrase).output().expect("the command runs")
}

fn mount(rig: &Rig, passphrase: &str) {
    succeeded(by(rig, passphrase, "mount -b d m"));
}

fn keep(rig: &Rig, name: &str, content: &[u8]) {
    let mut file = File::create(rig.dir.join(name)).expect("made");
    file.write_all(content).expect("written");
    rig.while_used(|| file.sync_all()).expect("carried");
}

fn names(rig: &Rig, dir: &str) -> Vec<String> {
    let entries = fs::read_dir(rig.dir.join(dir)).expect("a directory");
    let mut names: Vec<_> =
        entries.map(|it| it.expect("an entry").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_lane_is_a_directory_for_its_passphrase_alone() {
    let Some(rig) = lane_rig("32M") else { return };
    mount(&rig, "hidden");
    let content = noise(300_000, 1);
    assert!(names(&rig, ".").is_empty() && names(&rig, ".1").is_empty());
    fs::create_dir(rig.dir.join(".1/deep")).expect("made");
    keep(&rig, ".1/deep/file", &content);
    assert_eq!(names(&rig, "."), ["outer"]);
    assert_eq!(names(&rig, ".1"), ["deep"]);
    rig.umount();

    // The volume itself knows nothing of it: the name is free.
    mount(&rig, "secret");
    assert!(fs::metadata(rig.dir.join(".1")).is_err());
    fs::write(rig.dir.join(".1"), "an ordinary file").expect("made");
    assert_eq!(names(&rig, "."), [".1", "outer"]);
    rig.umount();

    mount(&rig, "hidden");
    assert_eq!(names(&rig, "."), ["outer"]);
    assert_eq!(fs::read(rig.dir.join(".1/deep/file")).expect("read"), content);
    rig.umount();
    mount(&rig, "secret");
    assert_eq!(fs::read(rig.dir.join(".1")).expect("read"), b"an ordinary file");
    rig.umount();
    let checked = rig.scratch.good(["check", "d"]);
    assert!(!checked.contains("damaged"), "{checked}");
}

/// As from one file system to another, and the way in stays where it is.
#[test]
#[ignore = "system: mounts through FUSE"]
fn nothing_moves_between_a_volume_and_its_lane() {
    let Some(rig) = lane_rig("32M") else { return };
    mount(&rig, "hidden");
    fs::write(rig.dir.join("here"), "outer").expect("written");
    fs::write(rig.dir.join(".1/there"), "hidden").expect("written");
    let rename =
        |from, to| rustix::fs::rename(rig.dir.join(from), rig.dir.join(to)).expect_err("refused");
    assert_eq!(rename("here", ".1/here"), Errno::XDEV);
    assert_eq!(rename(".1/there", "there"), Errno::XDEV);
    let exchanged = rustix::fs::renameat_with(
        CWD,
        rig.dir.join("here"),
        CWD,
        rig.dir.join(".1/there"),
        RenameFlags::EXCHANGE,
    );
    assert_eq!(exchanged, Err(Errno::XDEV));
    let linked =
        rustix::fs::linkat(CWD, rig.dir.join("here"), CWD, rig.dir.join(".1/l"), AtFlags::empty());
    assert_eq!(linked, Err(Errno::XDEV));
    assert_eq!(rename(".1", "moved"), Errno::BUSY);
    assert_eq!(rustix::fs::rmdir(rig.dir.join(".1")), Err(Errno::BUSY));
    assert!(
        fs::create_dir(rig.dir.join(".1")).is_err() && File::create(rig.dir.join(".1")).is_err()
    );

    fs::copy(rig.dir.join(".1/there"), rig.dir.join("copy")).expect("copied");
    fs::copy(rig.dir.join("here"), rig.dir.join(".1/copy")).expect("copied");
    assert_eq!(fs::read(rig.dir.join("copy")).expect("read"), b"hidden");
    assert_eq!(fs::read(rig.dir.join(".1/copy")).expect("read"), b"outer");
    assert_eq!(fs::canonicalize(rig.dir.join(".1/../here")).expect("up"), rig.dir.join("here"));
    let blocks = |name| rustix::fs::statvfs(rig.dir.join(name)).expect("the mount").f_blocks;
    assert!(blocks(".1") < blocks("."), "each has room of its own");
    rig.while_used(|| File::open(rig.dir.join(".1")).and_then(|dir| dir.sync_all()))
        .expect("carried");
    rig.umount();
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn unmounting_waits_for_what_a_lane_has() {
    let Some(rig) = lane_rig("32M") else { return };
    mount(&rig, "hidden");
    let content = noise(200_000, 2);
    fs::write(rig.dir.join(".1/note"), &content).expect("written");
    let mut command = rig.command(["umount", "m"]);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("the command runs");
    let mut notes = Notes::of(&mut child);
    notes.until(" of .1 wait until about ");
    assert!(rig.mounted());
    rig.use_until(|| child.try_wait().expect("a child").is_some());
    assert!(child.wait().expect("it ends").success(), "{}", notes.end());
    assert!(!rig.mounted());
    mount(&rig, "hidden");
    assert_eq!(fs::read(rig.dir.join(".1/note")).expect("read"), content);
    // Nothing was written in it: there is nothing to wait for.
    rig.umount();
}

/// A lane that nobody wrote into holds up nothing, and loses nothing.
#[test]
#[ignore = "system: mounts through FUSE"]
fn an_unused_lane_is_not_waited_for() {
    let Some(rig) = lane_rig("32M") else { return };
    for options in ["--read-only", ""] {
        succeeded(by(&rig, "hidden", &format!("mount -b {options} d m")));
        assert_eq!(rig.scratch.path("m/.1").exists(), options.is_empty(), "it is empty yet");
        rig.umount();
    }
}

/// The volume itself is whole.
#[test]
#[ignore = "system: mounts through FUSE"]
fn a_mount_that_ends_says_what_of_a_lane_is_lost() {
    let Some(rig) = lane_rig("32M") else { return };
    let mut child = rig.child(&[]);
    let notes = Notes::of(&mut child);
    let mut file = File::create(rig.dir.join("outer")).expect("made");
    file.write_all(b"kept").and_then(|()| file.sync_all()).expect("synced");
    drop(file);
    fs::write(rig.dir.join(".1/note"), noise(500_000, 6)).expect("written");
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("a signal");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    let said = notes.end();
    assert!(said.contains("of the lane did not go along") && said.contains("All else"), "{said}");
    mount(&rig, "secret");
    assert_eq!(fs::read(rig.dir.join("outer")).expect("read"), b"kept");
    rig.umount();
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn an_opening_says_when_little_is_left_of_the_grace() {
    let Some(rig) = lane_rig("32M") else { return };
    let write = |bytes| {
        let mut file = File::create(rig.dir.join("outer")).expect("made");
        file.write_all(&noise(bytes, 7)).and_then(|()| file.sync_all()).expect("synced");
    };
    let opened = |passphrase| {
        let listed = by(&rig, passphrase, "ls d");
        assert!(listed.status.success(), "{listed:?}");
        String::from_utf8(listed.stderr).expect("text")
    };
    mount(&rig, "hidden");
    keep(&rig, ".1/note", b"kept");
    write(3 << 20);
    rig.umount();
    assert_eq!(opened("hidden"), "");
    mount(&rig, "secret");
    write(2 << 20);
    rig.umount();
    let said = opened("hidden");
    assert!(said.contains("lane 1 has ") && said.contains(" of its grace of "), "{said}");
    assert_eq!(opened("secret"), "", "nobody knows");
}

/// What a lane's programs read must stay nowhere.
#[test]
#[ignore = "system: mounts through FUSE"]
fn no_trace_is_kept_of_an_open_lane() {
    let Some(rig) = lane_rig("32M") else { return };
    for args in ["mount -b --trace-out t d m", "ls --trace-out t d"] {
        let said = failed(2, by(&rig, "hidden", args));
        assert!(said.contains("--trace-out"), "{said}");
        assert!(!rig.scratch.path("t").exists() && !rig.mounted());
        rig.scratch.good(["ls", "--trace-out", "t", "d"]);
        assert!(rig.scratch.path("t").exists());
        fs::remove_file(rig.scratch.path("t")).expect("there");
    }
}

/// With cover, nobody has to write anything else.
#[test]
#[ignore = "system: mounts through FUSE"]
fn cover_carries_what_a_lane_has() {
    let Some(rig) = lane_rig("32M") else { return };
    succeeded(by(&rig, "hidden", "mount -b -o cover=1 d m"));
    let content = noise(30_000, 4);
    let mut file = File::create(rig.dir.join(".1/note")).expect("made");
    file.write_all(&content).expect("written");
    file.sync_all().expect("carried within a minute");
    drop(file);
    rig.scratch.good(["umount", "m"]);
    mount(&rig, "hidden");
    assert_eq!(fs::read(rig.dir.join(".1/note")).expect("read"), content);
    assert!(names(&rig, ".").is_empty(), "nothing else was written");
    rig.umount();
    failed(2, by(&rig, "secret", "mount -b --read-only --cover 5 d m"));
    failed(2, by(&rig, "secret", "mount -b --cover 0 d m"));
    let said = failed(2, by(&rig, "secret", "mount -b --cover 5 v m"));
    assert!(said.contains("--pace"), "{said}");
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn the_status_of_a_lane_is_for_its_owner() {
    let Some(rig) = lane_rig("32M") else { return };
    failed(3, by(&rig, "hidden", "lane status m"));
    mount(&rig, "secret");
    assert_eq!(rig.scratch.good(["lane", "status", "m"]), "No lane is open.\n");
    assert_eq!(rig.scratch.good(["lane", "status", "--json", "m"]).trim(), "[]");
    rig.umount();
    mount(&rig, "hidden");
    fs::write(rig.dir.join(".1/note"), noise(50_000, 5)).expect("written");
    let status = || json(&rig.scratch.good(["lane", "status", "--json", "m"]))[0].clone();
    let file = File::open(rig.dir.join(".1/note")).expect("there");
    // The kernel writes back what it has with the sync, which ends when all was carried.
    std::thread::scope(|scope| {
        let synced = scope.spawn(|| file.sync_all());
        until(|| status()["waiting_bytes"].as_u64() >= Some(50_000));
        rig.use_until(|| synced.is_finished());
        synced.join().expect("no panic").expect("carried");
    });
    drop(file);
    assert_eq!((&status()["name"], &status()["waiting_writes"]), (&".1".into(), &0.into()));
    assert_eq!(status()["grace_left_bytes"], status()["grace_bytes"]);
    let said = rig.scratch.good(["lane", "status", "m"]);
    assert!(said.starts_with(".1: a lane of ") && said.contains("waits  nothing"), "{said}");
    rig.umount();
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_lane_gets_another_passphrase() {
    let Some(rig) = lane_rig("32M") else { return };
    mount(&rig, "hidden");
    keep(&rig, ".1/note", b"kept");
    rig.umount();
    let change = |passphrase, options: &str| {
        let args = format!("lane passphrase {options} --new-passphrase-file new d");
        by(&rig, passphrase, &args)
    };
    rig.scratch.write("new", "changed\n");
    let said = rig.scratch.bad(2, ["lane", "passphrase", "--new-passphrase-file", "new", "v"]);
    assert!(said.contains("against snapshots"), "{said}");
    let said = failed(4, change("secret", ""));
    assert!(said.contains("--anew"), "{said}");
    failed(2, change("hidden", "--anew"));
    failed(2, change("hidden", "--kdf-passes 2"));
    succeeded(change("hidden", ""));
    // Older states on the disk have not been written over yet: the old one opens it too.
    for passphrase in ["changed", "hidden"] {
        mount(&rig, passphrase);
        assert_eq!(fs::read(rig.dir.join(".1/note")).expect("read"), b"kept");
        rig.umount();
    }

    rig.scratch.write("new", "anew\n");
    succeeded(change("secret", "--anew"));
    mount(&rig, "anew");
    assert!(names(&rig, ".1").is_empty());
    keep(&rig, ".1/note", b"other");
    rig.umount();
    rig.scratch.good(["check", "d"]);
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn two_lanes_are_two_directories() {
    let Some(rig) = lane_rig("32M") else { return };
    let init = "init --kdf-memory 32K --kdf-passes 1 --seen-by snapshots --one-file --lanes 1/4,1/4 \
                --files --size 32M --passphrase-fd 0 two";
    succeeded(rig.scratch.feed(b"secret\nhidden\ndeeper\n", init.split_whitespace()));
    let open = |passphrase, wanted: [bool; 2]| {
        succeeded(by(&rig, passphrase, "mount -b two m"));
        assert_eq!([".1", ".2"].map(|name| rig.dir.join(name).exists()), wanted, "{passphrase}");
    };
    open("deeper", [true, true]);
    for name in [".1/note", ".2/note"] {
        keep(&rig, name, name.as_bytes());
    }
    let between = rustix::fs::rename(rig.dir.join(".1/note"), rig.dir.join(".2/other"));
    assert_eq!(between, Err(Errno::XDEV));
    rig.umount();
    open("hidden", [true, false]);
    assert_eq!(fs::read(rig.dir.join(".1/note")).expect("read"), b".1/note");
    rig.umount();
    open("secret", [false, false]);
    assert_eq!(rig.scratch.good(["lane", "status", "m"]), "No lane is open.\n");
    rig.umount();
    open("deeper", [true, true]);
    assert_eq!(fs::read(rig.dir.join(".2/note")).expect("read"), b".2/note");
    rig.umount();
}
