//! Schedules of a server, its honest devices and a hostile one, drawn from seeds: whatever its disk
//! and that device do, no record that was acknowledged is lost without a word, no byte of the
//! history goes, and the honest ones are served. `just share-campaign` has many; a seed that fails
//! plays again.

use super::server::{Served, ask};
use crate::connection::refuse_foreign;
use oblivio_share::StoredShare;
use oblivio_share::{RemoteShare, Server, Token};
use oblivio_store::share::{
    AskId, AskNumber, ClientSession, HistoryEntry, LEASE, Number, ScribeTerm, SealedAsk, Share,
    ShareCall, ShareError, ShareReply,
};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_testkit::share::{Rig, TestClock, session_of};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Two honest devices, of which the first is the scribe, and a hostile one.
const DEVICES: [&str; 3] = ["one", "two", "bad"];
const BAD: usize = 2;
/// The bounds of the desk, as docs/share-server.md has them: for a device, and for all.
const MOST_OF_DEVICE: u64 = 8192;
/// Bytes of a file of the history before its records.
const FILE_HEAD: usize = 16;
/// More than a server takes of all devices together.
const FLOOD: u64 = 34;

/// A server that can be ended and started.
trait Place {
    fn device(&self, number: usize) -> &dyn Share;
    fn end(&mut self);
    /// # Errors
    /// What it says of its folder.
    fn start(&mut self) -> Result<(), String>;
    /// The folder of the volume.
    fn folder(&self) -> PathBuf;
    fn clock(&self) -> &TestClock;
}

/// A device's calls as its connection lets them through, without the connection.
struct Direct(Arc<StoredShare>, u16);

impl Share for Direct {
    fn call(&self, call: ShareCall<'_>) -> Result<ShareReply, ShareError> {
        refuse_foreign(self.1, &call)?;
        self.0.call(call)
    }

    fn device(&self) -> u16 {
        self.1
    }
}

struct InMemory {
    dir: TempDir,
    clock: TestClock,
    lines: Vec<Direct>,
}

/// A folder in memory, where there is one: what is tried is not the disk.
pub fn in_memory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::tempdir_in(base).unwrap()
}

impl InMemory {
    fn new() -> Self {
        Self { dir: in_memory(), clock: TestClock::default(), lines: Vec::new() }
    }
}

impl Place for InMemory {
    fn device(&self, number: usize) -> &dyn Share {
        &self.lines[number]
    }

    fn end(&mut self) {
        self.lines.clear();
    }

    fn start(&mut self) -> Result<(), String> {
        let opened = StoredShare::with_segments(self.dir.path(), self.clock.clock(), 300);
        let share = Arc::new(opened.map_err(|error| error.to_string())?);
        let line = |number| Direct(Arc::clone(&share), number + 1);
        self.lines = (0..DEVICES.len() as u16).map(line).collect();
        Ok(())
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    fn clock(&self) -> &TestClock {
        &self.clock
    }
}

/// A whole server, and connections to it.
struct Real {
    served: Served,
    clock: TestClock,
    tokens: Vec<Token>,
    lines: Vec<RemoteShare>,
}

impl Real {
    fn new() -> Self {
        let clock = TestClock::default();
        let start = clock.clock();
        let served = Served::with(|dir, volumes| Server::within(dir, volumes, start));
        let tokens = DEVICES.iter().map(|name| served.token(name)).collect();
        let mut real = Self { served, clock, tokens, lines: Vec::new() };
        real.connect();
        real
    }

    fn connect(&mut self) {
        let connect = |token: &Token| self.served.client_with(token.clone());
        self.lines = self.tokens.iter().map(connect).collect();
    }
}

impl Place for Real {
    fn device(&self, number: usize) -> &dyn Share {
        &self.lines[number]
    }

    fn end(&mut self) {
        self.lines.clear();
        self.served.end();
    }

    fn start(&mut self) -> Result<(), String> {
        let server = self.served.start(self.clock.clock());
        server.map_err(|error| error.to_string())?;
        self.connect();
        // A volume that is damaged is named, and the server runs.
        match self.lines[0].status() {
            Ok(_) => Ok(()),
            Err(error) => {
                let findings = self.served.server().findings();
                assert!(!findings.is_empty(), "not served, and not a word: {error}");
                self.end();
                Err(findings.join("; "))
            }
        }
    }

