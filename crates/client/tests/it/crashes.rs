//! The server's computer crashes at a record of a run of 500 asks: what was not synced is there,
//! gone, torn, or there in any order of its sectors. It opens, and nothing acknowledged is missing.
//! `just pyramid-crashes` takes every record.

use super::{Client, Line, World, get, read, value, write};
use oblivio_client::Keyed;
use oblivio_share::StoredShare;
use oblivio_splitmix::SplitMix64;
use oblivio_store::share::{
    AskId, HistoryEntry, LEASE, Number, Result, SealedAnswer, Share, ShareCall, ShareReply,
};
use oblivio_testkit::campaign::{at_least, every};
use oblivio_testkit::share::TestClock;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Asks of the run.
const ASKS: u64 = 500;
/// Clients, and blocks that each writes. The others read them.
const CLIENTS: u64 = 3;
const BLOCKS_OF_CLIENT: u64 = 12;
/// What a disk writes as a whole.
const SECTOR: usize = 512;
/// Before the first record of a file of the history, and before each record.
const FILE_HEAD: usize = 16;
const RECORD_HEAD: usize = 12;

/// For each block: the newest value that somebody knows to be there, and the newest one that was
/// ever asked for.
#[derive(Default)]
struct Known {
    acknowledged: BTreeMap<u64, u64>,
    asked: BTreeMap<u64, u64>,
}

/// A disk right before a record came: its files, and the records that are surely on it.
struct Moment {
    files: BTreeMap<PathBuf, Vec<u8>>,
    durable: u64,
    acknowledged: BTreeMap<u64, u64>,
    asked: BTreeMap<u64, u64>,
}

/// A server in a folder, one call at a time, with what its disk has at some records.
struct Watched {
    dir: PathBuf,
    share: StoredShare,
    step: u64,
    first: u64,
    inside: Mutex<Inside>,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Inside {
    /// Records that came, those again too, and the number of the next one.
    records: u64,
    next: u64,
    durable: u64,
    told: BTreeMap<AskId, u64>,
    moments: Vec<Moment>,
}

fn files(dir: &Path, below: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir.join(below)).unwrap().map(|entry| entry.unwrap()) {
        let path = below.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => files(dir, &path, into),
            false => drop(into.insert(path.clone(), fs::read(dir.join(path)).unwrap())),
        }
    }
}

impl Watched {
    /// Something is known to be durable from now on, or a record comes.
    fn note(&self, call: &ShareCall<'_>, reply: Option<&ShareReply>) {
        let mut inside = self.inside.lock().unwrap();
        match (call, reply) {
            (ShareCall::Append { entry, number, .. }, None) => {
                if let HistoryEntry::Tell(tell) = entry {
                    let told = tell.answers.iter().map(|answer| (answer.id, number.0));
                    inside.told.extend(told);
                }
                self.keep(&mut inside);
            }
            (ShareCall::Append { number, .. }, Some(_)) => inside.next = number.0 + 1,
            // A sync takes all records that are there.
            (_, Some(reply)) if inside.needs(call, reply) > inside.durable => {
                inside.durable = inside.next;
            }
            _ => {}
        }
    }

    /// Keeps what the disk has, at every `step`th record.
    fn keep(&self, inside: &mut Inside) {
        if inside.records % self.step == self.first {
            let mut now = BTreeMap::new();
            files(&self.dir, Path::new(""), &mut now);
            let known = self.known.lock().unwrap();
            let (acknowledged, asked) = (known.acknowledged.clone(), known.asked.clone());
            let durable = inside.durable;
            inside.moments.push(Moment { files: now, durable, acknowledged, asked });
        }
        inside.records += 1;
    }
}

impl Inside {
    /// The records before this one are durable, now that a call has this reply.
    fn needs(&self, call: &ShareCall<'_>, reply: &ShareReply) -> u64 {
        match (call, reply) {
            (ShareCall::Sums { number, .. } | ShareCall::Durable { number, .. }, _) => number.0 + 1,
            (
                ShareCall::Slots { after: Number(at), .. } | ShareCall::Save { at: Number(at), .. },
                _,
            ) => *at,
            (ShareCall::Claim { .. } | ShareCall::Records { .. }, _) => self.next,
            (_, ShareReply::Answers(answers)) => {
                // Refusals stand in no record.
                let of = |answer: &SealedAnswer| {
                    self.told.get(&answer.id).map_or(self.next, |it| it + 1)
                };
                answers.iter().map(of).max().unwrap_or(0)
            }
            _ => 0,
        }
    }
}

