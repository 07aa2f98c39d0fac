//! A kernel file system on the disk, through nbdfuse and a loop device, and a server killed under
//! it. Needs root and loop devices; skipped, with a printed reason, where there are none.

use super::{Rig, SNAPSHOTS, TREE, good, run};
use crate::common::{self, until};
use oblivio_testkit::campaign::scaled;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// The served disk as a block device of the kernel.
struct Device {
    fuse: Child,
    file: PathBuf,
    device: String,
    dir: PathBuf,
}

impl Device {
    /// `None`, with a printed reason, where the kernel refuses.
    fn attach(rig: &Rig) -> Option<Self> {
        let (file, dir) = (rig.scratch.write("disk.img", ""), rig.scratch.path("m"));
        fs::create_dir_all(&dir).expect("a directory");
        let mut command = Command::new("nbdfuse");
        command.arg(&file).arg("--unix").arg(rig.socket());
        // It complains when its server is killed.
        let fuse = command.stderr(Stdio::null()).spawn().expect("the program runs");
        let mut device = Device { fuse, file, device: String::new(), dir };
        until(|| device.file.metadata().is_ok_and(|found| found.len() > 0) || device.ended());
        if device.ended() {
            eprintln!("skipped: nbdfuse cannot serve here (is there FUSE?)");
            return None;
        }
        let said = run("losetup", &["-f", "--show", device.file.to_str().expect("text")]);
        if !said.status.success() {
            eprintln!("skipped: {}", String::from_utf8_lossy(&said.stderr));
            return None;
        }
        device.device = String::from_utf8(said.stdout).expect("text").trim().to_owned();
        Some(device)
    }

    fn ended(&mut self) -> bool {
        self.fuse.try_wait().expect("a child").is_some()
    }

    fn mount(&self) {
        good("mount", &[&self.device, self.dir.to_str().expect("text")]);
    }

    /// Repairs the effects of a crash, as a computer does at boot; then all must be clean.
    fn fsck(&self) {
        let repaired = run("e2fsck", &["-p", &self.device]);
        let said = String::from_utf8_lossy(&repaired.stdout).into_owned();
        assert!(repaired.status.code().is_some_and(|code| code <= 1), "{said}");
        good("e2fsck", &["-f", "-n", &self.device]);
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let dir = self.dir.to_str().expect("text");
        if !run("umount", &[dir]).status.success() {
            run("umount", &["--lazy", dir]);
        }
        run("losetup", &["-d", &self.device]);
        run("fusermount3", &["-u", "-z", self.file.to_str().expect("text")]);
        let _ = self.fuse.wait();
    }
}

fn rig(how: &[&str]) -> Option<Rig> {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
        eprintln!("skipped: loop devices need root and /dev/loop-control");
        return None;
    }
    if run("sh", &["-c", "command -v mkfs.ext4 e2fsck fusermount3"]).status.code() != Some(0) {
        eprintln!("skipped: there is no mkfs.ext4, no e2fsck or no fusermount3");
        return None;
    }
    Rig::with_disk(how, "96M", &["nbdfuse", "losetup"])
}

/// A synced file; its number gives its content.
#[derive(Clone, Copy)]
struct Synced(u64);

impl Synced {
    fn name(self) -> String {
        format!("file{}", self.0)
    }

    fn content(self) -> Vec<u8> {
        common::noise((self.0 * 7919 % 60_000) as usize, self.0)
    }

    /// Writes and syncs it; on success the kernel reports it safe.
    fn write(self, dir: &Path) -> std::io::Result<()> {
        let mut file = File::create(dir.join(self.name()))?;
        file.write_all(&self.content())?;
        file.sync_all()?;
        File::open(dir)?.sync_all()
    }
}

/// Writes and syncs files until the disk is gone; sends those that are safe. Other files come and
/// go, to keep the file system's journal busy.
fn work(dir: PathBuf, first: u64) -> Receiver<Synced> {
    let (tell, synced) = channel();
    thread::spawn(move || {
        for number in first.. {
            let other = dir.join(format!("other{}", number % 7));
            let _ = fs::remove_file(&other);
            let _ = fs::write(&other, common::noise(30_000, number));
            if Synced(number).write(&dir).is_err() {
                return;
            }
            let _ = tell.send(Synced(number));
        }
    });
    synced
}

fn all_there(dir: &Path, synced: &[Synced]) {
    for file in synced {
        let found = fs::read(dir.join(file.name())).expect("it was synced");
        assert!(found == file.content(), "{} is not what was synced", file.name());
    }
}

#[test]
#[ignore = "system: loop devices, as root"]
fn what_ext4_synced_survives_kills_of_the_server() {
    survives(TREE);
}

#[test]
#[ignore = "system: loop devices, as root"]
fn against_snapshots_what_ext4_synced_survives_kills_of_the_server() {
    survives(SNAPSHOTS);
}

fn survives(how: &[&str]) {
    let Some(mut rig) = rig(how) else { return };
    let kills = scaled(2);
    rig.serve(&[]);
    {
        let Some(device) = Device::attach(&rig) else { return };
        good("mkfs.ext4", &["-q", &device.device]);
    }
    let (mut synced, mut next) = (Vec::new(), 1);
    for kill in 0..kills {
        let device = Device::attach(&rig).expect("as before");
        device.fsck();
        device.mount();
        all_there(&device.dir, &synced);
        // Deletes old files to make room: trimmed and written again.
        while synced.len() > 200 {
            let old: Synced = synced.remove(0);
            fs::remove_file(device.dir.join(old.name())).expect("it was synced");
        }
        let safe = work(device.dir.clone(), next);
        let first = safe.recv().expect("the disk works");
        thread::sleep(Duration::from_millis(kill * 131 % 700));
        rig.kill();
        let before = synced.len();
        synced.push(first);
        synced.extend(safe);
        next += (synced.len() - before) as u64 + 1;
        drop(device);
        rig.serve(&[]);
    }
    let device = Device::attach(&rig).expect("as before");
    device.fsck();
    device.mount();
    all_there(&device.dir, &synced);
    drop(device);
    assert_eq!(rig.end(), Some(0));
    assert!(rig.scratch.good(["check", "d"]).starts_with("clean: "));
    eprintln!("{kills} kills, {} files synced, none lost", next - 1 - kills);
}
