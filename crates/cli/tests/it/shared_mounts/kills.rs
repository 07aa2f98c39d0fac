//! Files that were synced are there, in spite of kills while they were written. `just
//! share-mount-kills` kills more often.

use super::team::{Team, may_mount};
use oblivio_testkit::campaign::scaled_len;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const DEVICES: [&str; 2] = ["anna", "ben"];

/// Files of one mount that were synced, each with the time.
#[derive(Default)]
struct Done(Mutex<Vec<(u32, Instant)>>);

impl Done {
    fn all(&self) -> Vec<(u32, Instant)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long it took from a moment on until a file was begun and synced.
    fn next_after(&self, begin: Instant, what: &str, team: &Team) -> Duration {
        while begin.elapsed() < Duration::from_secs(60) {
            if let Some((_, at)) = self.all().iter().find(|(_, at)| *at > begin) {
                return *at - begin;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let errors = DEVICES.map(|device| fs::read_to_string(team.scratch.path(device)));
        let last = errors.map(|all| all.map(|all| all.lines().last().map(str::to_owned)));
        let status = team.scratch.good(["share", "status", "s"]);
        panic!("{what}: no service for a minute\n{status}\n{last:?}");
    }
}

/// Ends the writers, also when the test fails.
struct End(PathBuf);

impl Drop for End {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, b"");
    }
}

/// The lines of a file, which its writer makes with `seq`.
const LINES: u32 = 1000;

fn content(number: u32) -> String {
    (number..=number + LINES).map(|line| format!("{line}\n")).collect()
}

fn name(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("file-{number}"))
}

/// Writes and syncs files until the end, and says the number of each. A mount that was killed, or
/// waits too long, fails some.
const WRITER: &str = r#"
number=0
while [ ! -e "$2" ]; do
    if seq "$number" "$((number + $3))" | dd of="$1/file-$number" conv=fsync status=none
    then echo "$number"
    else sleep 0.05
    fi
    number=$((number + 1))
done"#;

/// A process of its own writes. If a thread of this process did, then the server that this process
/// starts could inherit an open file, and wait, before it runs, for itself: at the close.
fn write(dir: &Path, done: &Done, ended: &Path, errors: &Path) {
    let mut shell = Command::new("sh")
        .args(["-c", WRITER, "sh"])
        .args([dir, ended])
        .arg(LINES.to_string())
        .stdout(Stdio::piped())
        .stderr(fs::File::create(errors).expect("a file"))
        .spawn()
        .expect("a shell");
    let said = BufReader::new(shell.stdout.take().expect("a pipe"));
    for number in said.lines().map_while(Result::ok).filter_map(|line| line.parse().ok()) {
        let mut all = done.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((number, Instant::now()));
    }
    shell.wait().expect("it ends");
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn synced_files_survive_kills_of_servers_and_scribes() {
    if !may_mount() {
        return;
    }
    let kills = scaled_len(2);
    let mut team = Team::of(&DEVICES, &format!("{}M", 16 + 8 * kills));
    let roots: Vec<PathBuf> = DEVICES.iter().map(|device| team.mount(device, &[])).collect();
    let dirs: Vec<PathBuf> = DEVICES.iter().zip(&roots).map(|(it, dir)| dir.join(it)).collect();
    dirs.iter().for_each(|dir| fs::create_dir(dir).expect("a directory"));
    let done = [Done::default(), Done::default()];
    let ended = team.scratch.path("ended");
    let mut took = Vec::new();
    thread::scope(|scope| {
        for ((dir, done), device) in dirs.iter().zip(&done).zip(DEVICES) {
            let (ended, errors) = (&ended, team.scratch.path(device));
            scope.spawn(move || write(dir, done, ended, &errors));
        }
        let _end = End(ended.clone());
        for kill in 0..kills {
            // In the middle of work, at a moment that is anybody's guess.
            for done in &done {
                done.next_after(Instant::now(), "all is well", &team);
            }
            let begin = Instant::now();
            team.kill_server();
            team.start();
            took.push(done[kill % 2].next_after(begin, "the server killed", &team));
            team.expect_server();
            // One of the two is the scribe.
            let begin = Instant::now();
            team.kill_mount(0);
            let left = (kill + 1) % 2;
            took.push(done[left].next_after(begin, "the other mount killed", &team));
            team.mount(DEVICES[kill % 2], &[]);
            done[kill % 2].next_after(Instant::now(), "mounted again", &team);
        }
    });
    assert!(team.umount(0) && team.umount(0));
    let root = team.mount("anna", &[]);
    for (device, done) in DEVICES.iter().zip(&done) {
        let all = done.all();
        for (number, _) in &all {
            let found =
                fs::read_to_string(name(&root.join(device), *number)).expect("it was synced");
            assert_eq!(found, content(*number), "{device} {number}");
        }
        eprintln!("{device}: {} files, all there", all.len());
    }
    assert!(team.umount(0));
    took.sort_unstable();
    eprintln!("service again after {:?} (median), {:?} at most", took[took.len() / 2], took.last());
}
