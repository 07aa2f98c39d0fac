//! A computer: a process with a home of its own, which prints what it sees and what it synced.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a process may take for anything.
const PATIENCE: Duration = Duration::from_secs(120);

/// What all computers know of the server.
#[derive(Clone, Default)]
pub struct Env {
    pub variables: BTreeMap<String, String>,
    /// The file of remotes.
    pub remotes: String,
}

impl Env {
    pub fn of(variables: &[(&str, &str)]) -> Self {
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        Self { variables: variables.iter().map(own).collect(), ..Self::default() }
    }

    /// Makes a home.
    pub fn prepare(&self, home: &Path) {
        let config = home.join(".config/oblivio");
        std::fs::create_dir_all(&config).expect("a folder");
        if !self.remotes.is_empty() {
            super::write_secret(&config.join("remotes.toml"), &self.remotes);
        }
    }

    fn command(&self, mode: &str, url: &str, home: &Path) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("a path"));
        command.args(["--exact", "takeovers::work", "--nocapture", "--test-threads=1"]);
        command.env("TAKEOVER_MODE", mode).env("TAKEOVER_URL", url).env("HOME", home);
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "AWS_ENDPOINT_URL"] {
            command.env_remove(name);
        }
        command.envs(&self.variables).stdin(Stdio::null());
        command
    }
}

/// What a process said so far.
#[derive(Default)]
struct Said {
    seen: Option<u64>,
    acked: u64,
    acks: u64,
    told: bool,
    failed: Option<String>,
    ended: bool,
}

pub struct Computer {
    pub number: u64,
    home: PathBuf,
    child: Child,
    said: Arc<(Mutex<Said>, Condvar)>,
}

fn lock(said: &Mutex<Said>) -> MutexGuard<'_, Said> {
    said.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Computer {
    /// Makes the volume.
    pub fn create(url: &str, env: &Env, home: &Path) {
        let output = env.command("create", url, home).output().expect("the process runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    pub fn start(url: &str, env: &Env, home: &Path) -> Self {
        Self::start_as(0, url, env, home)
    }

    pub fn start_as(number: u64, url: &str, env: &Env, home: &Path) -> Self {
        let _ = std::fs::remove_file(home.join("end"));
        let mut command = env.command("work", url, home);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
        let said = Arc::new((Mutex::new(Said::default()), Condvar::new()));
        let (lines, heard) = (child.stdout.take().expect("piped"), Arc::clone(&said));
        std::thread::spawn(move || {
            for line in BufReader::new(lines).lines().map_while(Result::ok) {
                hear(&mut lock(&heard.0), &line);
                heard.1.notify_all();
            }
            lock(&heard.0).ended = true;
            heard.1.notify_all();
        });
        Self { number, home: home.to_owned(), child, said }
    }

    fn wait(&self, what: &str, until: impl Fn(&Said) -> bool) -> MutexGuard<'_, Said> {
        let (mut said, begun) = (lock(&self.said.0), Instant::now());
        while !until(&said) {
            assert!(said.failed.is_none(), "while waiting for {what}: {:?}", said.failed);
            assert!(!said.ended, "it ended while waiting for {what}");
            assert!(begun.elapsed() < PATIENCE, "no {what} for {PATIENCE:?}");
            let waited = self.said.1.wait_timeout(said, Duration::from_secs(1));
            said = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        said
    }

    /// Waits until it has the volume; how many records there are.
    pub fn wait_seen(&mut self) -> u64 {
        self.wait("what it sees", |said| said.seen.is_some()).seen.unwrap_or(0)
    }

    /// Waits until `more` further records are acknowledged.
    pub fn wait_acked(&self, more: u64) {
        let before = lock(&self.said.0).acks;
        drop(self.wait("records", |said| said.acks >= before + more));
    }

    /// The last record that was acknowledged to it.
    pub fn acked(&self) -> u64 {
        lock(&self.said.0).acked
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &pid]).status();
        assert!(status.expect("kill is there").success());
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ended");
        drop(self.wait("the end", |said| said.ended));
    }

    /// Waits until it says that it lost the volume, and ends so.
    pub fn wait_told(&mut self) {
        drop(self.wait("that it is over", |said| said.told));
        let status = self.child.wait().expect("it ended");
        assert_eq!(status.code(), Some(12));
    }

    /// Asks it to end by itself.
    pub fn finish(mut self) {
        std::fs::write(self.home.join("end"), "").expect("room");
        let status = self.child.wait().expect("it ended");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Computer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A test's name and an answer may stand on one line.
fn hear(said: &mut Said, line: &str) {
    let number = |word: &str| {
        let at = line.find(word)? + word.len();
        line[at..].split_whitespace().next()?.parse::<u64>().ok()
    };
    if let Some(seen) = number("seen ") {
        said.seen = Some(seen);
    } else if let Some(acked) = number("acked ") {
        said.acked = acked;
        said.acks += 1;
    } else if line.contains("overtaken") {
        said.told = true;
    } else if let Some(at) = line.find("failed: ") {
        said.failed = Some(line[at..].to_owned());
    }
}
