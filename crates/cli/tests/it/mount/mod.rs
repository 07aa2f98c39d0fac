//! Real mounts. Without FUSE the tests are skipped, and say so.

mod attributes;
mod audits;
mod files;
mod full;
mod kills;
mod lanes;
mod life;
mod names;
mod options;
mod programs;
mod removed;
mod scrub;
mod set_ids;

use crate::common::{Scratch, until};
use std::path::{Path, PathBuf};
use std::process::Child;

/// A volume and a directory to mount it on.
pub(crate) struct Rig {
    pub(crate) scratch: Scratch,
    pub(crate) dir: PathBuf,
}

/// `None`, with a printed reason, where nothing can be mounted.
pub(crate) fn rig() -> Option<Rig> {
    let helper = || {
        let found = std::process::Command::new("fusermount3").arg("-V").output();
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
    if std::fs::File::options().read(true).write(true).open("/dev/fuse").is_err() {
        eprintln!("skipped: /dev/fuse may not be used");
        return None;
    }
    let scratch = Scratch::with_volume();
    let dir = scratch.path("m");
    std::fs::create_dir(&dir).expect("a directory");
    let rig = Rig { scratch, dir };
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

impl Rig {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Mounts in the background, with further options.
    pub(crate) fn mount(&self, options: &[&str]) {
        let args = ["mount", "-b"].iter().chain(options).chain(&["v", "m"]);
        self.scratch.good(args);
    }

    /// Mounts as a child process of the test, which can be killed.
    pub(crate) fn child(&self, options: &[&str]) -> Child {
        let args = ["mount"].iter().chain(options).chain(&["v", "m"]);
        let mut command = self.scratch.command(args);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        let child = command.spawn().expect("the command runs");
        until(|| self.mounted());
        child
    }

    pub(crate) fn umount(&self) {
        self.scratch.good(["umount", "m"]);
        assert!(!self.mounted());
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
