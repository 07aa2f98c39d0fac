//! A store in a partition after a crash or with a failing disk.

mod lost_tables;

use super::objects::Objects;
use super::table::{self, BLOCK, FRONT, Layout};
use super::{ChangeKind, PartitionPlace};
use crate::medium::Medium;
use crate::{PutMode, ReadAt, Result, StoreError, WriteAt};
use oblivio_testkit::CrashDisk;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A disk that may crash, and whose syncs a test can fail.
#[derive(Clone, Debug)]
struct Disk {
    store: Arc<CrashDisk>,
    failing: Arc<AtomicBool>,
    /// The bytes before each write since the last sync.
    before: Arc<Mutex<Vec<Old>>>,
    /// The offset of a block that cannot be read until it is written as a whole.
    bad: Arc<Mutex<Option<u64>>>,
}

type Old = (u64, Vec<u8>);

impl Disk {
    fn holding(content: &[u8]) -> Self {
        let store = Arc::new(CrashDisk::holding(content));
        Self { store, failing: Arc::default(), before: Arc::default(), bad: Arc::default() }
    }

    /// A disk of `size` bytes, none of them zero.
    fn new(size: u64) -> Self {
        Self::holding(&vec![0xdb; size as usize])
    }

    fn range(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        Medium::read_at(self, &mut [(offset, &mut bytes)]).expect("read");
        bytes
    }

    fn failing(&self, yes: bool) {
        self.failing.store(yes, Ordering::SeqCst);
    }
}

impl Medium for Disk {
    fn read_at(&self, reads: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        let bad = *self.bad.lock().expect("lock");
        let meets = |(at, buf): &(u64, &mut [u8])| {
            bad.is_some_and(|bad| *at < bad + BLOCK && bad < at + buf.len() as u64)
        };
        if reads.iter().any(meets) {
            return Err(io::Error::from_raw_os_error(5));
        }
        self.store.read_at(reads)
    }

    fn write_at(&self, data: &[u8], zeros: usize, offset: u64) -> io::Result<()> {
        let data = &[data, &vec![0; zeros]].concat();
        let mut bad = self.bad.lock().expect("lock");
        if bad.is_some_and(|bad| offset <= bad && bad + BLOCK <= offset + data.len() as u64) {
            *bad = None;
        }
        drop(bad);
        let mut old = vec![0; data.len()];
        Medium::read_at(self, &mut [(offset, &mut old)])?;
        self.before.lock().expect("lock").push((offset, old));
        self.store.write_at(data, offset)
    }

    fn sync(&self) -> io::Result<()> {
        let mut before = self.before.lock().expect("lock");
        if self.failing.load(Ordering::SeqCst) {
            // Like Linux: drops the unwritten pages, and no later sync reports it.
            for (offset, data) in before.drain(..).rev() {
                self.store.write_at(&data, offset)?;
            }
            return Err(io::Error::other("the disk fails"));
        }
        before.clear();
        self.store.sync()
    }

    fn punch(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }
}

const NAMES: [&str; 4] = ["header", "log", "disk", "spare"];

fn layout() -> Layout {
    let places = [
        PartitionPlace { name: "header", capacity: 6000, kind: ChangeKind::Twice },
        PartitionPlace { name: "log", capacity: 20_000, kind: ChangeKind::Growing },
        PartitionPlace { name: "disk", capacity: 5000, kind: ChangeKind::Fixed },
        PartitionPlace { name: "spare", capacity: 100, kind: ChangeKind::Twice },
    ];
    Layout::plan(&places).expect("a plan")
}

fn new() -> (Disk, Objects<Disk>) {
    let disk = Disk::new(layout().size);
    let objects = Objects::create(disk.clone(), layout()).expect("create");
    (disk, objects)
}

type Content = BTreeMap<String, Vec<u8>>;

fn content(objects: &Objects<Disk>) -> Content {
    let read = |(name, len): (String, u64)| {
        let mut buf = vec![0; len as usize];
        objects.read(&mut [ReadAt { object: &name, offset: 0, buf: &mut buf }]).expect("read");
        (name, buf)
    };
    objects.list().into_iter().map(read).collect()
}

