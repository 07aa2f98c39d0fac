//! Real mounts. Without FUSE the tests are skipped, and say so.

mod attributes;
mod audits;
mod files;
mod full;
mod inspector;
mod kills;
mod lanes;
mod life;
mod names;
mod options;
mod programs;
mod removed;
mod scrub;
mod set_ids;

use crate::common::{Scratch, noise, succeeded, until};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A volume and a directory to mount it on.
pub(crate) struct Rig {
    pub(crate) scratch: Scratch,
    pub(crate) dir: PathBuf,
    inside: Inside,
}

/// Where in it a test works.
#[derive(Clone, Copy)]
struct Inside {
    volume: &'static str,
    passphrase: &'static str,
    folder: &'static str,
}

/// In the volume itself.
const OWN: Inside = Inside { volume: "v", passphrase: "secret", folder: "." };
/// In the lane of another volume.
const LANE: Inside = Inside { volume: "d", passphrase: "hidden", folder: ".1" };

/// `None`, with a printed reason, where nothing can be mounted.
pub(crate) fn rig() -> Option<Rig> {
    let helper = || {
        let found = Command::new("fusermount3").arg("-V").output();
        found.is_ok_and(|output| output.status.success())
    };
    if !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: there is no /dev/fuse");
        return None;
    }
    if !rustix::process::geteuid().is_root() && !helper() {
        eprintln!("skipped: neither root nor fusermount3");
        return None;
    }
    if File::options().read(true).write(true).open("/dev/fuse").is_err() {
        eprintln!("skipped: /dev/fuse may not be used");
        return None;
    }
    let scratch = Scratch::with_volume();
    let dir = scratch.path("m");
    std::fs::create_dir(&dir).expect("a directory");
    let rig = Rig { scratch, dir, inside: OWN };
    // A container may have the device and still forbid it.
    let tried = rig.scratch.run(["mount", "-b", "v", "m"]);
    let said = String::from_utf8_lossy(&tried.stderr);
    if said.contains("refused") || said.contains("not permitted") {
        eprintln!("skipped: {said}");
        return None;
    }
    assert!(tried.status.success(), "{said}");
    rig.umount();
    Some(rig)
}

/// The lane of a volume of this size in one file: half as much is in it.
fn lane_rig(size: &str) -> Option<Rig> {
    let mut rig = rig()?;
    rig.inside = LANE;
    let init = "init --kdf-memory 32K --kdf-passes 1 --seen-by snapshots --one-file --lanes 1/2 \
                --files --passphrase-fd 0 d --size";
    let args = init.split_whitespace().chain([size]);
    succeeded(rig.scratch.feed(b"secret\nhidden\n", args));
    Some(rig)
}

impl Rig {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(self.inside.folder).join(name)
    }

    /// The command with the passphrase of where the test works.
    fn command(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = self.scratch.command(args);
        command.env("OBLIVIO_PASSPHRASE", self.inside.passphrase);
        command
    }

    /// Mounts in the background, with further options.
    pub(crate) fn mount(&self, options: &[&str]) {
        let args = [&["mount", "-b"], options, &[self.inside.volume, "m"]].concat();
        succeeded(self.command(args).output().expect("the command runs"));
    }

    /// Mounts as a child process of the test, which can be killed.
    pub(crate) fn child(&self, options: &[&str]) -> Child {
        let args = [&["mount"], options, &[self.inside.volume, "m"]].concat();
        let mut command = self.command(args);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        let child = command.spawn().expect("the command runs");
        until(|| self.mounted());
        child
    }

    pub(crate) fn umount(&self) {
        if self.inside.folder == OWN.folder {
            self.scratch.good(["umount", "m"]);
        } else {
            let mut child = self.command(["umount", "m"]).spawn().expect("the command runs");
            self.use_until(|| child.try_wait().expect("a child").is_some());
            assert!(child.wait().expect("it ends").success());
        }
        assert!(!self.mounted());
    }

    /// Does this while the volume itself is used, if the test works in a lane: what it writes goes
    /// along.
    fn while_used<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.inside.folder == OWN.folder {
            return work();
        }
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| self.use_until(|| over.load(Ordering::SeqCst)));
            let done = work();
            over.store(true, Ordering::SeqCst);
            done
        })
    }

    /// Writes and syncs in the volume itself until this holds.
    fn use_until(&self, mut done: impl FnMut() -> bool) {
        for round in 0.. {
            if done() {
                return;
            }
            // It may just have been unmounted.
            if self.mounted()
                && let Ok(mut file) = File::create(self.dir.join("outer"))
            {
                let _ = file.write_all(&noise(256 << 10, round)).and_then(|()| file.sync_all());
            }
            // Others who want to unmount it find it free.
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn mounted(&self) -> bool {
        let list = std::fs::read_to_string("/proc/self/mountinfo").expect("the list of mounts");
        let dir = self.dir.canonicalize().unwrap_or_else(|_| self.dir.clone());
        list.lines().any(|line| line.split(' ').nth(4) == dir.to_str())
    }
}

impl Drop for Rig {
    /// A failed test must not leave a mount below a removed directory.
    fn drop(&mut self) {
        if self.mounted() {
            self.scratch.run(["umount", "--lazy", "m"]);
        }
    }
}
