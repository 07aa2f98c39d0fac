//! The files of an open lane, in a directory below the mount that no listing has.

use crate::common::{Notes, noise, succeeded, until};
use crate::mount::{Rig, rig};
use rustix::fs::{AtFlags, CWD, RenameFlags};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::Write;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

/// A volume `d` in one file, whose lane of a half opens with `hidden`.
fn lanes() -> Option<Rig> {
    let rig = rig()?;
    let init = "init --kdf-memory 32K --kdf-passes 1 --seen-by snapshots --one-file --lanes 1/2 \
                --size 32M --files --passphrase-fd 0 d";
    succeeded(rig.scratch.feed(b"secret\nhidden\n", init.split_whitespace()));
    Some(rig)
}

fn mount(rig: &Rig, passphrase: &str) {
    let mut command = rig.scratch.command(["mount", "-b", "d", "m"]);
    succeeded(command.env("OBLIVIO_PASSPHRASE", passphrase).output().expect("the command runs"));
}

/// Writes and syncs in the volume itself while this works: so the lane's writes go along.
fn while_used<T>(rig: &Rig, work: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                if over.load(Ordering::SeqCst) {
                    break;
                }
                let mut file = File::create(rig.path("outer")).expect("made");
                file.write_all(&noise(256 << 10, round)).expect("written");
                file.sync_all().expect("synced");
            }
        });
        let done = work();
        over.store(true, Ordering::SeqCst);
        done
    })
}

fn keep(rig: &Rig, name: &str, content: &[u8]) {
    let mut file = File::create(rig.path(name)).expect("made");
    file.write_all(content).expect("written");
    while_used(rig, || file.sync_all()).expect("carried");
}

