//! A stalled disk: writes are answered all the same, for a while, and no path is read before its
//! intent is durable.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{MemoryStore, ReadAt, Result, Store, pass_on};
use oblivio_volume::{BlockSpace, CreateOptions, OpenOptions, Shown, ShownKind, Volume};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const BLOCK: usize = 64 << 10;
const BLOCKS: u64 = 1200;
/// Blocks in an operation.
const SOME: u64 = 8;
const MEMORY: usize = 256 << 20;
/// A sixteenth of it may be deferred.
const MOST: u64 = (MEMORY / 16 / BLOCK) as u64;

/// A disk that answers again when a caller waits for it.
#[derive(Default)]
struct Stalls {
    disk: MemoryStore,
    still: AtomicBool,
    /// Whether something must become durable before the next read.
    pending: AtomicBool,
    waited: AtomicU64,
}

impl Stalls {
    fn wait(&self) {
        self.waited.fetch_add(u64::from(self.still.swap(false, Relaxed)), Relaxed);
        self.pending.store(false, Relaxed);
    }
}

impl Store for Stalls {
    pass_on!(self => self.disk; write len put truncate discard delete list lock free_bytes);

    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        assert!(!self.pending.load(Relaxed), "read before its intent is durable");
        self.disk.read(reads)
    }

    fn sync(&self, objects: &[&str]) -> Result<()> {
        self.wait();
        self.disk.sync(objects)
    }

    fn write_durable_soon(&self, object: &str, at: u64, data: &[u8], _: Duration) -> Result<bool> {
        self.disk.write_durable(object, at, data)?;
        self.pending.store(self.still.load(Relaxed), Relaxed);
        Ok(!self.still.load(Relaxed))
    }

    fn sync_soon(&self, _: &[&str], _: Duration) -> Result<bool> {
        self.pending.fetch_and(self.still.load(Relaxed), Relaxed);
        Ok(!self.still.load(Relaxed))
    }
}

struct World {
    store: Arc<Stalls>,
    volume: Volume,
    /// Accesses shown.
    shown: Arc<AtomicU64>,
    written: u64,
}

impl World {
    fn new(pad: bool) -> World {
        let store = Arc::new(Stalls::default());
        let shown = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&shown);
        let on_shown = move |event: &Shown| {
            if event.kind == ShownKind::Batch {
                count.fetch_add((event.leaves.len() - event.scheduled) as u64, Relaxed);
            }
        };
        let create =
            CreateOptions { block_bytes: BLOCK, capacity_bytes: 1 << 30, kdf: KdfParams::TEST };
        let open = OpenOptions { on_shown: Some(Box::new(on_shown)), pad, ..open() };
        let mut volume =
            Volume::create(store.clone(), &passphrase(), create, open).expect("an empty store");
        volume.reserve(BLOCKS).expect("room");
        World { store, volume, shown, written: 0 }
    }

    /// An operation on the next blocks, and the commit behind it if one is wanted; gives what the
    /// operation showed.
    fn write(&mut self) -> u64 {
        let before = self.shown.load(Relaxed);
        let ops = (0..SOME).map(|_| {
            self.written += 1;
            op((self.written - 1) % BLOCKS, Action::Write(content(self.written)))
        });
        self.volume.defer(ops.collect()).expect("memory");
        let shown = self.shown.load(Relaxed) - before;
        if self.volume.wants_commit() {
            self.volume.commit().expect("memory");
        }
        shown
    }

    /// About how many blocks are written and not carried out: other paths were shown, too.
    fn left(&self) -> u64 {
        self.written.saturating_sub(self.shown.load(Relaxed))
    }

    fn stand_still(&self) {
        self.store.still.store(true, Relaxed);
    }

    fn waited(&self) -> u64 {
        self.store.waited.load(Relaxed)
    }

    fn check(&mut self) {
        check(&mut self.volume, self.written);
    }
}

fn check(volume: &mut Volume, written: u64) {
    for number in (1..=written).rev().take(BLOCKS as usize) {
        let id = (number - 1) % BLOCKS;
        let answer = volume.access(vec![op(id, Action::Read)]).expect("memory").remove(0);
        assert_eq!(answer.expect("written")[..8], content(number)[..8]);
    }
}

fn open() -> OpenOptions {
    OpenOptions { memory_bytes: MEMORY, short_pauses: true, ..OpenOptions::default() }
}

fn passphrase() -> Passphrase {
    Passphrase::new("still")
}

fn op(id: u64, action: Action) -> BlockOp {
    BlockOp { id: BlockId(id), action }
}

fn content(number: u64) -> Vec<u8> {
    [number.to_le_bytes().to_vec(), vec![7; BLOCK - 8]].concat()
}

