//! A server with one volume, and computers that mount it.

use crate::common::{Scratch, until};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const VOLUME: [&str; 4] = ["--kdf-memory", "32K", "--kdf-passes", "1"];

/// Whether a test with mounts can run; it says so if not.
pub fn may_mount() -> bool {
    let can =
        Path::new("/dev/fuse").exists() && Command::new("fusermount3").arg("-V").output().is_ok();
    if !can {
        eprintln!("skipped: nobody may mount here");
    }
    can
}

/// A server with one volume, and computers that use it.
pub struct Team {
    pub scratch: Scratch,
    server: Option<Child>,
    port: u16,
    /// Ended with the test, whatever becomes of it.
    mounts: Vec<(Child, PathBuf)>,
}

impl Team {
    pub fn new() -> Self {
        Self::of(&["anna", "ben"], "16M")
    }

    /// These devices, the first of which makes a volume of this size.
    pub fn of(devices: &[&str], size: &str) -> Self {
        Self::made(devices, ["--size", size])
    }

    /// Two devices, the first of which makes a disk of this size.
    pub fn with_disk(size: &str) -> Self {
        Self::made(&["anna", "ben"], ["--disk", size])
    }

    fn made(devices: &[&str], how: [&str; 2]) -> Self {
        let scratch = Scratch::new();
        let mut team = Self { scratch, server: None, port: 0, mounts: Vec::new() };
        team.start();
        for device in devices {
            let host = format!("127.0.0.1:{}", team.port);
            let file = format!("{device}.token");
            let add = ["share", "token", "add", "s", "team", device, "--host", &host];
            team.scratch.good(add.into_iter().chain(["--out", &file]));
        }
        let at = team.at();
        let token = format!("{}.token", devices[0]);
        let init = ["init", &at, "--token-file", &token];
        team.scratch.good(init.into_iter().chain(how).chain(VOLUME));
        team
    }

    pub fn at(&self) -> String {
        format!("share://127.0.0.1:{}/team", self.port)
    }

    /// Starts the server, on the port that it had before if it had one.
    pub fn start(&mut self) {
        let listen = format!("127.0.0.1:{}", self.port);
        let mut serve =
            self.scratch.command(["share", "serve", "s", "--listen", &listen, "--volume", "team"]);
        let mut server = serve.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let mut said = BufReader::new(server.stdout.take().expect("a pipe"));
        said.read_line(&mut line).expect("it says where it is");
        said.read_line(&mut String::new()).expect("and who it is");
        let port = line.trim_end().trim_end_matches('.').rsplit(':').next();
        self.port = port.and_then(|port| port.parse().ok()).expect("a port");
        self.server = Some(server);
    }

    /// Fails if the server has ended.
    pub fn expect_server(&mut self) {
        let ended = self.server.as_mut().map(|server| server.try_wait().expect("a child"));
        assert_eq!(ended, Some(None), "the server ended");
    }

    pub fn kill_server(&mut self) {
        let mut server = self.server.take().expect("it runs");
        server.kill().expect("killed");
        server.wait().expect("it ends");
    }

    /// Mounts the volume on a computer of this name, and waits until it is there.
    pub fn mount(&mut self, device: &str, more: &[&str]) -> PathBuf {
        let dir = self.scratch.path(&format!("dir-{device}"));
        fs::create_dir_all(&dir).expect("a folder");
        let (at, token) = (self.at(), format!("{device}.token"));
        let dir_name = format!("dir-{device}");
        let args = ["mount", &at, &dir_name, "--token-file", &token];
        let mut command = self.on(device, &[&args, more].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
        said.read_line(&mut line).expect("it says that it is up");
        assert!(line.starts_with("Mounted"), "{line}");
        self.mounts.push((child, dir.clone()));
        dir
    }

    /// A command on a computer of this name.
    pub fn on(&self, device: &str, args: &[&str]) -> Command {
        let mut command = self.scratch.command(args);
        command.env("XDG_STATE_HOME", self.scratch.path(&format!("state-{device}")));
        command
    }

    pub fn kill_mount(&mut self, at: usize) {
        let (mut child, dir) = self.mounts.remove(at);
        child.kill().expect("killed");
        child.wait().expect("it ends");
        let _ = Command::new("fusermount3").arg("-uz").arg(dir).output();
    }

    /// Unmounts; whether it ended well.
    pub fn umount(&mut self, at: usize) -> bool {
        let (mut child, dir) = self.mounts.remove(at);
        let _ = Command::new("fusermount3").arg("-u").arg(&dir).output();
        let mut ended = None;
        until(|| {
            ended = child.try_wait().expect("a child");
            ended.is_some()
        });
        ended.is_some_and(|status| status.success())
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        for (child, dir) in &mut self.mounts {
            let _ = Command::new("fusermount3").arg("-uz").arg(dir).output();
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Writes a file and syncs it.
pub fn synced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
}