fn write(objects: &Objects<Disk>, object: &str, offset: u64, data: &[u8]) -> Result<()> {
    objects.write(&[WriteAt::new(object, offset, data)])
}

/// One step, durable on return.
#[derive(Clone, Debug)]
enum Step {
    Write(usize, u64, Vec<u8>),
    Put(usize, Vec<u8>),
    Truncate(usize, u64),
    Delete(Vec<usize>),
}

fn step() -> impl Strategy<Value = Step> {
    let bytes =
        |most: usize| (any::<u8>(), 1..most).prop_map(|(byte, len): (u8, usize)| vec![byte; len]);
    prop_oneof![
        4 => (1..3usize, 0..4500u64, bytes(500)).prop_map(|(n, at, b)| Step::Write(n, at, b)),
        1 => (0..4usize, 0..50u64, bytes(50)).prop_map(|(n, at, b)| Step::Write(n, at, b)),
        1 => (5000..15_000u64, bytes(5000)).prop_map(|(at, b)| Step::Write(1, at, b)),
        4 => bytes(6000).prop_map(|b| Step::Put(0, b)),
        2 => bytes(100).prop_map(|b| Step::Put(3, b)),
        2 => (0..20_000u64).prop_map(|len| Step::Truncate(1, len)),
        1 => (0..6000u64).prop_map(|len| Step::Truncate(0, len)),
        1 => prop::collection::vec(0..4usize, 1..3).prop_map(Step::Delete),
    ]
}

impl Step {
    fn run(&self, objects: &Objects<Disk>) -> Result<()> {
        match self {
            Self::Write(name, at, data) => {
                write(objects, NAMES[*name], *at, data)?;
                objects.sync(&[NAMES[*name]])
            }
            Self::Put(name, data) => objects.put(NAMES[*name], data, PutMode::Replace),
            Self::Truncate(name, len) => match objects.truncate(NAMES[*name], *len) {
                Err(StoreError::Missing { .. }) => Ok(()),
                result => result,
            },
            Self::Delete(names) => {
                let names: Vec<_> = names.iter().map(|name| NAMES[*name]).collect();
                objects.delete(&names)
            }
        }
    }

    /// Whether a crash in this step, from `old` to `new`, may leave `left` of `object`.
    fn may_leave(
        &self,
        object: &str,
        old: Option<&Vec<u8>>,
        new: Option<&Vec<u8>>,
        left: Option<&Vec<u8>>,
    ) -> bool {
        if left == old || left == new {
            return true;
        }
        let (Self::Write(name, at, data), Some(left)) = (self, left) else { return false };
        // Any part of a write, and nothing else: within the old length, or all of it.
        let (none, at) = (Vec::new(), *at as usize);
        let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
        let fine = |(index, byte): (usize, &u8)| {
            let written = (at..at + data.len()).contains(&index);
            let was = old.get(index);
            was == Some(byte) || new.get(index) == Some(byte) && (written || was.is_none())
        };
        NAMES[*name] == object && left.len() == old.len() && left.iter().enumerate().all(fine)
    }
}

/// Runs the steps. Returns the number of the step that crashed, and the content before it.
fn run(disk: &Disk, objects: &Objects<Disk>, steps: &[Step]) -> Option<(usize, Content)> {
    let mut before = content(objects);
    for (index, step) in steps.iter().enumerate() {
        if step.run(objects).is_err() {
            assert!(disk.store.crashed());
            return Some((index, before));
        }
        before = content(objects);
    }
    None
}

