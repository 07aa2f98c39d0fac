//! Four mounts race for a few names, and one of them is killed half way: `just share-races`.
//!
//! Each mount has a writer that is a process of its own: this program again.

use super::team::{Team, may_mount};
use crate::common::until;
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{at_least, scaled_len};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const DEVICES: [&str; 4] = ["anna", "ben", "carla", "dora"];
/// The one that is killed. The first to mount is the scribe.
const VICTIM: usize = 0;
const DIR: &str = "OBLIVIO_RACES_DIR";
const NUMBER: &str = "OBLIVIO_RACES_NUMBER";
const OPERATIONS: &str = "OBLIVIO_RACES_OPERATIONS";
/// Longer than the minute of silence after which a session ends whose computer died.
const SILENCE: Duration = Duration::from_secs(180);
/// What a race may end with.
const REFUSALS: [Errno; 9] = [
    // A link to a directory.
    Errno::PERM,
    Errno::NOENT,
    Errno::EXIST,
    Errno::NOTEMPTY,
    Errno::ISDIR,
    Errno::NOTDIR,
    Errno::STALE,
    Errno::INVAL,
    Errno::LOOP,
];

/// What a writer puts into the file that it makes in its operation of this number.
fn content(writer: usize, operation: usize) -> Vec<u8> {
    let head = format!("{writer} {operation}\n");
    let len = [head.len(), 3000, 9000, 40_000][operation % 4];
    head.bytes().cycle().take(len).collect()
}

/// Whether a file has all that one writer wrote, or only the beginning.
fn is_whole(found: &[u8]) -> bool {
    let line = found.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line).into_owned();
    let mut numbers = line.split(' ').map(|number| number.parse().ok());
    let (Some(Some(writer)), Some(Some(operation))) = (numbers.next(), numbers.next()) else {
        assert_eq!(found, b"", "no writer wrote this");
        return false;
    };
    let wanted = content(writer, operation);
    assert_eq!(found, &wanted[..found.len().min(wanted.len())], "written by {line}");
    found.len() == wanted.len()
}

fn make(path: &Path, content: &[u8], syncs: bool) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(content)?;
    if syncs { file.sync_all() } else { Ok(()) }
}

/// One random operation in the directory, which has the directories `one` and `two`.
fn operate(dir: &Path, writer: usize, operation: usize, dice: &mut Dice) -> io::Result<()> {
    let mut place = || {
        let letter = |number: u64| char::from(b'a' + number as u8);
        let name = match dice.below(2) {
            0 => letter(dice.below(4)).to_string(),
            _ => letter(dice.below(4)).to_string().repeat(101),
        };
        match dice.below(6) {
            0 | 1 => dir.join(name),
            2 | 3 => dir.join("one").join(name),
            4 => dir.join("two").join(name),
            _ => dir.join(letter(dice.below(4)).to_string()).join(name),
        }
    };
    let (from, to) = (place(), place());
    let rename = |flags| Ok(renameat_with(CWD, &from, CWD, &to, flags)?);
    match dice.below(12) {
        0..3 => make(&from, &content(writer, operation), dice.percent(50)),
        3 => fs::create_dir(&from),
        4 | 5 => fs::remove_file(&from),
        6 => fs::remove_dir(&from),
        7 => fs::hard_link(&from, &to),
        8 => rename(RenameFlags::NOREPLACE),
        9 => rename(RenameFlags::EXCHANGE),
        _ => fs::rename(&from, &to),
    }
}

/// The process that works in one mount. It says the number of each operation.
#[test]
fn writer() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<usize>().ok());
    let (writer, operations) = (number(NUMBER).unwrap(), number(OPERATIONS).unwrap());
    let (dir, mut dice) = (PathBuf::from(dir), Dice::new(writer as u64 + 1));
    let (mut done, mut refused) = (0, 0);
    for operation in 0..operations {
        match operate(&dir, writer, operation, &mut dice) {
            Ok(()) => done += 1,
            Err(error) => match Errno::from_io_error(&error) {
                Some(errno) if REFUSALS.contains(&errno) => refused += 1,
                Some(Errno::CONNABORTED | Errno::NOTCONN) if writer == VICTIM => return,
                _ => panic!("{} {operation}: {error}", DEVICES[writer]),
            },
        }
        writeln!(io::stdout(), "{operation}").expect("somebody reads");
    }
    eprintln!("{}: {done} carried out, {refused} refused", DEVICES[writer]);
    assert_ne!(writer, VICTIM, "its mount was to be killed");
}

fn start(dir: &Path, writer: usize, operations: usize) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "shared_mounts::races::writer", "--nocapture"]);
    command.env(DIR, dir).env(NUMBER, writer.to_string());
    command.env(OPERATIONS, operations.to_string());
    let said = if writer == VICTIM { Stdio::piped() } else { Stdio::null() };
    command.stdin(Stdio::null()).stdout(said).spawn().expect("it starts")
}