fn names(rig: &Rig, dir: &str) -> Vec<String> {
    let entries = fs::read_dir(rig.path(dir)).expect("a directory");
    let mut names: Vec<_> =
        entries.map(|it| it.expect("an entry").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_lane_is_a_directory_for_its_passphrase_alone() {
    let Some(rig) = lanes() else { return };
    mount(&rig, "hidden");
    let content = noise(300_000, 1);
    assert!(names(&rig, ".").is_empty() && names(&rig, ".1").is_empty());
    fs::create_dir(rig.path(".1/deep")).expect("made");
    keep(&rig, ".1/deep/file", &content);
    assert_eq!(names(&rig, "."), ["outer"]);
    assert_eq!(names(&rig, ".1"), ["deep"]);
    rig.umount();

    // The volume itself knows nothing of it: the name is free.
    mount(&rig, "secret");
    assert!(fs::metadata(rig.path(".1")).is_err());
    fs::write(rig.path(".1"), "an ordinary file").expect("made");
    assert_eq!(names(&rig, "."), [".1", "outer"]);
    rig.umount();

    mount(&rig, "hidden");
    assert_eq!(names(&rig, "."), ["outer"]);
    assert_eq!(fs::read(rig.path(".1/deep/file")).expect("read"), content);
    rig.umount();
    mount(&rig, "secret");
    assert_eq!(fs::read(rig.path(".1")).expect("read"), b"an ordinary file");
    rig.umount();
    let checked = rig.scratch.good(["check", "d"]);
    assert!(!checked.contains("damaged"), "{checked}");
}

/// As from one file system to another, and the way in stays where it is.
#[test]
#[ignore = "system: mounts through FUSE"]
fn nothing_moves_between_a_volume_and_its_lane() {
    let Some(rig) = lanes() else { return };
    mount(&rig, "hidden");
    fs::write(rig.path("here"), "outer").expect("written");
    fs::write(rig.path(".1/there"), "hidden").expect("written");
    let rename = |from, to| rustix::fs::rename(rig.path(from), rig.path(to)).expect_err("refused");
    assert_eq!(rename("here", ".1/here"), Errno::XDEV);
    assert_eq!(rename(".1/there", "there"), Errno::XDEV);
    let exchanged = rustix::fs::renameat_with(
        CWD,
        rig.path("here"),
        CWD,
        rig.path(".1/there"),
        RenameFlags::EXCHANGE,
    );
    assert_eq!(exchanged, Err(Errno::XDEV));
    let linked = rustix::fs::linkat(CWD, rig.path("here"), CWD, rig.path(".1/l"), AtFlags::empty());
    assert_eq!(linked, Err(Errno::XDEV));
    assert_eq!(rename(".1", "moved"), Errno::BUSY);
    assert_eq!(rustix::fs::rmdir(rig.path(".1")), Err(Errno::BUSY));
    assert!(fs::create_dir(rig.path(".1")).is_err() && File::create(rig.path(".1")).is_err());

    fs::copy(rig.path(".1/there"), rig.path("copy")).expect("copied");
    fs::copy(rig.path("here"), rig.path(".1/copy")).expect("copied");
    assert_eq!(fs::read(rig.path("copy")).expect("read"), b"hidden");
    assert_eq!(fs::read(rig.path(".1/copy")).expect("read"), b"outer");
    assert_eq!(fs::canonicalize(rig.path(".1/../here")).expect("up"), rig.path("here"));
    let blocks = |name| rustix::fs::statvfs(rig.path(name)).expect("the mount").f_blocks;
    assert!(blocks(".1") < blocks("."), "each has room of its own");
    while_used(&rig, || File::open(rig.path(".1")).and_then(|dir| dir.sync_all()))
        .expect("carried");
    rig.umount();
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn unmounting_waits_for_what_a_lane_has() {
    let Some(rig) = lanes() else { return };
    mount(&rig, "hidden");
    let content = noise(200_000, 2);
    fs::write(rig.path(".1/note"), &content).expect("written");
    let mut command = rig.scratch.command(["umount", "m"]);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("the command runs");
    let mut notes = Notes::of(&mut child);
    notes.until(" of .1 wait until about ");
    assert!(rig.mounted());
    while_used_until(&rig, || child.try_wait().expect("a child").is_some());
    assert!(child.wait().expect("it ends").success(), "{}", notes.end());
    assert!(!rig.mounted());
    mount(&rig, "hidden");
    assert_eq!(fs::read(rig.path(".1/note")).expect("read"), content);
    // Nothing was written in it: there is nothing to wait for.
    rig.umount();
}

/// Writes in the volume until this holds, or it is unmounted.
fn while_used_until(rig: &Rig, mut done: impl FnMut() -> bool) {
    until(|| {
        if rig.mounted()
            && let Ok(mut file) = File::create(rig.path("outer"))
        {
            let _ = file.write_all(&noise(256 << 10, 3)).and_then(|()| file.sync_all());
        }
        done()
    });
}

/// A lane that nobody wrote into holds up nothing, and loses nothing.
#[test]
#[ignore = "system: mounts through FUSE"]
fn an_unused_lane_is_not_waited_for() {
    let Some(rig) = lanes() else { return };
    for options in [&["-b"][..], &["-b", "--read-only"]] {
        let args = [&["mount"], options, &["d", "m"]].concat();
        let mut command = rig.scratch.command(args);
        let mounted = command.env("OBLIVIO_PASSPHRASE", "hidden").output();
        succeeded(mounted.expect("the command runs"));
        rig.umount();
    }
}

/// What a lane's programs read must stay nowhere.
#[test]
#[ignore = "system: mounts through FUSE"]
fn no_trace_is_kept_of_an_open_lane() {
    let Some(rig) = lanes() else { return };
    for args in ["mount -b --trace-out t d m", "ls --trace-out t d"] {
        let mut command = rig.scratch.command(args.split_whitespace());
        let refused = command.env("OBLIVIO_PASSPHRASE", "hidden").output().expect("it runs");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains("--trace-out"), "{said}");
        assert!(!rig.scratch.path("t").exists() && !rig.mounted());
        rig.scratch.good(["ls", "--trace-out", "t", "d"]);
        assert!(rig.scratch.path("t").exists());
        fs::remove_file(rig.scratch.path("t")).expect("there");
    }
}
