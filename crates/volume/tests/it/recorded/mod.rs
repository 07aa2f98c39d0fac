//! The traces of 290 workloads, as they were recorded before: to the byte in length and place.
//!
//! Each workload is a seed: one clock and one stream of randomness, so its trace is a constant of
//! the code. A change of the code that is not meant to change a trace must leave `digests.txt` as
//! it is. One that is meant to says so in the changelog, and records them again:
//! `OBLIVIO_RECORD_TRACES=1 cargo test -p oblivio-volume --test it recorded`.

mod layers;

use layers::{Late, NoHints};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::sequential::SequentialConfig;
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{LocalStore, MemoryStore, RecordStore, Store};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::every;
use oblivio_volume::extents::ExtentOptions;
use oblivio_volume::extents::ExtentVolume;
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO, Timestamp};
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::windows::{WindowOptions, WindowVolume};
use oblivio_volume::{BlockSpace, CreateOptions, Environment, OpenOptions, Pace, Volume};
use std::sync::Arc;
use std::time::Duration;

const BYTES: usize = 256;
const BLOCKS: u64 = 1 << 10;
const WORKLOADS: u64 = 290;
/// From here on they are on stores of whole files.
const WRITTEN_ONCE: u64 = 200;

/// The kinds of workloads, by turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tree,
    Padded,
    Paced,
    Sequential,
    TreeFiles,
    SequentialFiles,
    Windows,
    WindowFiles,
    Extents,
}

const LATER_KINDS: [Kind; 3] = [Kind::Windows, Kind::WindowFiles, Kind::Extents];

const KINDS: [Kind; 6] = [
    Kind::Tree,
    Kind::Sequential,
    Kind::Padded,
    Kind::TreeFiles,
    Kind::Paced,
    Kind::SequentialFiles,
];

impl Kind {
    fn of(seed: u64) -> Self {
        match seed {
            ..WRITTEN_ONCE => KINDS[seed as usize % KINDS.len()],
            _ => LATER_KINDS[seed as usize % LATER_KINDS.len()],
        }
    }

    fn is_sequential(self) -> bool {
        matches!(self, Kind::Sequential | Kind::SequentialFiles | Kind::Extents)
    }

    fn has_files(self) -> bool {
        matches!(self, Kind::TreeFiles | Kind::SequentialFiles | Kind::WindowFiles)
    }

    fn block_bytes(self) -> usize {
        if self.has_files() { 1024 } else { BYTES }
    }
}

fn passphrase() -> Passphrase {
    Passphrase::new("recorded")
}

fn options(kind: Kind, environment: &Environment) -> OpenOptions {
    let pace = Pace { interval: Duration::from_millis(1), batch: 3 };
    OpenOptions {
        memory_bytes: 512 << 10,
        pad: kind == Kind::Padded,
        pace: (kind == Kind::Paced).then_some(pace),
        environment: environment.clone(),
        ..OpenOptions::default()
    }
}

fn create(kind: Kind, store: Arc<dyn Store>, environment: &Environment) -> Volume {
    let (open, kdf) = (options(kind, environment), KdfParams::TEST);
    let bytes = kind.block_bytes();
    if kind.is_sequential() {
        let config = SequentialConfig {
            bucket_blocks: 4,
            queue_buckets: 4,
            fan_out: 3,
            sector_bytes: 128,
            ..SequentialConfig::new(bytes, BLOCKS)
        };
        let create = SequentialOptions { quantum_writes: 4, ..SequentialOptions::of(config) };
        let quiet = &mut |_, _| {};
        if kind == Kind::Extents {
            let sequential = SequentialOptions { log_quanta: 24, ..create };
            let create = ExtentOptions { sequential, extent_bytes: 4096 };
            return ExtentVolume::create(store, &passphrase(), kdf, create, open, quiet)
                .unwrap()
                .into();
        }
        let made = SequentialVolume::create(store, &passphrase(), kdf, create, open, quiet);
        return made.unwrap().into();
    }
    let capacity_bytes = BLOCKS * bytes as u64;
    if matches!(kind, Kind::Windows | Kind::WindowFiles) {
        let create = WindowOptions {
            object_bytes: 16 * bytes,
            pool_bytes: 28 * bytes,
            ..WindowOptions::new(bytes, capacity_bytes, true)
        };
        return WindowVolume::create(store, &passphrase(), kdf, create, open).unwrap().into();
    }
    let create = CreateOptions { block_bytes: bytes, capacity_bytes, kdf };
    Volume::create(store, &passphrase(), create, open).unwrap()
}

/// Reads, writes, patches, removals, discards, commits and idle steps.
fn blocks(volume: &mut Volume, dice: &mut Dice, steps: u64, results: &mut Digest) {
    volume.reserve(BLOCKS / 2).unwrap();
    for _ in 0..steps {
        let first = dice.below(BLOCKS / 2 - 24);
        let ids = first..first + 1 + dice.below(24);
        let op = |id, action| BlockOp { id: BlockId(id), action };
        match dice.below(10) {
            0..3 => {
                let found = volume.access(ids.map(|id| op(id, Action::Read)).collect()).unwrap();
                results.bytes(format!("{found:?}").as_bytes());
            }
            3..5 => {
                let bytes = dice.bytes(BYTES);
                let write = |id| op(id, Action::Write(bytes.clone()));
                volume.access(ids.map(write).collect()).map(drop).unwrap();
            }
            5..7 => {
                let (offset, bytes) = (dice.index(BYTES - 9), dice.bytes(9));
                let patch = |id| op(id, Action::Patch { offset, bytes: bytes.clone() });
                volume.defer(ids.map(patch).collect()).unwrap();
            }
            7 => volume.discard(&ids.collect::<Vec<_>>()).unwrap(),
            8 => volume.commit().unwrap(),
            _ => {
                for _ in 0..3 {
                    volume.idle().unwrap();
                }
            }
        }
        volume.end_operation().unwrap();
    }
}