    fn folder(&self) -> PathBuf {
        self.served.dir.path().join("volumes/team")
    }

    fn clock(&self) -> &TestClock {
        &self.clock
    }
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(dir: &Path) -> Files {
    let mut found = Files::new();
    for entry in dir.read_dir().unwrap().map(|entry| entry.unwrap()) {
        let path = entry.path();
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&path)),
            false => drop(found.insert(path.clone(), fs::read(path).unwrap())),
        }
    }
    found
}

/// Makes a folder have exactly these files.
fn put_back(dir: &Path, wanted: &Files) {
    for path in files(dir).keys().filter(|path| !wanted.contains_key(*path)) {
        fs::remove_file(path).unwrap();
    }
    for (path, bytes) in wanted {
        fs::write(path, bytes).unwrap();
    }
}

/// What honest devices know.
struct World<P> {
    place: P,
    dice: Dice,
    term: ScribeTerm,
    next: Number,
    /// Records that are durable, each with the asks of its batch.
    acknowledged: Vec<(Vec<u8>, Vec<SealedAsk>)>,
    /// Asks of the honest ones in no batch yet.
    open: Vec<(usize, SealedAsk)>,
    told: Vec<(usize, AskId)>,
    seqs: [u64; 2],
    /// Sessions of the honest ones: each start has its own.
    session: u64,
    /// The folder as it was at an earlier start: a backup.
    backup: Files,
}

impl<P: Place> World<P> {
    fn new(mut place: P, seed: u64) -> Self {
        if place.folder().read_dir().map_or(0, Iterator::count) == 0 {
            place.start().unwrap();
        }
        let (term, next) = lead(&place);
        let (acknowledged, open, told) = Default::default();
        let (dice, backup) = (Dice::new(seed), files(&place.folder()));
        Self { place, dice, term, next, acknowledged, open, told, seqs: [0; 2], session: 1, backup }
    }

