//! Real servers. Where a client's program is missing, its tests are skipped and say so.

mod audits;
#[path = "../../../../serve/src/nbd/tests/authority.rs"]
mod authority;
mod clients;
mod ext4;
mod kills;
mod lanes;
mod life;
mod tls;

use crate::common::{Scratch, succeeded};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// A volume `d` with a disk in it, and a server on the socket `s`.
pub(crate) struct Rig {
    pub(crate) scratch: Scratch,
    server: Option<Child>,
}

/// Options of `init` for a disk: on the tree, on the sequential engine in a folder, and in one
/// file.
pub(crate) const TREE: &[&str] = &["--seen-by", "storage"];
pub(crate) const SNAPSHOTS: &[&str] = &["--seen-by", "snapshots"];
pub(crate) const ONE_FILE: &[&str] = &["--seen-by", "snapshots", "--one-file", "--map-on-disk"];

impl Rig {
    pub(crate) fn new(size: &str) -> Self {
        Self::made(TREE, size)
    }

    fn made(how: &[&str], size: &str) -> Self {
        let scratch = Scratch::new();
        let cheap = ["init", "--kdf-memory", "32K", "--kdf-passes", "1"];
        scratch.good([&cheap, how, &["--disk", size, "d"]].concat());
        Rig { scratch, server: None }
    }

    /// A rig whose tests need these programs; `None`, with a printed reason, where one is missing.
    pub(crate) fn with(size: &str, programs: &[&str]) -> Option<Self> {
        Self::with_disk(TREE, size, programs)
    }

    /// The same with a disk made by these options.
    pub(crate) fn with_disk(how: &[&str], size: &str, programs: &[&str]) -> Option<Self> {
        for program in programs {
            let found = Command::new(program).arg("--version").output();
            if !found.is_ok_and(|output| output.status.success()) {
                eprintln!("skipped: there is no {program}");
                return None;
            }
        }
        Some(Self::made(how, size))
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.scratch.path("s")
    }

    pub(crate) fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket().display())
    }

    /// Serves the disk, with further options, until [`Self::end`] or [`Self::kill`].
    pub(crate) fn serve(&mut self, options: &[&str]) {
        self.serve_volume("d", options);
    }

    /// Serves the disk in another volume.
    pub(crate) fn serve_volume(&mut self, volume: &str, options: &[&str]) {
        self.serve_by("secret", volume, options);
    }

    /// The same by another passphrase.
    fn serve_by(&mut self, passphrase: &str, volume: &str, options: &[&str]) {
        let args = ["nbd", volume, "--socket", "s"].into_iter().chain(options.iter().copied());
        let mut command = self.scratch.command(args);
        command.env("OBLIVIO_PASSPHRASE", passphrase);
        command.stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the command runs");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        assert!(line.starts_with(&format!("Serving {volume}, a disk of ")), "{line:?}");
        assert!(UnixStream::connect(self.socket()).is_ok(), "it can be reached");
        self.server = Some(child);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let server = self.server.as_ref().expect("a server");
        let id = rustix::process::Pid::from_child(server);
        rustix::process::kill_process(id, signal).expect("it is there");
    }

    /// Ends the server as a user would; returns its exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        self.signal(rustix::process::Signal::TERM);
        self.server.take().expect("a server").wait().expect("it ends").code()
    }

    pub(crate) fn kill(&mut self) {
        let mut server = self.server.take().expect("a server");
        server.kill().expect("it is there");
        server.wait().expect("it ends");
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.kill();
        }
    }
}

/// Runs a client that must succeed; returns its output.
pub(crate) fn good(program: &str, args: &[&str]) -> String {
    succeeded(run(program, args))
}

pub(crate) fn run(program: &str, args: &[&str]) -> Output {
    Command::new(program).args(args).output().expect("the program runs")
}
