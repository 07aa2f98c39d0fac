//! When callers wait for every operation, commits come between operations, at times that follow
//! from the amount of accesses alone.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{Hint, Layer, MemoryStore, Store, StoreAnswer, StoreCall};
use oblivio_testkit::campaign::scaled;
use oblivio_testkit::fault::{Fault, FaultPlan, FaultStore, Repeat};
use oblivio_volume::{BlockSpace, CreateOptions, Error, OpenOptions, Shown, ShownKind, Volume};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

const BLOCK: usize = 64 << 10;
const BLOCKS: u64 = 1200;
/// Blocks in an operation.
const SOME: u64 = 8;
const OPERATIONS: u64 = 300;

fn passphrase() -> Passphrase {
    Passphrase::new("between")
}

fn create() -> CreateOptions {
    CreateOptions { block_bytes: BLOCK, capacity_bytes: 1 << 30, kdf: KdfParams::TEST }
}

fn open() -> OpenOptions {
    OpenOptions { memory_bytes: 256 << 20, short_pauses: true, ..OpenOptions::default() }
}

fn op(id: u64, action: Action) -> BlockOp {
    BlockOp { id: BlockId(id), action }
}

fn filled(disk: Arc<dyn Store>, open: OpenOptions) -> Volume {
    let mut volume = Volume::create(disk, &passphrase(), create(), open).expect("empty");
    volume.reserve(BLOCKS).expect("room");
    let fill = |id| op(id, Action::Write(vec![id as u8; 1000]));
    volume.access((0..BLOCKS).map(fill).collect()).expect("room");
    volume.commit().expect("memory");
    volume
}

/// A server's work after its answers; says whether it committed.
fn between(volume: &mut Volume) -> Result<bool, Error> {
    let wanted = volume.wants_commit();
    if wanted {
        volume.commit()?;
        assert!(!volume.wants_commit(), "not once more");
    }
    Ok(wanted)
}

fn reads(first: u64) -> Vec<BlockOp> {
    (0..SOME).map(|at| op((first + at) % BLOCKS, Action::Read)).collect()
}

/// Operations that read from `first`; gives what each showed, and what followed it.
fn shown(first: impl Fn(u64) -> u64) -> Vec<(Vec<Shown>, Vec<Shown>)> {
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let on_shown = move |event: &Shown| seen.lock().expect("alone").push(event.clone());
    let open = OpenOptions { on_shown: Some(Box::new(on_shown)), ..open() };
    let mut volume = filled(Arc::new(MemoryStore::new()), open);
    let take = || std::mem::take(&mut *events.lock().expect("alone"));
    take();
    let operation = |number| {
        volume.access(reads(first(number))).expect("memory");
        let during = take();
        between(&mut volume).expect("memory");
        (during, take())
    };
    (0..OPERATIONS).map(operation).collect()
}

#[test]
fn no_commit_comes_in_the_midst_of_an_operation() {
    let shown = shown(|number| number * SOME);
    let commits = |events: &[Shown]| events.iter().filter(|e| e.kind == ShownKind::Commit).count();
    assert!(shown.iter().all(|(during, _)| commits(during) == 0));
    let between: usize = shown.iter().map(|(_, between)| commits(between)).sum();
    assert!(between >= 3, "{between}");
}

#[test]
fn what_is_accessed_makes_no_difference() {
    let cost = |event: &Shown| (event.kind, event.leaves.len(), event.scheduled);
    let costs = |shown: Vec<(Vec<Shown>, Vec<Shown>)>| -> Vec<_> {
        let one = |(during, between): (Vec<Shown>, Vec<Shown>)| {
            let of = |events: Vec<Shown>| events.iter().map(cost).collect::<Vec<_>>();
            (of(during), of(between))
        };
        shown.into_iter().map(one).collect()
    };
    assert!(costs(shown(|number| number * SOME)) == costs(shown(|_| 0)));
}

/// Remembers how much it may keep.
#[derive(Default)]
struct Keeps {
    disk: MemoryStore,
    bytes: AtomicUsize,
}