    fn rig(&self) -> Rig<'_> {
        Rig { share: self.place.device(0), term: self.term, next: self.next }
    }

    fn step(&mut self) {
        match self.dice.below(100) {
            0..35 => self.honest_ask(),
            35..50 => self.round(),
            50..60 => self.note(),
            60..70 => self.fetch(),
            70..88 => self.harm(),
            _ => self.restart(),
        }
    }

    /// Nobody else's doings keep an ask out.
    fn honest_ask(&mut self) {
        let who = self.dice.below(2) as usize;
        let share = self.place.device(who);
        let ask = ask(share, self.session, self.seqs[who]);
        asked(share, std::slice::from_ref(&ask)).expect("an honest ask");
        self.seqs[who] += 1;
        self.open.push((who, ask));
    }

    /// The scribe takes what waits, and answers it.
    fn round(&mut self) {
        let some: Vec<_> = self.open.drain(..self.open.len().min(4)).collect();
        let fetches: Vec<_> = some.iter().map(|(_, ask)| (ask.id, Vec::new())).collect();
        if fetches.is_empty() {
            return;
        }
        let mut rig = self.rig();
        let (batch, _) = rig.show(&fetches).expect("a batch of what waits");
        let ids: Vec<AskId> = fetches.iter().map(|(id, _)| *id).collect();
        rig.tell(batch, &ids).expect("its answers");
        self.next = rig.next;
        let asks = some.iter().map(|(_, ask)| ask.clone()).collect();
        self.acknowledged.push((batch.0.to_le_bytes().to_vec(), asks));
        self.acknowledged.push((Rig::answers(batch, &ids).sealed().to_vec(), Vec::new()));
        self.told.extend(some.into_iter().map(|(who, ask)| (who, ask.id)));
    }

    fn note(&mut self) {
        let len = self.dice.below(200) as usize;
        let entry = HistoryEntry::Note(self.dice.bytes(len));
        let mut rig = self.rig();
        rig.add(&entry).expect("a record");
        self.next = rig.next;
        self.acknowledged.push((entry.sealed().to_vec(), Vec::new()));
    }

    fn fetch(&mut self) {
        let Some((who, id)) = self.told.last().copied() else { return };
        let share = self.place.device(who);
        let got = share.answers(id.session, id.seq, Duration::ZERO).expect("answers");
        let want = id.seq.0.to_le_bytes().to_vec();
        assert!(got.iter().any(|it| it.id == id && it.sealed == want), "an answer is missing");
    }

    /// What a device with a token and without the passphrase can do. None of it may succeed but to
    /// fill its own share.
    fn harm(&mut self) {
        let (what, victim) = (self.dice.below(8), self.dice.below(2) as usize);
        let (small, many) = (self.dice.below(200), self.dice.percent(10));
        let target = self.place.device(victim).device();
        let session = ClientSession::of(target, self.session);
        let seq = AskNumber(self.seqs[victim] + small % 3);
        let bad = self.place.device(BAD);
        match what {
            // The name of an ask that an honest one is about to make, and its answers.
            0 | 1 => {
                let id = AskId { session, seq };
                let taken = asked(bad, &[SealedAsk { id, sealed: vec![9; 9] }]);
                assert!(matches!(taken, Err(ShareError::Denied(_))), "{taken:?}");
                let looked = bad.answers(session, AskNumber(0), Duration::ZERO);
                assert!(matches!(looked, Err(ShareError::Denied(_))), "{looked:?}");
            }
            2 | 3 => flood(bad, if many { FLOOD } else { 1 + small % 3 }),
            4 => {
                let large = |at| SealedAsk { sealed: vec![7; 100_000], ..ask(bad, 1000 + at, 0) };
                drop(asked(bad, &(0..small % 20).map(large).collect::<Vec<_>>()));
            }
            // As if it were the scribe.
            5 => {
                let term = ScribeTerm(self.term.0 + 1 + small);
                let added = bad.append(term, self.next, &HistoryEntry::Note(vec![1]));
                let durable = added.and_then(|()| bad.durable(term, self.next));
                assert!(durable.is_err(), "a record of no scribe");
                assert!(bad.sums(term, self.next).is_err());
            }
            6 => {
                let header = bad.put_parameters(2 + small, 48, b"another");
                assert!(header.is_err(), "a header after one that never was");
            }
            _ => {
                let from = Number(self.dice.next_u64());
                drop(bad.records(from, usize::MAX, Duration::ZERO));
                drop(bad.notices(from, Duration::ZERO));
            }
        }
        let status = self.place.device(0).status().expect("the server serves");
        let own = self.open.len() as u64;
        assert!(status.pending <= MOST_OF_DEVICE + own, "{} wait", status.pending);
    }

    /// The server ends; its disk does something; it starts again.
    fn restart(&mut self) {
        self.place.end();
        let folder = self.place.folder();
        let whole = files(&folder);
        let backup = std::mem::replace(&mut self.backup, whole.clone());
        let harmed = match self.dice.percent(15) {
            true => {
                put_back(&folder, &backup);
                None
            }
            false => self.tamper(&whole),
        };
        let before = files(&folder);
        let started = self.place.start();
        // Of all that is not a table, there are two.
        let is_table = |path: &PathBuf| path.parent().is_some_and(|dir| dir.ends_with("tables"));
        if let (Err(why), Some(path)) = (&started, harmed.as_ref().filter(|path| !is_table(path))) {
            panic!("{}: {why}", path.display());
        }
        if started.is_ok() {
            self.holds(harmed.is_some());
            self.place.end();
        }
        nothing_is_gone((&whole, &before), &files(&folder), started.is_ok());
        // The disk is as it was: everything is there. What a start that failed did elsewhere stays.
        match harmed {
            Some(path) if started.is_err() => fs::write(&path, &whole[&path]).unwrap(),
            _ => put_back(&folder, &whole),
        }
        self.place.start().expect("the disk is as it was");
        self.holds(true);
        (self.term, self.next) = lead(&self.place);
        // Clients ask again what was in no batch.
        for (who, ask) in &self.open {
            asked(self.place.device(*who), std::slice::from_ref(ask)).expect("again");
        }
    }

    /// Harms one file, or none: which.
    fn tamper(&mut self, whole: &Files) -> Option<PathBuf> {
        let at = self.dice.index(whole.len());
        let (path, bytes) = whole.iter().nth(at).filter(|(_, bytes)| !bytes.is_empty())?;
        let (mut bytes, byte) = (bytes.clone(), self.dice.index(bytes.len()));
        match self.dice.below(6) {
            0 | 1 => bytes[byte] ^= 1 << self.dice.below(8),
            2 => bytes.truncate(byte),
            3 => {
                fs::remove_file(path).unwrap();
                return Some(path.clone());
            }
            // The end of a write that a crash tore.
            4 => bytes.extend(self.dice.bytes(20)),
            _ => return None,
        }
        fs::write(path, bytes).unwrap();
        Some(path.clone())
    }

    /// The history is what was acknowledged: all of it, or the beginning of it.
    fn holds(&self, all: bool) {
        let share = self.place.device(1);
        let (mut from, mut found) = (Number(0), Vec::new());
        loop {
            let some = share.records(from, 1 << 20, Duration::ZERO).expect("records");
            let Some(last) = some.last() else { break };
            from = Number(last.number.0 + 1);
            found.extend(some.into_iter().map(|it| (it.sealed, it.asks)));
        }
        let known = found.len().min(self.acknowledged.len());
        assert_eq!(
            found[..known],
            self.acknowledged[..known],
            "other records than were acknowledged"
        );
        assert!(!all || found.len() == self.acknowledged.len(), "records are lost, or too many");
    }
}

