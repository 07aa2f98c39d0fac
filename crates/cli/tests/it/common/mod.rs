//! A scratch folder and the built command, for all tests.
#![allow(dead_code, reason = "each test file uses a part of it")]

use oblivio_testkit::Dice;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Longer than any step takes on a busy computer. Nothing is proved by its length.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A folder for a volume, a computer's memory of it, and files.
pub struct Scratch {
    dir: tempfile::TempDir,
}

impl Scratch {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a temporary folder") }
    }

    /// A scratch folder with a volume `v` in it, quick to open.
    pub fn with_volume() -> Self {
        let scratch = Self::new();
        scratch.good(["init", "--kdf-memory", "32K", "--kdf-passes", "1", "v"]);
        scratch
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// The command, in the scratch folder, with the passphrase `secret`.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oblivio"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env_remove("OBLIVIO_NEW_PASSPHRASE")
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("OBLIVIO_PASSPHRASE", "secret")
            .stdin(Stdio::null());
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Output {
        self.command(args).output().expect("the command runs")
    }

    /// Runs a command that must succeed; returns its standard output.
    pub fn good<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        succeeded(self.run(args))
    }

    /// Runs a command that must end with `code`; returns its standard error.
    pub fn bad<S: AsRef<OsStr>>(&self, code: i32, args: impl IntoIterator<Item = S>) -> String {
        failed(code, self.run(args))
    }

    /// Runs a command with this on standard input.
    pub fn feed<S: AsRef<OsStr>>(&self, input: &[u8], args: impl IntoIterator<Item = S>) -> Output {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command runs");
        child.stdin.take().expect("a pipe").write_all(input).expect("it reads");
        child.wait_with_output().expect("it ends")
    }
}

pub fn succeeded(output: Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{:?}: {error}\n{said}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

pub fn failed(code: i32, output: Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(error.contains("oblivio: ") || code == 2, "{error}");
    assert!(!error.contains("secret"), "{error}");
    error
}

/// Waits until this is so.
pub fn until(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "it never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What this gives, which may be an error of the system, but comes.
pub fn comes<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(work()));
    match told.recv_timeout(PATIENCE) {
        Ok(done) => done,
        Err(RecvTimeoutError::Timeout) => panic!("{what}: no end"),
        Err(RecvTimeoutError::Disconnected) => panic!("{what}: it panicked"),
    }
}

/// The lines that a child says on its standard error, as they come.
pub struct Notes {
    lines: std::sync::mpsc::Receiver<String>,
    /// All that was said.
    pub said: String,
}

impl Notes {
    /// Listens from now on.
    pub fn of(child: &mut Child) -> Self {
        let (tell, lines) = channel();
        let from = BufReader::new(child.stderr.take().expect("a pipe"));
        std::thread::spawn(move || {
            from.lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
        });
        Self { lines, said: String::new() }
    }

    /// Waits for a line with these words.
    pub fn until(&mut self, words: &str) {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no {words:?} in {:?}", self.said));
            self.said += &format!("{line}\n");
            if line.contains(words) {
                return;
            }
        }
    }

    /// All that was said, once the child has closed its standard error.
    pub fn end(mut self) -> String {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.said += &format!("{line}\n"),
                Err(RecvTimeoutError::Disconnected) => return self.said,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end: {}", self.said),
            }
        }
    }
}

/// A named pipe.
pub fn fifo(scratch: &Scratch, name: &str) -> PathBuf {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let path = scratch.path(name);
    let mode = Mode::from_raw_mode(0o600);
    mknodat(CWD, &path, FileType::Fifo, mode, 0).expect("a pipe");
    path
}

pub fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect(text)
}

/// An audit found nothing. The trace may be too short for statistics.
pub fn no_leak(audit: &serde_json::Value) {
    let verdict = audit["verdict"].as_str();
    assert!(matches!(verdict, Some("pass" | "too_short")), "{audit}");
}

/// Copies a volume's folder, as a backup program does.
pub fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in from.read_dir().expect("a folder") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
    }
}

/// Incompressible bytes, always the same for a seed.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    Dice::new(seed).bytes(len)
}