#[test]
fn who_writes_is_answered_and_what_was_left_is_made_up_for() {
    let mut world = World::new(false);
    let most = (0..200).map(|_| world.write()).max().expect("some");
    assert!(most > 0 && world.waited() == 0);
    for round in 1..4 {
        world.stand_still();
        let mut operations = 0;
        while world.waited() < round {
            let shown = world.write();
            assert!(world.waited() == round || shown == 0, "nothing is read meanwhile");
            operations += 1;
            assert!(operations * SOME <= MOST + 2 * SOME, "{operations}");
        }
        // The limit without a stall is reached already; and a commit waits.
        assert!(round > 1 || operations * SOME >= MOST - 4 * SOME, "{operations}");
        // Operations carry out more than they bring until only the usual backlog is left.
        assert!(round > 1 || world.left() > 100, "{}", world.left());
        let after: Vec<u64> = (0..60).map(|_| world.write()).collect();
        // The last of them may meet a late commit, with the usual backlog.
        let most = 3 * SOME + most + (2 << 20) / BLOCK as u64;
        assert!(after.iter().all(|&shown| shown < most), "{after:?}, {most}");
        assert!(world.left() <= 40, "{}", world.left());
    }
    world.check();
}

#[test]
fn who_reads_or_syncs_waits() {
    let mut world = World::new(false);
    (0..50).for_each(|_| _ = world.write());
    world.stand_still();
    (0..4).for_each(|_| _ = world.write());
    assert_eq!(world.waited(), 0);
    world.check();
    assert_eq!(world.waited(), 1);
    world.stand_still();
    (0..4).for_each(|_| _ = world.write());
    world.volume.discard(&[0]).expect("memory");
    world.volume.commit().expect("memory");
    assert_eq!(world.waited(), 2);
    let disk: Arc<dyn Store> = Arc::new(world.store.disk.snapshot());
    let mut again = Volume::open(disk, &passphrase(), open()).expect("sound");
    let read = |id| op(id, Action::Read);
    assert_eq!(again.access(vec![read(0)]).expect("memory"), [None]);
    let last = (world.written - 1) % BLOCKS;
    let answer = again.access(vec![read(last)]).expect("memory").remove(0);
    assert_eq!(answer.expect("written")[..8], content(world.written)[..8]);
}

#[test]
fn a_quiet_moment_makes_up_for_it_and_does_not_wait() {
    let mut world = World::new(false);
    (0..50).for_each(|_| _ = world.write());
    world.stand_still();
    (0..4).for_each(|_| _ = world.write());
    let shown = world.shown.load(Relaxed);
    for _ in 0..3 {
        assert!(world.volume.idle().expect("memory") > Some(Duration::ZERO), "it asks again soon");
    }
    assert_eq!((world.waited(), world.shown.load(Relaxed)), (0, shown));
    world.store.still.store(false, Relaxed);
    while world.volume.idle().expect("memory").is_some() {}
    assert!(world.shown.load(Relaxed) > shown);
    assert_eq!(world.waited(), 0);
    world.check();
    world.volume.finish().expect("memory");
}

/// If the size of each operation shows, no operation carries out another one's writes.
#[test]
fn with_padding_everybody_waits() {
    let mut world = World::new(true);
    (0..50).for_each(|_| _ = world.write());
    world.stand_still();
    let shown: u64 = (0..8).map(|_| world.write()).sum();
    assert!(world.waited() == 1 && shown > 0);
    world.check();
}

/// As many blocks as the bytes would fill, however little is written to each.
#[test]
fn what_waits_is_no_more_blocks_than_it_could_fill() {
    let mut world = World::new(false);
    (0..50).for_each(|_| _ = world.write());
    world.stand_still();
    let mut blocks = 0;
    while world.waited() == 0 {
        let patch = |id| op(id, Action::Patch { offset: 0, bytes: vec![1] });
        world.volume.defer((blocks..blocks + SOME).map(patch).collect()).expect("memory");
        blocks += SOME;
        assert!(blocks <= MOST + 2 * SOME);
    }
    assert!(blocks >= MOST / 2, "{blocks}");
}

/// A volume with most of it removed, so its tree shrinks when idle. Its blocks are small, so there
/// are many paths between two commits.
fn shrinking(store: &Arc<Stalls>, open: OpenOptions) -> Volume {
    let create = CreateOptions { block_bytes: 4096, capacity_bytes: 1 << 30, kdf: KdfParams::TEST };
    let mut volume = Volume::create(store.clone(), &passphrase(), create, open).expect("empty");
    volume.reserve(BLOCKS).expect("room");
    let write = |id| op(id, Action::Write(vec![7; 4096]));
    volume.access((0..BLOCKS).map(write).collect()).expect("memory");
    volume.discard(&(100..BLOCKS).collect::<Vec<_>>()).expect("memory");
    volume.commit().expect("memory");
    volume
}