/// Becomes the scribe, once the lease of the one before is over.
fn lead(place: &impl Place) -> (ScribeTerm, Number) {
    place.clock().pass(2 * LEASE);
    let rig = Rig::new(place.device(0)).expect("a scribe");
    (rig.term, rig.next)
}

/// Hands in asks, and waits for what the server says to them.
fn asked(share: &dyn Share, asks: &[SealedAsk]) -> Result<(), ShareError> {
    share.ask(asks)?;
    share.ask(&[])?;
    share.answers(session_of(share, 1), AskNumber(0), Duration::ZERO).map(drop)?;
    share.ask(&[])
}

/// Thousands of asks, until they are refused.
fn flood(bad: &dyn Share, thousands: u64) {
    for first in 0..thousands {
        let asks: Vec<SealedAsk> = (0..1000).map(|at| ask(bad, first * 1000 + at, 0)).collect();
        if asked(bad, &asks).is_err() {
            return;
        }
    }
}

/// Whether a folder has the first copies of a history's files.
fn is_first_log(dir: &Path) -> bool {
    dir.ends_with("log") && !dir.ends_with("second/log")
}

/// A start that failed changed nothing. One that did not set aside what it could not read of the
/// history, unless it was made again from its second copy.
fn nothing_is_gone((intact, before): (&Files, &Files), after: &Files, started: bool) {
    // A file that ends within its head has no record.
    for (path, bytes) in before.iter().filter(|(_, bytes)| bytes.len() > FILE_HEAD) {
        let left = after.get(path);
        // The catalog's library repairs it in place.
        if !started && !path.ends_with("catalog") {
            assert!(left == Some(bytes), "{} after a start that failed", path.display());
        } else if started && path.parent().is_some_and(is_first_log) {
            let left = left.cloned().unwrap_or_default();
            let aside = |other: &&Vec<u8>| bytes[left.len().min(bytes.len())..] == other[..];
            let whole = left.starts_with(bytes)
                || intact.get(path) == Some(&left)
                || bytes.starts_with(&left) && after.values().any(|it| aside(&it));
            assert!(whole, "{}: bytes are gone", path.display());
        }
    }
}

fn plays<P: Place>(seed: u64, steps: u64, place: impl FnOnce() -> P) {
    let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut world = World::new(place(), seed);
        (0..steps).for_each(|_| world.step());
        world.restart();
    }));
    if let Err(panic) = played {
        eprintln!("seed {seed}: OBLIVIO_SEED={seed} OBLIVIO_SCALE=0.001 plays it again");
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn no_device_and_no_disk_harms_others() {
    let first = seed(0);
    (first..first + scaled(60)).for_each(|seed| plays(seed, 40, InMemory::new));
}

#[test]
fn nor_over_connections() {
    let first = seed(0);
    (first..first + scaled(3)).for_each(|seed| plays(seed, 30, Real::new));
}
