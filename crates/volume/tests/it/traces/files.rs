//! The file system: which files and names, at which offsets, in tails, shared blocks, holes or
//! memory.

use super::create;
use crate::common::pairs::{Seen, Session, compare_pairs, padded};
use oblivio_store::MemoryStore;
use oblivio_testkit::Dice;
use oblivio_volume::fs::{FileSystem, Handle, NewNode, ROOT_INO, RenameMode, SetAttr, XattrMode};
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

const BLOCK: u64 = 4096;
/// Files of each kind, all of one length.
const EACH: u64 = 20;
const LONG: u64 = 30 * BLOCK + 700;
const SHORT: u64 = 900;

/// A file system with files of equal lengths: full of data, of holes, short ones that share blocks.
static FILLED: LazyLock<Arc<MemoryStore>> = LazyLock::new(|| {
    let (store, volume) = create(BLOCK as usize, 64 << 20);
    let fs = FileSystem::format(Box::new(volume)).expect("room");
    for number in 0..EACH {
        let make = |kind: &str, len: u64, holes: bool| {
            let name = name_of(kind, number);
            let (_, file) = fs.create(ROOT_INO, &name, NewNode::default()).expect("room");
            match holes {
                true => fs.write(file, len - 1, &[1]).expect("room"),
                false => fs.write(file, 0, &vec![number as u8; len as usize]).expect("room"),
            }
            fs.close(file).expect("open");
        };
        make("long", LONG, number % 3 == 0);
        make("short", SHORT, false);
        make("victim", 5 * BLOCK + SHORT, false);
        fs.mkdir(ROOT_INO, &name_of("dir", number), NewNode::default()).expect("room");
    }
    // Enough that a workload's additions and removals do not change the size class.
    let (_, rest) = fs.create(ROOT_INO, b"rest", NewNode::default()).expect("room");
    fs.write(rest, 0, &vec![5; (3700 * BLOCK) as usize]).expect("room");
    fs.close(rest).expect("open");
    drop(fs.into_blocks().expect("memory"));
    store
});

fn name_of(kind: &str, number: u64) -> Vec<u8> {
    format!("{kind} {number}{}", "x".repeat((number * 7 % 60) as usize)).into_bytes()
}

/// The public part of a step.
#[derive(Clone, Debug)]
enum Step {
    Create,
    Write(u64),
    Read(u64),
    ReadMany(Vec<u64>),
    Truncate,
    Punch(u64),
    Chmod,
    Rename,
    Unlink,
    MkDir,
    Symlink(u64),
    Xattr(u64),
    Look,
    Commit,
}

fn any_step(dice: &mut Dice, unlinks: &mut u64) -> Step {
    let len = |dice: &mut Dice| match dice.below(3) {
        0 => 1 + dice.below(2000),
        1 => (1 + dice.below(6)) * BLOCK,
        _ => 1 + dice.below(24 * BLOCK),
    };
    match dice.below(20) {
        0..2 => Step::Create,
        2..6 => Step::Write(len(dice)),
        6..8 => Step::Read(len(dice)),
        8 => Step::ReadMany((0..2 + dice.below(3)).map(|_| len(dice)).collect()),
        9 => Step::Truncate,
        10 => Step::Punch(1 + dice.below(3 * BLOCK)),
        11 => Step::Chmod,
        12 => Step::Rename,
        13 if *unlinks > 0 => {
            *unlinks -= 1;
            Step::Unlink
        }
        14 => Step::MkDir,
        15 => Step::Symlink(1 + dice.below(3000)),
        16 => Step::Xattr(1 + dice.below(6000)),
        17..19 => Step::Commit,
        _ => Step::Look,
    }
}

/// One side's work, with its own choice of files.
struct Work<'a> {
    fs: &'a FileSystem,
    dice: &'a mut Dice,
    /// Always the same, the newest, or any.
    kind: u64,
    made: u64,
    victims: VecDeque<u64>,
}

impl<'a> Work<'a> {
    fn new(fs: &'a FileSystem, dice: &'a mut Dice) -> Self {
        let (kind, first) = (dice.below(3), dice.below(EACH));
        let victims = (0..EACH).map(|at| (first + at * 3) % EACH).collect();
        Self { fs, dice, kind, made: 0, victims }
    }

    fn new_name(&mut self) -> Vec<u8> {
        self.made += 1;
        let salt = self.dice.next_u64() % 10_u64.pow(self.dice.below(12) as u32 + 1);
        format!("{salt} new {}", self.made).into_bytes()
    }

    fn any(&mut self) -> u64 {
        match self.kind {
            0 => 3,
            1 => self.made % EACH,
            _ => self.dice.below(EACH),
        }
    }

    /// A directory to work in.
    fn dir(&mut self) -> u64 {
        let number = self.any();
        match self.dice.below(2) {
            0 => ROOT_INO,
            _ => self.fs.lookup(ROOT_INO, &name_of("dir", number)).expect("there").ino,
        }
    }