/// Writes, reads and removes files.
fn files(
    volume: Volume,
    dice: &mut Dice,
    steps: u64,
    begin: bool,
    results: &mut Digest,
) -> Box<dyn BlockSpace> {
    let blocks: Box<dyn BlockSpace> = Box::new(volume);
    let fs = if begin { FileSystem::format(blocks) } else { FileSystem::open(blocks) }.unwrap();
    fs.set_clock(Box::new(|| Timestamp { seconds: 1_700_000_000, nanos: 0 }));
    for _ in 0..steps {
        let name = format!("file {}", dice.below(12));
        let found = fs.lookup(ROOT_INO, name.as_bytes()).ok();
        match (found, dice.below(5)) {
            (None, _) => {
                let node = NewNode { mode: 0o600, ..NewNode::default() };
                let (_, handle) = fs.create(ROOT_INO, name.as_bytes(), node).unwrap();
                let len = dice.index(9000);
                fs.write(handle, dice.below(2000), &dice.bytes(len)).unwrap();
                fs.close(handle).unwrap();
            }
            (Some(_), 0) => fs.unlink(ROOT_INO, name.as_bytes()).unwrap(),
            (Some(_), 1) => fs.commit().unwrap(),
            (Some(attr), _) => {
                let handle = fs.open_file(attr.ino).unwrap();
                results.bytes(&fs.read(handle, dice.below(4000), 3000).unwrap());
                fs.close(handle).unwrap();
            }
        }
    }
    fs.into_blocks().unwrap()
}

/// Creates a volume, works, ends, opens it again, works, dies, opens it again. The digest of all
/// that its store saw, and the number of events.
fn trace(seed: u64) -> String {
    run(seed, MemoryStore::new()).0
}

/// As [`trace`], over any store, and the digest of all that the volume returned.
fn run(seed: u64, below: impl Store + 'static) -> (String, u64) {
    let kind = Kind::of(seed);
    let mut dice = Dice::new(seed);
    let environment = Environment::from_seed(seed);
    let store = Arc::new(RecordStore::new(below));
    let (mut digest, mut results) = (Digest::new(), Digest::new());
    for session in 0..3 {
        let mut volume = match session {
            0 => create(kind, store.clone(), &environment),
            _ => Volume::open(store.clone(), &passphrase(), options(kind, &environment)).unwrap(),
        };
        if kind.has_files() {
            drop(files(volume, &mut dice, 12, session == 0, &mut results));
        } else {
            blocks(&mut volume, &mut dice, 20, &mut results);
            if session == 0 {
                volume.finish().unwrap();
            }
        }
        for event in store.take() {
            digest.number(event.call);
            digest.bytes(format!("{:?} {}", event.op, event.object).as_bytes());
            digest.number(event.offset);
            digest.number(event.len);
        }
    }
    (format!("{seed:03} {kind:?} {} {:016x}", digest.events, digest.state), results.state)
}

/// FNV-1a.
struct Digest {
    state: u64,
    events: u64,
}

impl Digest {
    fn new() -> Self {
        Self { state: 0xcbf2_9ce4_8422_2325, events: 0 }
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.events += u64::from(bytes.len() != 8);
        for &byte in bytes {
            self.state = (self.state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[test]
fn traces_are_as_recorded() {
    if std::env::var_os("OBLIVIO_RECORD_TRACES").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/recorded/digests.txt");
        let all: String = (0..WORKLOADS).map(|seed| trace(seed) + "\n").collect();
        std::fs::write(path, &all).unwrap();
    }
    let recorded: Vec<&str> = include_str!("digests.txt").lines().collect();
    assert_eq!(recorded.len() as u64, WORKLOADS);
    // Of each kind as many: their number and this step have no common divisor.
    let now = (0..WORKLOADS).step_by(every(7)).map(|seed| (recorded[seed as usize], trace(seed)));
    let differs: Vec<_> = now.filter(|(before, now)| before != now).collect();
    assert!(differs.is_empty(), "{} traces changed, such as {:?}", differs.len(), differs[0]);
}

#[test]
fn a_seed_shows_one_trace_and_two_seeds_two() {
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(0).split_once(' ').unwrap().1, trace(6).split_once(' ').unwrap().1);
}

/// Hints and delays change no result and no trace: on memory, and in a folder.
#[test]
fn without_hints_and_late_the_traces_are_as_recorded() {
    let recorded: Vec<&str> = include_str!("digests.txt").lines().collect();
    for seed in (0..96).step_by(every(7)) {
        let expected = run(seed, MemoryStore::new());
        assert_eq!(expected.0, recorded[seed as usize]);
        assert_eq!(run(seed, NoHints(MemoryStore::new())), expected);
        // These take longer.
        if seed < 56 {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let local = LocalStore::create(dir.path()).unwrap();
        assert_eq!(run(seed, Late(MemoryStore::new())), expected);
        assert_eq!(run(seed, NoHints(Late(local))), expected);
    }
}