/// An entry of a tree.
#[derive(Debug, PartialEq)]
struct Seen {
    ino: u64,
    links: u64,
    /// None for a directory.
    content: Option<Vec<u8>>,
}

/// Everything below a directory, by path. Each name is there once.
fn tree(root: &Path) -> io::Result<BTreeMap<PathBuf, Seen>> {
    let (mut seen, mut dirs) = (BTreeMap::new(), vec![PathBuf::new()]);
    while let Some(dir) = dirs.pop() {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(root.join(&dir))? {
            let name = entry?.file_name();
            assert!(names.insert(name.clone()), "{name:?} is twice in {dir:?}");
            let path = dir.join(name);
            let found = fs::symlink_metadata(root.join(&path))?;
            let content = match found.is_dir() {
                true => None,
                false => Some(fs::read(root.join(&path))?),
            };
            if found.is_dir() {
                dirs.push(path.clone());
            }
            seen.insert(path, Seen { ino: found.ino(), links: found.nlink(), content });
        }
    }
    Ok(seen)
}

/// Link counts are those of the names; at most one file, that of the killed mount, is not whole.
fn assert_sound(tree: &BTreeMap<PathBuf, Seen>) {
    let mut broken = BTreeSet::new();
    for (path, seen) in tree {
        let links = match &seen.content {
            Some(content) => {
                if !is_whole(content) {
                    broken.insert(seen.ino);
                }
                tree.values().filter(|other| other.ino == seen.ino).count()
            }
            None => {
                let within = tree.iter().filter(|(other, _)| other.parent() == Some(path));
                2 + within.filter(|(_, other)| other.content.is_none()).count()
            }
        };
        assert_eq!(seen.links, links as u64, "{}", path.display());
    }
    assert!(broken.len() <= 1, "{broken:?}");
}

/// Waits until all mounts show the same: what another one changed may be seen seconds late.
fn same_tree(dirs: &[PathBuf]) -> BTreeMap<PathBuf, Seen> {
    let mut same = None;
    until(|| {
        let trees: Option<Vec<_>> = dirs.iter().map(|dir| tree(dir).ok()).collect();
        same = trees.filter(|all| all.iter().all(|it| *it == all[0])).and_then(|mut all| all.pop());
        same.is_some()
    });
    same.expect("one")
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn racing_mounts_leave_a_sound_tree() {
    if !may_mount() {
        return;
    }
    let each = scaled_len(200) / DEVICES.len();
    // A session whose computer died ends after a minute of silence: only a long run waits for that.
    let waits = at_least(10.0);
    let mut team = Team::of(&DEVICES, "64M");
    let roots = DEVICES.map(|device| team.mount(device, &[]));
    let mut dirs: Vec<PathBuf> = roots.iter().map(|root| root.join("race")).collect();
    fs::create_dir_all(dirs[0].join("one")).expect("a directory");
    fs::create_dir(dirs[0].join("two")).expect("a directory");
    same_tree(&roots);

    let begin = Instant::now();
    let start = |(writer, dir): (usize, &PathBuf)| start(dir, writer, each);
    let mut writers: Vec<Child> = dirs.iter().enumerate().map(start).collect();
    let mut victim = writers.remove(VICTIM);
    let said = BufReader::new(victim.stdout.take().expect("a pipe"));
    let numbers = said.lines().map_while(Result::ok).filter_map(|line| line.parse::<usize>().ok());
    for number in numbers {
        if number == each / 2 {
            team.kill_mount(VICTIM);
        }
    }
    assert!(victim.wait().expect("it ends").success());
    for writer in &mut writers {
        assert!(writer.wait().expect("it ends").success());
    }
    eprintln!("{each} operations on each of {} mounts: {:?}", DEVICES.len(), begin.elapsed());

    dirs.remove(VICTIM);
    let left = same_tree(&dirs);
    assert_sound(&left);
    let again = team.mount(DEVICES[VICTIM], &[]).join("race");
    assert_eq!(same_tree(&[again, dirs[0].clone()]), left);
    assert!((0..DEVICES.len()).all(|_| team.umount(0)));
    check(&mut team, &left, waits);
}

/// Nothing is wrong; and once the killed mount's session has ended, the next mount leaves nothing.
fn check(team: &mut Team, left: &BTreeMap<PathBuf, Seen>, waits: bool) {
    let said = team.scratch.good(["check", &team.at()]);
    eprintln!("{said}");
    let files = left.values().filter(|seen| seen.content.is_some()).map(|seen| seen.ino);
    let files = files.collect::<BTreeSet<_>>().len();
    if !waits {
        return;
    }
    let begin = Instant::now();
    loop {
        team.mount("ben", &[]);
        assert!(team.umount(0));
        let said = team.scratch.good(["check", &team.at()]);
        if said.starts_with(&format!("{files} file")) && !said.contains("rest") {
            return eprintln!("and after one more mount: {said}");
        }
        assert!(begin.elapsed() < SILENCE, "{said}");
        thread::sleep(Duration::from_secs(1));
    }
}