/// A crash at every write and sync of the steps, with every outcome.
fn survives(steps: &[Step], seed: u64) {
    let (disk, objects) = new();
    let start = disk.store.operations();
    let mut states = vec![content(&objects)];
    for step in steps {
        step.run(&objects).expect("no crash");
        states.push(content(&objects));
    }
    let operations = disk.store.operations() - start;
    drop(objects);
    for at in 0..operations {
        let (disk, objects) = new();
        disk.store.crash_after(start + at);
        let (number, before) = run(&disk, &objects, steps).expect("it crashed");
        assert_eq!(before, states[number]);
        let after = &states[number + 1];
        let mut left = disk.store.extremes();
        left.extend((0..4).map(|number| ("by chance", disk.store.survivors(seed + number))));
        for (what, left) in left {
            let again = Objects::open(Disk::holding(&left)).expect("a table is whole");
            let found = content(&again);
            for name in NAMES {
                let (old, new, left) = (before.get(name), after.get(name), found.get(name));
                assert!(
                    steps[number].may_leave(name, old, new, left),
                    "{name} after {what} at operation {at}, in {:?}",
                    steps[number]
                );
            }
            // And it continues from there.
            again.put("header", b"again", PutMode::Replace).expect("put");
            assert_eq!(content(&again).get("header").map(Vec::as_slice), Some(&b"again"[..]));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_crash_leaves_the_old_or_the_new(
        steps in prop::collection::vec(step(), 1..12), seed: u64,
    ) {
        survives(&steps, seed & u64::MAX >> 1);
    }
}

/// Any of a new table's eight sectors may be written or not.
#[test]
fn every_torn_table_leaves_the_one_before() -> Result<()> {
    let (disk, objects) = new();
    objects.put("header", &[1; 6000], PutMode::Replace)?;
    for round in 2..8 {
        let before = content(&objects);
        let old = disk.range(0, FRONT as usize);
        objects.put("header", &vec![round; 1000 * usize::from(round) % 5999], PutMode::Replace)?;
        write(&objects, "log", 0, &[round; 100])?;
        objects.sync(&["log"])?;
        objects.delete(&["spare"])?;
        let middle = content(&objects);
        // The last of the tables alone, over the previous front.
        let new = disk.range(0, FRONT as usize);
        let mut front = old.clone();
        let changed = (0..2).filter(|copy| {
            let range = copy * BLOCK as usize..(copy + 1) * BLOCK as usize;
            old[range.clone()] != new[range]
        });
        assert!(changed.count() > 0);
        let number = |front: &[u8]| {
            let tables = front.chunks(BLOCK as usize).filter_map(table::decode);
            tables.map(|found| found.0).max().expect("a table")
        };
        let at = table::copy(number(&new)) as usize;
        let other = BLOCK as usize - at;
        front[other..other + BLOCK as usize].copy_from_slice(&new[other..other + BLOCK as usize]);
        for sectors in 0..256_u32 {
            let mut torn = front.clone();
            torn[at..at + BLOCK as usize].copy_from_slice(&old[at..at + BLOCK as usize]);
            for sector in (0..8).filter(|sector| sectors & 1 << sector != 0) {
                let range = at + sector * 512..at + (sector + 1) * 512;
                torn[range.clone()].copy_from_slice(&new[range]);
            }
            let whole = torn[at..at + BLOCK as usize] == new[at..at + BLOCK as usize];
            let expected = if whole { number(&new) } else { number(&new) - 1 };
            assert_eq!(number(&torn), expected, "sectors {sectors:08b}");
        }
        assert_ne!(before, middle);
    }
    Ok(())
}

#[test]
fn without_a_whole_table_it_does_not_open() -> Result<()> {
    let (disk, objects) = new();
    objects.put("header", b"x", PutMode::Replace)?;
    drop(objects);
    for at in [17, BLOCK + 17] {
        disk.write_at(&[0xff], 0, at).expect("write");
    }
    let error = Objects::open(disk).expect_err("damaged");
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    Ok(())
}

/// A disk whose syncs fail for a while and drop their writes.
#[test]
fn what_a_failed_sync_dropped_is_written_again() -> Result<()> {
    let (disk, objects) = new();
    objects.put("header", b"first", PutMode::Replace)?;
    write(&objects, "disk", 0, b"old")?;
    objects.sync(&["disk"])?;
    disk.failing(true);
    write(&objects, "disk", 1, b"new")?;
    assert!(objects.sync(&["disk"]).is_err());
    assert!(objects.sync(&["disk"]).is_err(), "and again");
    assert!(objects.put("header", b"second", PutMode::Replace).is_err());
    assert!(objects.truncate("header", 2).is_err());
    let durable = || {
        let left = disk.store.extremes().swap_remove(0).1;
        content(&Objects::open(Disk::holding(&left)).expect("open"))
    };
    assert_eq!(durable()["header"], b"first");
    assert_eq!(durable()["disk"][..4], *b"old\xdb");
    disk.failing(false);
    objects.sync(&["disk"])?;
    assert_eq!(durable()["disk"][..4], *b"onew");
    assert_eq!(durable()["header"], content(&objects)["header"]);
    objects.put("header", b"third", PutMode::Replace)?;
    assert_eq!(durable()["header"], b"third");
    Ok(())
}

/// The sync after a table fails, so the disk may have the table or not. Nothing that either of the
/// two names changes before one is durable.
#[test]
fn after_a_table_that_may_not_be_there_nothing_old_is_lost() -> Result<()> {
    for fail_at in 0..6 {
        let (disk, objects) = new();
        for number in 0..3 {
            objects.put("header", &[number; 6000], PutMode::Replace)?;
        }
        let mut number = 0;
        let mut last = 2;
        for round in 3..20_u8 {
            disk.failing(number == fail_at);
            number = (number + 1) % 6;
            let done = objects.put("header", &[round; 6000], PutMode::Replace).is_ok();
            let left = disk.store.survivors(u64::from(round));
            let found = content(&Objects::open(Disk::holding(&left)).expect("open"));
            let header = &found["header"];
            assert!(header.iter().all(|byte| *byte == header[0]), "never torn");
            assert!(header[0] >= last && header[0] <= round);
            last = if done { round } else { last };
            assert!(!done || header[0] == round);
        }
    }
    Ok(())
}

/// Another process's last write may be visible and yet not on the disk.
#[test]
fn the_table_that_was_found_is_made_durable_before_the_other_is_replaced() -> Result<()> {
    let (disk, objects) = new();
    objects.put("header", b"one", PutMode::Replace)?;
    let durable = disk.store.extremes().swap_remove(0).1;
    objects.put("header", b"two", PutMode::Replace)?;
    let seen = disk.range(0, layout().size as usize);
    drop(objects);
    // The system shows the newest table, which the disk has lost.
    let prepared = || {
        let lost = Disk::holding(&durable);
        lost.write_at(&seen[FRONT as usize..], 0, FRONT).expect("write");
        lost.sync().expect("sync");
        lost.write_at(&seen[..FRONT as usize], 0, 0).expect("write");
        lost
    };
    type Act = fn(&Objects<Disk>) -> Result<()>;
    let acts: [(Act, Option<&[u8]>); 2] = [
        (|objects| objects.put("header", b"three", PutMode::Replace), Some(b"three")),
        (|objects| objects.delete(&["header"]), None),
    ];
    for (act, after) in acts {
        let mut at = 0;
        while !crashed_in(&prepared(), at, act, after) {
            at += 1;
        }
        assert!(at >= 4, "the table that was found, then the new one, and a sync after each");
    }
    Ok(())
}

/// The power fails in operation `at` of `act`, or after it. True if after it.
fn crashed_in(
    disk: &Disk,
    at: u64,
    act: fn(&Objects<Disk>) -> Result<()>,
    after: Option<&[u8]>,
) -> bool {
    let start = disk.store.operations();
    let objects = Objects::open(disk.clone()).expect("open");
    assert_eq!(content(&objects)["header"], b"two");
    disk.store.crash_after(start + at);
    let done = act(&objects).is_ok();
    for seed in 0..60 {
        let left = Disk::holding(&disk.store.survivors(seed));
        let found = content(&Objects::open(left).expect("a table is whole"));
        let header = found.get("header").map(Vec::as_slice);
        assert!([Some(&b"one"[..]), Some(b"two"), after].contains(&header), "{header:?}");
        assert!(!done || header == after);
    }
    done
}
