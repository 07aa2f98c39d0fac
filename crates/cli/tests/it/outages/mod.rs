//! Outages of the network under a mount, and under commands. Without a server that speaks like S3,
//! or without FUSE, the tests are skipped, and say so.

mod codes;
mod mounts;

use crate::common::{Scratch, succeeded, until};
use oblivio_testkit::rigs::{Network, S3Kind, S3Rig};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A volume in a bucket, behind a network that can be broken.
struct Rig {
    scratch: Scratch,
    network: Network,
    s3: S3Rig,
    /// Whether the server refuses a wrong key.
    checks_keys: bool,
}

/// The first server that is there.
fn rig() -> Option<Rig> {
    for kind in S3Kind::ALL {
        match S3Rig::start(kind) {
            Ok(s3) => {
                let (scratch, network) = (Scratch::new(), Network::before(s3.server.address));
                let checks_keys = kind != S3Kind::Moto;
                let rig = Rig { scratch, network: network.unwrap(), s3, checks_keys };
                rig.good("one", &["init", "--size", "64M", "--small-probe=3"], &QUICK);
                return Some(rig);
            }
            Err(skip) => eprintln!("{kind:?}: {skip}"),
        }
    }
    eprintln!("skipped: no server that speaks like S3");
    None
}

const QUICK: [&str; 4] = ["--kdf-memory", "32K", "--kdf-passes", "1"];

impl Rig {
    /// The volume, as the computer `name` reaches it: `one` through the network.
    fn url(&self, computer: &str) -> String {
        match computer {
            "one" => self.s3.url_through(self.network.address, "vault"),
            _ => self.s3.url("vault"),
        }
    }

    /// A command of a computer, with its own state: words, the volume, and more words.
    fn command(&self, computer: &str, before: &[&str], after: &[&str]) -> Command {
        let url = self.url(computer);
        let mut command = self.scratch.command([before, &[&url], after].concat());
        command
            .env("HOME", self.scratch.path(computer))
            .env("XDG_STATE_HOME", self.scratch.path(computer).join("state"))
            .env("XDG_CACHE_HOME", self.scratch.path(computer).join("cache"))
            .env("AWS_ACCESS_KEY_ID", S3Rig::KEY_ID)
            .env("AWS_SECRET_ACCESS_KEY", S3Rig::SECRET)
            .env_remove("AWS_ENDPOINT_URL");
        command
    }

    fn run(&self, computer: &str, before: &[&str], after: &[&str]) -> Output {
        self.command(computer, before, after).output().expect("the command runs")
    }

    fn good(&self, computer: &str, before: &[&str], after: &[&str]) -> String {
        succeeded(self.run(computer, before, after))
    }

    /// Mounts on `m`, as a child of the test. `None` where nothing can be mounted.
    fn mount(&self, options: &[&str]) -> Option<Child> {
        if std::fs::File::options().read(true).write(true).open("/dev/fuse").is_err() {
            eprintln!("skipped: /dev/fuse may not be used");
            return None;
        }
        std::fs::create_dir_all(self.scratch.path("m")).unwrap();
        let words = [&["mount", "--quiet"], options].concat();
        let mut command = self.command("one", &words, &["m"]);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the command runs");
        let (dir, mut ended) = (self.scratch.path("m"), None);
        until(|| {
            ended = child.try_wait().unwrap();
            ended.is_some() || mounted(&dir)
        });
        ended.map_or(Some(child), |status| {
            eprintln!("skipped: no mount: {status}");
            None
        })
    }
}

fn mounted(dir: &Path) -> bool {
    let list = std::fs::read_to_string("/proc/self/mountinfo").expect("the list of mounts");
    list.lines().any(|line| line.split(' ').nth(4) == dir.to_str())
}

impl Drop for Rig {
    /// A failed test must not leave a mount below a removed directory.
    fn drop(&mut self) {
        if mounted(&self.scratch.path("m")) {
            self.scratch.run(["umount", "--lazy", "m"]);
        }
    }
}
