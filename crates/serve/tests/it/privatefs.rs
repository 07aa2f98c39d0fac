//! A file system of several writers, mounted twice over blocks in memory.

use oblivio_crypto::{Entropy, OsEntropy};
use oblivio_privatefs::testing::Memory;
use oblivio_privatefs::{ClientEnvironment, FsOptions as ClientOptions, NewNode, PrivateFs};
use oblivio_serve::privatefs::{SharedMount, SharedMountOptions, serve};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;

/// Mounts over one memory.
struct Stage {
    memory: Arc<Memory>,
    dirs: Vec<TempDir>,
    mounts: Vec<SharedMount>,
}

/// This computer's clock, and fresh randomness.
fn environment() -> ClientEnvironment {
    ClientEnvironment {
        now: Box::new(|| SystemTime::now().into()),
        random: Box::new(|| {
            let mut bytes = [0; 16];
            OsEntropy.fill(&mut bytes);
            bytes
        }),
    }
}

fn client(memory: &Arc<Memory>, number: u8, strict: bool) -> Arc<PrivateFs> {
    let options = ClientOptions { strict, ..ClientOptions::default() };
    let line = memory.client(oblivio_privatefs::Session(number.into()));
    let fs = PrivateFs::new(line, environment(), options).unwrap();
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    fs.create_root(NewNode { mode: 0o755, uid, gid, mtime: SystemTime::now().into() }).unwrap();
    Arc::new(fs)
}

impl Stage {
    /// None where the system has no FUSE.
    fn new(test: &str, count: u8, strict: bool) -> Option<Self> {
        if !Path::new("/dev/fuse").exists() {
            eprintln!("{test}: skipped, no /dev/fuse here");
            return None;
        }
        let memory = Memory::new(4096);
        let dirs: Vec<TempDir> = (0..count).map(|_| tempfile::tempdir().unwrap()).collect();
        let mounts = dirs.iter().zip(1..).map(|(dir, number)| {
            let options = SharedMountOptions { strict, ..SharedMountOptions::default() };
            serve(client(&memory, number, strict), dir.path(), &options).unwrap()
        });
        let mounts = mounts.collect();
        Some(Self { memory, dirs, mounts })
    }

    fn at(&self, mount: usize, path: &str) -> PathBuf {
        self.dirs[mount].path().join(path)
    }

    fn end(self) {
        for mount in self.mounts {
            mount.end().unwrap();
        }
        let findings = client(&self.memory, 99, false).check().unwrap();
        assert_eq!(findings.problems, []);
    }
}

/// What another client changed is seen within a trip; here, within the kernel's memory.
fn soon(what: impl Fn() -> bool) {
    let since = Instant::now();
    while !what() {
        assert!(since.elapsed() < Duration::from_secs(60), "it never comes");
        thread::sleep(Duration::from_millis(10));
    }
}

