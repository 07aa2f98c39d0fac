//! How mounts begin and end.

use crate::common::{Notes, copy_dir, until};
use crate::mount::{Rig, rig};
use rustix::process::{Pid, Signal};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn signal(child: &Child, signal: Signal) {
    let id = Pid::from_child(child);
    rustix::process::kill_process(id, signal).expect("a signal");
}

fn end(mut child: Child) -> (Option<i32>, String) {
    let code = child.wait().expect("it ends").code();
    let mut said = String::new();
    let mut from = child.stderr.take().expect("a pipe");
    from.read_to_string(&mut said).expect("text");
    (code, said)
}

/// Does this when it goes.
struct AtEnd<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Kills a mount; its directory is unusable until it is unmounted.
fn kill(rig: &Rig, mut child: Child) {
    child.kill().expect("killed");
    child.wait().expect("it ends");
    until(|| fs::metadata(&rig.dir).is_err());
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn what_was_synced_survives_a_kill() {
    let Some(rig) = rig() else { return };
    let child = rig.child(&["--commit-every", "3600"]);
    let mut file = File::create(rig.path("safe")).expect("made");
    file.write_all(b"synced").expect("written");
    file.sync_all().expect("synced");
    kill(&rig, child);
    drop(file);
    // The dead mount can be cleared, and the volume opens again.
    rig.scratch.bad(8, ["mount", "-b", "v", "m"]);
    rig.umount();
    rig.mount(&[]);
    assert_eq!(fs::read(rig.path("safe")).expect("read"), b"synced");
    rig.umount();
    rig.scratch.good(["check", "v"]);
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_sync_of_the_directory_makes_all_safe() {
    let Some(rig) = rig() else { return };
    let child = rig.child(&["--commit-every", "3600"]);
    fs::create_dir(rig.path("d")).expect("made");
    fs::write(rig.path("d/f"), "never synced itself").expect("written");
    File::open(&rig.dir).and_then(|dir| dir.sync_all()).expect("synced");
    kill(&rig, child);
    rig.umount();
    assert_eq!(rig.scratch.good(["cat", "v", "/d/f"]), "never synced itself");
}

/// `sync` without a name reaches no FUSE server, so changes may not wait for the timer.
#[test]
#[ignore = "system: mounts through FUSE"]
fn what_has_settled_is_committed_before_the_timer() {
    let Some(rig) = rig() else { return };
    let child = rig.child(&["--commit-every", "100"]);
    fs::write(rig.path("f"), "left alone").expect("written");
    until(|| survived(&rig, "/f") == Some("left alone".into()));
    kill(&rig, child);
    rig.umount();
    assert_eq!(rig.scratch.good(["cat", "v", "/f"]), "left alone");
}

/// What a file would be if the computer died now. A copy that was taken while the mount wrote may
/// be of no use.
fn survived(rig: &Rig, name: &str) -> Option<String> {
    let copy = rig.scratch.path("copy");
    let _ = fs::remove_dir_all(&copy);
    copy_dir(&rig.scratch.path("v"), &copy);
    let mut cat = rig.scratch.command(["cat", "copy", name]);
    let found = cat.env("XDG_STATE_HOME", rig.scratch.path("elsewhere")).output().expect("it runs");
    let _ = fs::remove_dir_all(rig.scratch.path("elsewhere"));
    found.status.success().then(|| String::from_utf8_lossy(&found.stdout).into_owned())
}

/// With changes that never settle.
#[test]
#[ignore = "system: mounts through FUSE"]
fn the_timer_commits() {
    let Some(rig) = rig() else { return };
    let child = rig.child(&["--commit-every", "2"]);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                fs::write(rig.path(&format!("f{number}")), "by itself").expect("written");
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        // Also if it never comes, the other thread must end.
        let _end = AtEnd(|| over.store(true, Ordering::SeqCst));
        until(|| survived(&rig, "/f0") == Some("by itself".into()));
    });
    kill(&rig, child);
    rig.umount();
    assert_eq!(rig.scratch.good(["cat", "v", "/f0"]), "by itself");
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn signals_end_it_well() {
    let Some(rig) = rig() else { return };
    for (number, way) in [Signal::INT, Signal::TERM, Signal::HUP].into_iter().enumerate() {
        let child = rig.child(&["--commit-every", "3600"]);
        fs::write(rig.path(&format!("f{number}")), "text").expect("written");
        signal(&child, way);
        assert_eq!(end(child), (Some(0), String::new()));
        assert!(!rig.mounted());
        assert_eq!(rig.scratch.good(["cat", "v", &format!("/f{number}")]), "text");
    }
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_busy_mount_says_who_uses_it() {
    let Some(rig) = rig() else { return };
    let mut child = rig.child(&[]);
    let mut notes = Notes::of(&mut child);
    let mut file = File::create(rig.path("open")).expect("made");
    let said = rig.scratch.bad(8, ["umount", "m"]);
    let me = format!("({})", std::process::id());
    assert!(said.contains("in use by") && said.contains(&me), "{said}");
    signal(&child, Signal::INT);
    notes.until("in use by");
    assert!(rig.mounted());
    file.write_all(b"it goes on").expect("written");
    // The second one detaches; it ends when the file is closed.
    signal(&child, Signal::INT);
    until(|| !rig.mounted());
    file.write_all(b" and on").expect("written");
    drop(file);
    let said = notes.end();
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{said}");
    assert!(said.contains(&me), "{said}");
    assert_eq!(rig.scratch.good(["cat", "v", "/open"]), "it goes on and on");
}

/// Who asked once need not ask again.
#[test]
#[ignore = "system: mounts through FUSE"]
fn a_busy_mount_ends_when_the_last_file_is_closed() {
    let Some(rig) = rig() else { return };
    // The file is closed before the note is printed, and after it.
    for noted in [false, true] {
        let name = format!("open-{noted}");
        let mut child = rig.child(&["--commit-every", "3600"]);
        let mut notes = Notes::of(&mut child);
        let mut file = File::create(rig.path(&name)).expect("made");
        signal(&child, Signal::INT);
        if noted {
            notes.until("in use by");
        }
        assert!(rig.mounted());
        file.write_all(b"to the end").expect("written");
        drop(file);
        let said = notes.end();
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{said}");
        assert_eq!(rig.scratch.good(["cat", "v", &format!("/{name}")]), "to the end");
    }
}

/// The last file is often closed just before: here, once the unmount has made all of it durable,
/// which it does right before its first try.
#[test]
#[ignore = "system: mounts through FUSE"]
fn umount_waits_a_moment_for_the_last_file() {
    let Some(rig) = rig() else { return };
    rig.mount(&["--commit-every", "3600"]);
    let mut file = File::create(rig.path("open")).expect("made");
    file.write_all(b"not safe yet").expect("written");
    let mut umount = rig.scratch.command(["umount", "m"]).spawn().expect("the command runs");
    until(|| survived(&rig, "/open") == Some("not safe yet".into()));
    drop(file);
    assert!(umount.wait().expect("it ends").success());
    assert!(!rig.mounted());
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_volume_is_mounted_once() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    fs::create_dir(rig.scratch.path("other")).expect("a directory");
    rig.scratch.bad(8, ["mount", "v", "other"]);
    rig.scratch.bad(8, ["mount", "v", "m"]);
    rig.scratch.bad(8, ["ls", "v"]);
    rig.umount();
    rig.scratch.good(["ls", "v"]);
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn read_only_changes_nothing() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    fs::write(rig.path("f"), "text").expect("written");
    rig.umount();
    rig.mount(&["-o", "ro,noauto,x-systemd.automount"]);
    assert_eq!(fs::read(rig.path("f")).expect("read"), b"text");
    for refused in [fs::write(rig.path("g"), ""), fs::remove_file(rig.path("f"))] {
        assert_eq!(refused.map_err(|error| error.raw_os_error()), Err(Some(30)));
    }
    rig.umount();
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn what_makes_no_sense_is_refused() {
    let Some(rig) = rig() else { return };
    let bad = |code, args: &[&str]| rig.scratch.bad(code, args);
    assert!(bad(3, &["mount", "v", "nowhere"]).contains("mkdir"));
    assert!(bad(3, &["mount", "novolume", "m"]).contains("init"));
    rig.scratch.write("file", "");
    bad(3, &["mount", "v", "file"]);
    fs::create_dir(rig.scratch.path("plain")).expect("a directory");
    bad(9, &["mount", "plain", "m"]);
    fs::create_dir(rig.scratch.path("v/in")).expect("a directory");
    bad(2, &["mount", "v", "v/in"]);
    fs::remove_dir(rig.scratch.path("v/in")).expect("removed");
    bad(2, &["mount", "--nonempty", "v", "."]);
    bad(2, &["mount", "-o", "colour=red", "v", "m"]);
    bad(2, &["mount", "--timeout", "0", "v", "m"]);
    bad(3, &["umount", "m"]);
    rig.scratch.write("m/x", "");
    assert!(bad(3, &["mount", "v", "m"]).contains("--nonempty"));
    rig.mount(&["--nonempty"]);
    assert!(!rig.path("x").exists());
    rig.umount();
    let wrong = rig
        .scratch
        .command(["mount", "-b", "--nonempty", "v", "m"])
        .env("OBLIVIO_PASSPHRASE", "wrong")
        .output()
        .expect("it runs");
    assert_eq!(wrong.status.code(), Some(4));
    assert!(!rig.mounted());
}