impl Share for Watched {
    fn device(&self) -> u16 {
        0
    }

    fn call(&self, call: ShareCall<'_>) -> Result<ShareReply> {
        let until = match call {
            ShareCall::Answers { wait, .. }
            | ShareCall::Asks { wait, .. }
            | ShareCall::Records { wait, .. } => Instant::now() + wait,
            _ => Instant::now(),
        };
        let none = Duration::ZERO;
        let now = match call {
            ShareCall::Answers { session, from, .. } => {
                ShareCall::Answers { session, from, wait: none }
            }
            ShareCall::Asks { term, from, .. } => ShareCall::Asks { term, from, wait: none },
            ShareCall::Records { from, most_bytes, .. } => {
                ShareCall::Records { from, most_bytes, wait: none }
            }
            other => other,
        };
        loop {
            let one = ONE.lock().unwrap();
            self.note(&now, None);
            let reply = self.share.call(now)?;
            self.note(&now, Some(&reply));
            drop(one);
            let empty = match &reply {
                ShareReply::Answers(answers) => answers.is_empty(),
                ShareReply::Asks(asks, _) => asks.is_empty(),
                ShareReply::Records(records) => records.is_empty(),
                _ => false,
            };
            if !empty || Instant::now() >= until {
                return Ok(reply);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Calls come one at a time, so that no file is copied in the middle of a write.
static ONE: Mutex<()> = Mutex::new(());

/// Where the record of this number ends, and those before it, in a file of the history.
fn end_of(file: &[u8], first: u64, records: u64) -> usize {
    let mut end = FILE_HEAD;
    for _ in first..records {
        let Some(len) = file.get(end..end + 4) else { break };
        end += RECORD_HEAD + u32::from_le_bytes(len.try_into().unwrap()) as usize;
    }
    end.min(file.len())
}

impl Moment {
    /// Puts what a crash leaves into a folder: all that is durable, and some of the rest.
    fn crash(&self, way: u64, rng: &mut SplitMix64, dir: &Path) {
        let newest = self.files.keys().filter(|path| path.starts_with("log")).max().cloned();
        for (path, bytes) in &self.files {
            let mut bytes = bytes.clone();
            if Some(path) == newest.as_ref() {
                let name = path.file_name().unwrap().to_str().unwrap();
                let first = u64::from_str_radix(name, 16).unwrap();
                spoil(&mut bytes, end_of(&self.files[path], first, self.durable), way, rng);
            } else if path.extension().is_some_and(|it| it == "part") {
                spoil(&mut bytes, 0, way, rng);
            }
            fs::create_dir_all(dir.join(path).parent().unwrap()).unwrap();
            fs::write(dir.join(path), bytes).unwrap();
        }
    }
}

/// Bytes from `safe` on were not synced.
fn spoil(bytes: &mut Vec<u8>, safe: usize, way: u64, rng: &mut SplitMix64) {
    let rest = bytes.len() - safe;
    match way {
        0 => {}
        1 => bytes.truncate(safe),
        2 => bytes.truncate(safe + rng.below(rest as u64 + 1) as usize),
        _ => {
            for at in safe..bytes.len() {
                if at == safe || at.is_multiple_of(SECTOR) {
                    let end = ((at / SECTOR + 1) * SECTOR).min(bytes.len());
                    if rng.below(2) == 0 {
                        bytes[at..end].fill(0);
                    }
                }
            }
        }
    }
}

/// A client writes its own blocks, each time a greater value, and reads those of all.
fn work(client: &Client, number: u64, asks: &AtomicU64, known: &Mutex<Known>) {
    let mut rng = SplitMix64::new(number);
    while asks.fetch_add(4, Ordering::SeqCst) < ASKS {
        let own = number * BLOCKS_OF_CLIENT;
        let mut blocks: Vec<u64> = (0..2).map(|_| own + rng.below(BLOCKS_OF_CLIENT)).collect();
        blocks.dedup();
        let mut asked = Vec::new();
        for block in &blocks {
            let mut known = known.lock().unwrap();
            let next = known.asked.entry(*block).or_default();
            *next += 1;
            asked.push(vec![write(*block, *next)]);
        }
        let others: Vec<u64> = (0..2).map(|_| rng.below(CLIENTS * BLOCKS_OF_CLIENT)).collect();
        asked.extend(others.iter().map(|block| vec![read(*block)]));
        let written: Vec<u64> = blocks.iter().map(|it| known.lock().unwrap().asked[it]).collect();
        let answers = client.carry_out_many(&asked).unwrap();
        let got = answers[blocks.len()..].iter().map(|answers| value(&answers[0]));
        let mut known = known.lock().unwrap();
        for (block, value) in blocks.iter().copied().zip(written).chain(others.into_iter().zip(got))
        {
            let newest = known.acknowledged.entry(block).or_default();
            *newest = value.max(*newest);
        }
    }
}

/// Opens what a crash left, and compares.
fn check(keyed: &Keyed, dir: &Path, moment: &Moment, what: &str) {
    let clock = TestClock::default();
    let share = StoredShare::open(dir, clock.clock()).unwrap_or_else(|error| {
        panic!("{what}: {error}");
    });
    clock.pass(LEASE);
    let world = World { line: Line::to(Arc::new(share)), keyed: keyed.clone() };
    let (client, _) = world.client();
    let blocks: Vec<_> = (0..CLIENTS * BLOCKS_OF_CLIENT).map(|block| vec![read(block)]).collect();
    let answers = client.carry_out_many(&blocks).unwrap();
    for (block, answers) in (0..).zip(&answers) {
        let of = |map: &BTreeMap<u64, u64>| map.get(&block).copied().unwrap_or(0);
        let (least, most, got) = (of(&moment.acknowledged), of(&moment.asked), value(&answers[0]));
        assert!((least..=most).contains(&got), "{what}: block {block} has {got}, not {least}");
    }
    client.carry_out(&[write(0, 1 << 40)]).unwrap();
    assert_eq!(get(&client, 0), 1 << 40, "{what}: it goes on");
    client.close().unwrap();
}

/// A run whose disk is kept at every `step`th record. The numbers of records and of crashes.
fn run(step: u64, first: u64) -> (u64, u64) {
    let dir = tempfile::tempdir().unwrap();
    let (known, inside) = (Arc::new(Mutex::new(Known::default())), Mutex::default());
    let clock = TestClock::default();
    let share = StoredShare::open(dir.path(), clock.clock()).unwrap();
    let path = dir.path().to_path_buf();
    let watched =
        Arc::new(Watched { dir: path, share, step, first, inside, known: Arc::clone(&known) });
    let world = World::over(Arc::clone(&watched) as Arc<dyn Share>);
    let clients: Vec<_> = (0..CLIENTS).map(|_| world.client().0).collect();
    let asks = AtomicU64::new(0);
    thread::scope(|scope| {
        for (number, client) in (0..).zip(&clients) {
            let (asks, known) = (&asks, &*known);
            scope.spawn(move || work(client, number, asks, known));
        }
    });
    clients.iter().rev().for_each(|client| client.close().unwrap());
    let Inside { records, moments, .. } = std::mem::take(&mut *watched.inside.lock().unwrap());
    let crashes = AtomicU64::new(0);
    let all: Vec<(u64, &Moment)> = (first..).step_by(step as usize).zip(&moments).collect();
    // Some beside each other, since each mostly waits.
    for some in all.chunks(4) {
        thread::scope(|scope| {
            for ((record, moment), way) in
                some.iter().flat_map(|it| (0..4).map(move |way| (it, way)))
            {
                let (keyed, crashes) = (&world.keyed, &crashes);
                scope.spawn(move || {
                    let left = tempfile::tempdir().unwrap();
                    moment.crash(way, &mut SplitMix64::new(4 * record + way), left.path());
                    check(keyed, left.path(), moment, &format!("record {record}, way {way}"));
                    crashes.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
    }
    (records, crashes.into_inner())
}

#[test]
fn a_crash_at_any_record_loses_nothing_that_was_acknowledged() {
    let step = every(24) as u64;
    // A long run keeps a part of the moments at a time.
    let every = if at_least(2.0) { step.next_multiple_of(8) } else { step };
    let (mut records, mut crashes) = (0, 0);
    for first in (0..every).step_by(step as usize) {
        let run = run(every, first);
        (records, crashes) = (run.0, crashes + run.1);
    }
    println!("{crashes} crashes at the records of runs of {ASKS} asks, {records} in the last");
    assert!(records > 50 && crashes >= 4 * (records / every), "{crashes} at {records} records");
}