fn run(dir: &Path, program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null");
    for (name, value) in [("GIT_AUTHOR_NAME", "a"), ("GIT_COMMITTER_NAME", "a")] {
        command.env(name, value);
    }
    for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
        command.env(name, "a@example.org");
    }
    let output = command.output().unwrap();
    if !output.status.success() {
        eprintln!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    output.status.success()
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn one_mount_has_what_another_wrote() {
    let Some(stage) = Stage::new("one_mount_has_what_another_wrote", 2, false) else { return };
    fs::create_dir(stage.at(0, "d")).unwrap();
    fs::write(stage.at(0, "d/f"), b"first").unwrap();
    assert_eq!(fs::read(stage.at(1, "d/f")).unwrap(), b"first");
    let long: Vec<u8> = (0..3_000_000u32).flat_map(u32::to_le_bytes).collect();
    fs::write(stage.at(1, "d/f"), &long).unwrap();
    assert_eq!(fs::read(stage.at(0, "d/f")).unwrap(), long);
    symlink("d/f", stage.at(0, "s")).unwrap();
    assert_eq!(fs::read_link(stage.at(1, "s")).unwrap(), Path::new("d/f"));
    fs::hard_link(stage.at(1, "d/f"), stage.at(1, "g")).unwrap();
    soon(|| fs::metadata(stage.at(0, "d/f")).unwrap().nlink() == 2);
    fs::set_permissions(stage.at(0, "g"), fs::Permissions::from_mode(0o600)).unwrap();
    soon(|| fs::metadata(stage.at(1, "g")).unwrap().mode() & 0o777 == 0o600);
    fs::rename(stage.at(0, "g"), stage.at(0, "d/h")).unwrap();
    soon(|| !stage.at(1, "g").exists());
    let names = fs::read_dir(stage.at(1, "d")).unwrap().count();
    assert_eq!(names, 2);
    let a = fs::metadata(stage.at(0, "d/h")).unwrap();
    let b = fs::metadata(stage.at(1, "d/h")).unwrap();
    assert_eq!((a.ino(), a.len(), a.mtime_nsec()), (b.ino(), b.len(), b.mtime_nsec()));
    stage.end();
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn open_files_outlive_their_names_on_another_mount() {
    let Some(stage) = Stage::new("open_files_outlive_their_names", 2, false) else { return };
    fs::write(stage.at(0, "f"), vec![7; 100_000]).unwrap();
    let mut held = File::open(stage.at(1, "f")).unwrap();
    fs::remove_file(stage.at(0, "f")).unwrap();
    let mut data = Vec::new();
    held.read_to_end(&mut data).unwrap();
    assert_eq!(data, vec![7; 100_000]);
    drop(held);
    soon(|| !stage.at(1, "f").exists());
    stage.end();
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn appends_and_locks_meet_across_mounts() {
    let Some(stage) = Stage::new("appends_and_locks_meet_across_mounts", 2, false) else { return };
    File::create(stage.at(0, "log")).unwrap();
    fs::write(stage.at(0, "counter"), b"0").unwrap();
    thread::scope(|scope| {
        for mount in 0..2 {
            let stage = &stage;
            scope.spawn(move || {
                let append = OpenOptions::new().append(true).open(stage.at(mount, "log"));
                let mut log = append.unwrap();
                for line in 0..200 {
                    log.write_all(format!("{mount} {line:04}\n").as_bytes()).unwrap();
                }
                for _ in 0..40 {
                    let mut options = OpenOptions::new();
                    let counter = options.read(true).write(true).open(stage.at(mount, "counter"));
                    let mut counter = counter.unwrap();
                    counter.lock().unwrap();
                    // It was opened before it had the lock.
                    let mut number = String::new();
                    counter.read_to_string(&mut number).unwrap();
                    let next = (number.parse::<u32>().unwrap() + 1).to_string();
                    counter.seek(SeekFrom::Start(0)).unwrap();
                    counter.write_all(next.as_bytes()).unwrap();
                    counter.sync_all().unwrap();
                    counter.unlock().unwrap();
                }
            });
        }
    });
    assert_eq!(fs::read_to_string(stage.at(0, "counter")).unwrap(), "80");
    let log = fs::read_to_string(stage.at(1, "log")).unwrap();
    assert_eq!(log.lines().count(), 400);
    for mount in 0..2 {
        let own = log.lines().filter_map(|line| line.strip_prefix(&format!("{mount} ")));
        assert!(own.eq((0..200).map(|line| format!("{line:04}"))));
    }
    stage.end();
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_strict_mount_sees_each_write_at_once() {
    let Some(stage) = Stage::new("a_strict_mount_sees_each_write_at_once", 2, true) else { return };
    File::create(stage.at(0, "f")).unwrap().set_len(10_000).unwrap();
    let open = |mount| OpenOptions::new().read(true).write(true).open(stage.at(mount, "f"));
    let (a, b) = (open(0).unwrap(), open(1).unwrap());
    for round in 0..50u8 {
        let (writes, reads) = if round % 2 == 0 { (&a, &b) } else { (&b, &a) };
        writes.write_all_at(&[round; 5000], 2000).unwrap();
        let mut data = [0; 5000];
        reads.read_exact_at(&mut data, 2000).unwrap();
        assert_eq!(data, [round; 5000]);
        let name = format!("n{round}");
        File::create(stage.at(usize::from(round % 2), &name)).unwrap();
        assert!(stage.at(usize::from(1 - round % 2), &name).exists());
    }
    drop((a, b));
    stage.end();
}

#[test]
#[ignore = "system: mounts through FUSE; git and make, if they are installed"]
fn git_and_make_work_on_two_mounts() {
    let Some(stage) = Stage::new("git_and_make_work_on_two_mounts", 2, false) else { return };
    if ["git", "make"].iter().any(|tool| Command::new(tool).arg("--version").output().is_err()) {
        return eprintln!("git_and_make_work_on_two_mounts: skipped, git or make is missing");
    }
    let (a, b) = (stage.at(0, ""), stage.at(1, ""));
    assert!(run(&a, "git", &["init", "-q", "--bare", "origin.git"]));
    for (mount, name) in [(&a, "one"), (&b, "two")] {
        soon(|| mount.join("origin.git").exists());
        assert!(run(mount, "git", &["clone", "-q", "origin.git", name]));
    }
    thread::scope(|scope| {
        for (mount, name) in [(&a, "one"), (&b, "two")] {
            scope.spawn(move || {
                let tree = mount.join(name);
                for round in 0..6 {
                    fs::write(tree.join(format!("{name} {round}")), vec![b'x'; 5000]).unwrap();
                    assert!(run(&tree, "git", &["add", "."]));
                    assert!(run(&tree, "git", &["commit", "-q", "-m", "more"]));
                    let pushed = || {
                        let branch = "HEAD:refs/heads/main";
                        let done = run(&tree, "git", &["push", "-q", "origin", branch]);
                        if !done {
                            // The other one was faster: on top of its work, then.
                            let pull = ["pull", "-q", "--rebase", "origin", "main"];
                            run(&tree, "git", &pull);
                        }
                        done
                    };
                    soon(pushed);
                }
            });
        }
    });
    assert!(run(&a.join("origin.git"), "git", &["fsck", "--strict"]));
    assert!(run(&b.join("two"), "git", &["pull", "-q", "--rebase", "origin", "main"]));
    assert_eq!(fs::read_dir(b.join("two")).unwrap().count(), 13);

    fs::create_dir(a.join("make")).unwrap();
    let rules: String = (0..20).map(|n| format!("o{n}: in\n\tcp in o{n}\n")).collect();
    let all: String = (0..20).map(|n| format!(" o{n}")).collect();
    fs::write(a.join("make/Makefile"), format!("all:{all}\n{rules}")).unwrap();
    fs::write(a.join("make/in"), b"input").unwrap();
    soon(|| b.join("make/in").exists());
    assert!(run(&b.join("make"), "make", &["-s", "-j4"]));
    soon(|| (0..20).all(|n| a.join(format!("make/o{n}")).exists()));
    let output = Command::new("make").arg("-q").current_dir(a.join("make")).output().unwrap();
    assert!(output.status.success(), "the other mount finds everything made");
    stage.end();
}

/// For the suites of others, such as pjdfstest: a command that the environment names, in a mount
/// that other users may enter.
#[test]
#[ignore = "system: mounts through FUSE, for a program that PRIVATEFS_RUN names"]
fn a_command_of_the_environment_works_in_a_mount() {
    let Ok(command) = std::env::var("PRIVATEFS_RUN") else {
        return eprintln!("a_command_of_the_environment_works_in_a_mount: skipped, PRIVATEFS_RUN");
    };
    let memory = Memory::new(4096);
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut options = SharedMountOptions::default();
    (options.look.suid, options.look.dev, options.look.allow_other) = (true, true, true);
    let mounted = serve(client(&memory, 1, false), dir.path(), &options).unwrap();
    let status = Command::new("sh").args(["-c", &command]).current_dir(dir.path()).status();
    mounted.end().unwrap();
    assert_eq!(client(&memory, 2, false).check().unwrap().problems, []);
    assert!(status.unwrap().success());
}