impl Layer for Keeps {
    type Below = MemoryStore;

    fn below(&self) -> &Self::Below {
        &self.disk
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> oblivio_store::Result<StoreAnswer> {
        if let StoreCall::Hint(Hint::Keep(bytes)) = call {
            self.bytes.store(*bytes, Relaxed);
        }
        call.on(&self.disk)
    }
}

/// The bytes that the store may keep after each operation, and whether a commit followed.
fn kept(first: impl Fn(u64) -> u64) -> Vec<(usize, bool)> {
    let disk = Arc::new(Keeps::default());
    let mut volume = filled(disk.clone(), open());
    let operation = |number| {
        volume.access(reads(first(number))).expect("memory");
        (disk.bytes.load(Relaxed), between(&mut volume).expect("memory"))
    };
    (0..OPERATIONS).map(operation).collect()
}

#[test]
fn less_and_less_is_kept_towards_a_commit_and_much_after_it() {
    const MOST: usize = 32 << 20; // an eighth of the memory
    let kept = kept(|number| number * SOME);
    assert!(kept.iter().filter(|(_, commit)| *commit).all(|(bytes, _)| *bytes < 4 << 20));
    let after = kept.windows(2).filter(|two| two[0].1).map(|two| two[1].0);
    assert!(after.clone().count() >= 3);
    assert!(after.into_iter().all(|bytes| bytes == MOST));
    // No operation waits for all of it.
    let less = kept.windows(2).map(|two| two[0].0.saturating_sub(two[1].0));
    assert!(less.clone().all(|less| less <= MOST / 4), "{:?}", less.max());
    assert_eq!(kept, self::kept(|_| 0), "whatever is accessed");
}

#[test]
fn what_was_committed_is_there_wherever_the_store_fails() {
    let disk = Arc::new(MemoryStore::new());
    drop(filled(disk.clone(), open()));
    let session = |at: Option<u64>| {
        let (left, plan) = (Arc::new(disk.snapshot()), FaultPlan::new());
        let store: Arc<dyn Store> = Arc::new(FaultStore::new(left.clone(), plan.clone()));
        let mut volume = Volume::open(store, &passphrase(), open()).expect("sound");
        let begin = plan.operations();
        if let Some(at) = at {
            plan.fail_in(at, Fault { repeat: Repeat::FromThenOn, ..Fault::once() });
        }
        // How far it came, and how far it is durable.
        let (mut tried, mut durable) = (0, 0);
        let mut run = || -> Result<(), Error> {
            for number in 0..60 {
                tried = number + 1;
                let patch = |id| op(id, Action::Patch { offset: 0, bytes: vec![number as u8; 9] });
                volume.defer((0..SOME).map(patch).collect())?;
                volume.access(reads(number * SOME))?;
                if between(&mut volume)? {
                    durable = tried;
                }
            }
            Ok(())
        };
        assert_eq!(run().is_ok(), at.is_none());
        drop(volume);
        let mut volume = Volume::open(left, &passphrase(), open())
            .unwrap_or_else(|error| panic!("{at:?}: {error}"));
        let all = volume.access((0..BLOCKS).map(|id| op(id, Action::Read)).collect());
        for (id, block) in (0..BLOCKS).zip(all.expect("sound")) {
            let block = block.expect("it was written");
            if id < SOME && block[..9] != [id as u8; 9] {
                let number = u64::from(block[0]) + 1;
                assert!((durable..=tried).contains(&number), "{at:?}: {durable} {number} {tried}");
                assert_eq!(block[..9], [block[0]; 9]);
            } else {
                assert!(id >= SOME || durable == 0, "{at:?}: {durable} were durable");
                assert_eq!(block[..9], [id as u8; 9]);
            }
            assert_eq!(block[9..1000], vec![id as u8; 991]);
        }
        plan.operations() - begin
    };
    let all = session(None);
    // Not up to the very end: paths are random, and another session may make a few requests fewer.
    let parts = scaled(3);
    for part in 0..parts {
        session(Some(all * part / parts));
    }
}