    fn file(&mut self, kind: &str) -> Handle {
        let name = name_of(kind, self.any());
        let ino = self.fs.lookup(ROOT_INO, &name).expect("there").ino;
        self.fs.open_file(ino).expect("a file")
    }

    /// The offset of `len` bytes within a long file.
    fn offset(&mut self, len: u64) -> u64 {
        match self.dice.below(3) {
            0 => LONG - len,
            1 => self.dice.below((LONG - len) / BLOCK + 1) * BLOCK % (LONG - len + 1),
            _ => self.dice.below(LONG - len + 1),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Create => {
                let (dir, name) = (self.dir(), self.new_name());
                let made = self.fs.create(dir, &name, NewNode::default());
                self.fs.close(made.expect("room").1).expect("open");
            }
            Step::Write(len) => {
                let kind = if self.dice.below(2) == 0 { "long" } else { "short" };
                let (file, at) = (self.file(kind), self.offset(*len));
                let data = vec![self.dice.next_u64() as u8; *len as usize];
                self.fs.write(file, at, &data).expect("room");
                self.fs.close(file).expect("open");
            }
            Step::Read(len) => {
                let (file, at) = (self.file("long"), self.offset(*len));
                let read = self.fs.read(file, at, *len as usize).expect("data");
                assert_eq!(read.len() as u64, *len);
                self.fs.close(file).expect("open");
            }
            Step::ReadMany(lens) => {
                let file = self.file("long");
                let range = |&len: &u64| (file, self.offset(len), len as usize);
                let ranges: Vec<_> = lens.iter().map(range).collect();
                let answers = self.fs.read_many_around(&ranges);
                assert!(answers.iter().all(Result::is_ok));
                self.fs.close(file).expect("open");
            }
            Step::Truncate => {
                // Longer, so that no length becomes another one's.
                let file =
                    name_of(if self.dice.below(2) == 0 { "long" } else { "short" }, self.any());
                let ino = self.fs.lookup(ROOT_INO, &file).expect("there").ino;
                let size = Some(LONG + self.dice.below(BLOCK));
                self.fs.set_attr(ino, SetAttr { size, ..SetAttr::default() }).expect("room");
            }
            Step::Punch(len) => {
                let (file, at) = (self.file("short"), self.dice.below(LONG));
                self.fs.punch(file, at, *len).expect("room");
                self.fs.close(file).expect("open");
            }
            Step::Chmod => {
                let file = name_of("short", self.any());
                let ino = self.fs.lookup(ROOT_INO, &file).expect("there").ino;
                let mode = Some(self.dice.below(0o777) as u32);
                self.fs.set_attr(ino, SetAttr { mode, ..SetAttr::default() }).expect("room");
            }
            Step::Rename => {
                let (dir, name) = (self.dir(), self.new_name());
                let from = self.new_name();
                self.fs.mkdir(dir, &from, NewNode::default()).expect("room");
                let to = self.dir();
                self.fs.rename(dir, &from, to, &name, RenameMode::Replace).expect("room");
            }
            Step::Unlink => {
                let victim = self.victims.pop_front().expect("one for each");
                self.fs.unlink(ROOT_INO, &name_of("victim", victim)).expect("there");
            }
            Step::MkDir => {
                let (dir, name) = (self.dir(), self.new_name());
                self.fs.mkdir(dir, &name, NewNode::default()).expect("room");
            }
            Step::Symlink(len) => {
                let (dir, name) = (self.dir(), self.new_name());
                let target = vec![b'a' + self.dice.below(20) as u8; *len as usize];
                self.fs.symlink(dir, &name, &target, NewNode::default()).expect("room");
            }
            Step::Xattr(len) => {
                let file = name_of("short", self.any());
                let ino = self.fs.lookup(ROOT_INO, &file).expect("there").ino;
                let (name, value) = (format!("user.{}", self.any()), vec![7; *len as usize]);
                self.fs.set_xattr(ino, name.as_bytes(), &value, XattrMode::Set).expect("room");
            }
            Step::Look => {
                let dir = self.dir();
                self.fs.read_dir(dir, None, 1000).expect("names");
            }
            Step::Commit => self.fs.commit().expect("memory"),
        }
    }
}

fn session(steps: &[Step], dice: &mut Dice) -> Seen {
    let (session, volume) = Session::open(&FILLED, padded());
    let fs = FileSystem::open_ahead(Box::new(volume), usize::MAX).expect("sound");
    let mut work = Work::new(&fs, dice);
    session.seen();
    steps.iter().for_each(|step| work.step(step));
    drop(fs.into_blocks().expect("memory"));
    session.seen()
}

#[test]
fn pairs_of_workloads_on_files_look_the_same() {
    compare_pairs("files", 10, |public, hidden| {
        let (mut unlinks, steps) = (EACH, 4 + public.below(60));
        let steps: Vec<_> = (0..steps).map(|_| any_step(public, &mut unlinks)).collect();
        session(&steps, hidden)
    });
}
