//! The command killed with SIGKILL at random moments of put, rm and mv.
//!
//! After every kill the volume must open and check clean. Every acknowledged file must be whole,
//! and every file must be a version that the killed command may have left. `just kills`
//! kills more often.

use crate::common::Scratch;
use oblivio_testkit::campaign::{scaled, seed};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A small generator, to make a run repeatable.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % end
    }
}

/// Content that identifies its file and version, and shows whether it is whole.
fn content(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random(seed);
    (0..len).map(|_| random.below(256) as u8).collect()
}

/// The possible contents under each name: versions, and whether it may be absent.
type Files = BTreeMap<String, Vec<u8>>;

struct World {
    scratch: Scratch,
    random: Random,
    /// Files that are surely in the volume.
    files: Files,
    version: u64,
    kills: u64,
    acknowledged: u64,
}

impl World {
    /// Runs a command, kills it after a while, and returns its output.
    fn killed(&mut self, args: &[&str]) -> (String, bool) {
        let said = self.scratch.path("said");
        let mut command = self.scratch.command(args);
        command.stdout(fs::File::create(&said).expect("a file")).stderr(Stdio::null());
        let mut child = command.spawn().expect("it runs");
        let until = Instant::now() + Duration::from_micros(500 + self.random.below(120_000));
        while Instant::now() < until && child.try_wait().expect("it runs").is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        child.kill().ok();
        let done = child.wait().expect("it ended").success();
        self.kills += u64::from(!done);
        (fs::read_to_string(said).expect("text"), done)
    }

    /// Puts a folder of new versions over the old ones.
    fn put(&mut self) {
        let local = self.scratch.path("batch");
        fs::remove_dir_all(&local).ok();
        fs::create_dir(&local).expect("a folder");
        let mut new = Files::new();
        for _ in 0..1 + self.random.below(12) {
            self.version += 1;
            let name = format!("f{}", self.random.below(30));
            // Mostly small; now and then several blocks.
            let most = if self.random.below(4) == 0 { 600_000 } else { 9_000 };
            let bytes = content(self.version, self.random.below(most) as usize);
            fs::write(local.join(&name), &bytes).expect("a file");
            new.insert(format!("/batch/{name}"), bytes);
        }
        let (said, done) = self.killed(&["put", "-rv", "v", "batch", "/"]);
        let sure: BTreeSet<&str> =
            if done { new.keys().map(String::as_str).collect() } else { said.lines().collect() };
        self.acknowledged += sure.len() as u64;
        let found = self.look();
        for (name, bytes) in &new {
            let is = found.get(name);
            let is_new = is == Some(bytes);
            assert!(is_new || !sure.contains(name.as_str()), "{name} was acknowledged and is lost");
            assert!(is_new || is == self.files.get(name), "{name} is neither old nor new");
        }
        self.settle(found, |name| new.contains_key(name));
    }

    fn remove(&mut self) {
        let Some(victim) = self.pick() else { return };
        let (_, done) = self.killed(&["rm", "v", &victim]);
        let found = self.look();
        match found.get(&victim) {
            None => {}
            Some(bytes) => assert!(!done && bytes == &self.files[&victim], "{victim}"),
        }
        self.settle(found, |name| name == victim);
    }

    fn rename(&mut self) {
        let Some(from) = self.pick() else { return };
        let to = format!("/batch/m{}", self.random.below(10));
        let (_, done) = self.killed(&["mv", "v", &from, &to]);
        let found = self.look();
        let moved = found.get(&to) == self.files.get(&from) && !found.contains_key(&from);
        let stayed =
            found.get(&to) == self.files.get(&to) && found.get(&from) == self.files.get(&from);
        assert!(moved || (stayed && !done) || from == to, "{from} to {to}");
        self.settle(found, |name| name == from || name == to);
    }

    fn pick(&mut self) -> Option<String> {
        let count = self.files.len() as u64;
        (count > 0)
            .then(|| self.random.below(count) as usize)
            .and_then(|at| self.files.keys().nth(at).cloned())
    }

    /// Checks the volume and reads all of it.
    fn look(&mut self) -> Files {
        assert!(self.scratch.good(["check", "v"]).starts_with("clean"));
        let mut found = Files::new();
        if self.scratch.good(["ls", "v"]).contains("batch") {
            let back = self.scratch.path("back");
            fs::remove_dir_all(&back).ok();
            self.scratch.good(["get", "-r", "v", "/batch", "back"]);
            read_all(&back, &mut found);
        }
        found
    }

    /// Checks that untouched files are unchanged; then the found files are the current ones.
    fn settle(&mut self, found: Files, touched: impl Fn(&str) -> bool) {
        for (name, bytes) in &self.files {
            assert!(touched(name) || found.get(name) == Some(bytes), "{name} changed untouched");
        }
        self.files = found;
    }
}

fn read_all(folder: &Path, found: &mut Files) {
    for entry in folder.read_dir().expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(name.starts_with(['f', 'm']), "{name} is left over");
        found.insert(format!("/batch/{name}"), fs::read(&path).expect("a file"));
    }
}

#[test]
#[ignore = "system: kills processes"]
fn killed_commands_lose_nothing() {
    let wanted = scaled(12);
    let mut world = World {
        scratch: Scratch::with_volume(),
        random: Random(seed(2026)),
        files: Files::new(),
        version: 0,
        kills: 0,
        acknowledged: 0,
    };
    while world.kills < wanted {
        match world.random.below(6) {
            0 => world.remove(),
            1 => world.rename(),
            _ => world.put(),
        }
    }
    let (kills, acknowledged) = (world.kills, world.acknowledged);
    let mut out = std::io::stderr();
    std::io::Write::write_fmt(
        &mut out,
        format_args!("{kills} kills, {acknowledged} files acknowledged, 0 lost\n"),
    )
    .ok();
}