#[test]
fn a_quiet_moment_does_not_wait_to_sweep() {
    let store = Arc::new(Stalls::default());
    let (open, shown) = recorded(&store, false);
    let mut volume = shrinking(&store, open);
    let mut sweeps = || {
        let before = shown.lock().expect("alone").len();
        let next = volume.idle().expect("memory");
        (shown.lock().expect("alone").len() > before, next)
    };
    while !sweeps().0 {}
    store.still.store(true, Relaxed);
    for _ in 0..3 {
        let (sweeps, next) = sweeps();
        assert!(!sweeps && next > Some(Duration::ZERO), "it asks again soon");
    }
    store.still.store(false, Relaxed);
    assert_eq!(store.waited.load(Relaxed), 0);
    let done = (0..100_000).any(|_| sweeps().1.is_none());
    assert!(done, "it comes to an end");
}

/// The leaves shown, in order; with `since_commit`, those since the last one. None comes before its
/// intent is durable, even if a round reads nothing because all is in memory.
fn recorded(store: &Arc<Stalls>, since_commit: bool) -> (OpenOptions, Arc<Mutex<Vec<u64>>>) {
    let leaves = Arc::new(Mutex::new(Vec::new()));
    let (seen, store) = (Arc::clone(&leaves), Arc::clone(store));
    let on_shown = move |event: &Shown| {
        assert!(!store.pending.load(Relaxed), "shown before its intent is durable");
        let mut seen = seen.lock().expect("alone");
        seen.extend_from_slice(&event.leaves);
        if since_commit && event.kind == ShownKind::Commit {
            seen.clear();
        }
    };
    (OpenOptions { on_shown: Some(Box::new(on_shown)), ..open() }, leaves)
}

/// A crash here first shows again what was shown since the last commit.
fn assert_shown_again(store: &Arc<Stalls>, shown: &Mutex<Vec<u64>>) {
    let shown = shown.lock().expect("alone").clone();
    let (open, again) = recorded(store, false);
    let disk: Arc<dyn Store> = Arc::new(store.disk.snapshot());
    drop(Volume::open(disk, &passphrase(), open).expect("sound"));
    let again = again.lock().expect("alone");
    assert!(shown.len() > 20, "{}", shown.len());
    assert_eq!(again[..shown.len()], shown);
}

/// As the next test, with a sweep.
#[test]
fn a_crash_shows_a_sweep_again_where_it_was() {
    let store = Arc::new(Stalls::default());
    let (open, shown) = recorded(&store, true);
    let mut volume = shrinking(&store, open);
    let sweeps = |volume: &mut Volume| {
        let before = shown.lock().expect("alone").len();
        volume.idle().expect("memory");
        shown.lock().expect("alone").len() > before
    };
    while !sweeps(&mut volume) {}
    let intended = (0..10).any(|_| {
        store.still.store(true, Relaxed);
        // Or it is a commit's turn, which waits.
        !sweeps(&mut volume) && !sweeps(&mut volume) && store.pending.load(Relaxed)
    });
    assert!(intended, "a sweep is next");
    volume.access(vec![op(7, Action::Read)]).expect("memory");
    assert!(!store.still.load(Relaxed), "who reads waits");
    assert_shown_again(&store, &shown);
}

/// The batch whose intent is on its way comes before any other, as in a replay; else a crash would
/// show other paths.
#[test]
fn a_crash_shows_again_what_was_shown_in_that_order() {
    let store = Arc::new(Stalls::default());
    let create =
        CreateOptions { block_bytes: BLOCK, capacity_bytes: 1 << 30, kdf: KdfParams::TEST };
    let (open, shown) = recorded(&store, true);
    let mut volume = Volume::create(store.clone(), &passphrase(), create, open).expect("empty");
    volume.reserve(BLOCKS).expect("room");
    let write = |id| op(id, Action::Write(content(id)));
    volume.access((0..200).map(write).collect()).expect("memory");
    volume.commit().expect("memory");
    for round in 0..3 {
        volume.defer((0..40).map(|id| write(300 + 40 * round + id)).collect()).expect("memory");
        store.still.store(true, Relaxed);
        volume.defer((0..8).map(|id| write(600 + 8 * round + id)).collect()).expect("memory");
        let read = |id| op(id, Action::Read);
        volume.access((0..5).map(|id| read(10 * round + id)).collect()).expect("memory");
    }
    assert_shown_again(&store, &shown);
}
