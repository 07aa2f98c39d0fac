//! An emptied volume shrinks when idle, a little in each step, and stays sound wherever the store
//! fails meanwhile.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{MemoryStore, Store};
use oblivio_testkit::campaign::{every, scaled};
use oblivio_testkit::fault::{Fault, FaultPlan, FaultStore, Repeat};
use oblivio_volume::{BlockSpace, CreateOptions, Error, OpenOptions, Shown, ShownKind, Volume};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Large, for speed, and so that more than one part waits.
const BLOCK: usize = 64 << 10;
/// For what does not depend on parts.
const SMALL: usize = 8 << 10;
/// Enough that more is cached until a commit than an idle step writes.
const BLOCKS: u64 = 2300;
const LEFT: u64 = 400;
/// About half of the interval between two commits.
const READ: u64 = 90;

fn op(id: u64, action: Action) -> BlockOp {
    BlockOp { id: BlockId(id), action }
}

fn passphrase() -> Passphrase {
    Passphrase::new("quiet")
}

fn create(block_bytes: usize) -> CreateOptions {
    CreateOptions { block_bytes, capacity_bytes: 1 << 30, kdf: KdfParams::TEST }
}

fn open() -> OpenOptions {
    OpenOptions { memory_bytes: 256 << 20, short_pauses: true, ..OpenOptions::default() }
}

/// Removes most of a volume, and reads some of it after the last commit.
fn emptied(volume: &mut Volume) {
    volume.reserve(BLOCKS).expect("room");
    let fill = |id| op(id, Action::Write(vec![id as u8; 1000]));
    volume.access((0..BLOCKS).map(fill).collect()).expect("room");
    volume.commit().expect("a store");
    volume.access((0..READ).map(|id| op(id, Action::Read)).collect()).expect("a store");
    volume.discard(&(LEFT..BLOCKS).collect::<Vec<_>>()).expect("no access");
}

/// Calls `idle` until there is nothing left to do.
fn rest(volume: &mut Volume) -> Result<(), Error> {
    while volume.idle()?.is_some() {}
    Ok(())
}

fn check(volume: &mut Volume) {
    let answers = volume.access((0..LEFT).map(|id| op(id, Action::Read)).collect()).expect("sound");
    for (id, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.expect("it was not removed")[..1000], vec![id as u8; 1000]);
    }
}

#[test]
fn a_commit_in_quiet_moments_is_written_in_parts() {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&shown);
    let on_shown = move |event: &Shown| seen.lock().expect("alone").push(event.clone());
    let open = OpenOptions { on_shown: Some(Box::new(on_shown)), ..open() };
    let store = Arc::new(MemoryStore::new());
    let mut volume =
        Volume::create(store.clone(), &passphrase(), create(BLOCK), open).expect("an empty store");
    emptied(&mut volume);
    shown.lock().expect("alone").clear();
    rest(&mut volume).expect("memory");
    let tree = volume.tree().expect("a tree").tree_info();
    assert!(tree.size_class < BLOCKS, "{tree:?}");
    let shown = std::mem::take(&mut *shown.lock().expect("alone"));
    let of = |kind| shown.iter().filter(move |event| event.kind == kind);
    assert!(of(ShownKind::Flush).count() > 0, "more than one part waits");
    for event in of(ShownKind::Flush) {
        assert!(event.leaves.is_empty() && event.reads == 0 && event.writes > 0);
    }
    assert!(of(ShownKind::Commit).count() >= 2, "before the sweep and after it");
    let first = of(ShownKind::Commit).next().expect("one");
    for event in of(ShownKind::Flush).chain([first]) {
        assert!(event.bytes_written <= 4 << 20, "{event:?}");
    }
    check(&mut volume);
    volume.finish().expect("memory");
    let volume = Volume::open(store, &passphrase(), OpenOptions::default());
    check(&mut volume.expect("sound"));
}

#[test]
fn quiet_moments_may_fail_anywhere() {
    let disk = Arc::new(MemoryStore::new());
    let mut volume =
        Volume::create(disk.clone(), &passphrase(), create(BLOCK), open()).expect("empty");
    emptied(&mut volume);
    volume.commit().expect("memory");
    drop(volume);
    let session = |at: Option<u64>| {
        let (left, plan) = (Arc::new(disk.snapshot()), FaultPlan::new());
        let store: Arc<dyn Store> = Arc::new(FaultStore::new(left.clone(), plan.clone()));
        let mut volume = Volume::open(store, &passphrase(), open()).expect("sound");
        // Replayed after a crash: reads wait in memory, and some writes are deferred.
        let patch = |id| op(id, Action::Patch { offset: 1000, bytes: vec![1; 9] });
        volume.access((0..READ).map(patch).collect()).expect("sound");
        volume.defer((0..20).map(patch).collect()).expect("sound");
        volume.commit().expect("sound");
        let begin = plan.operations();
        if let Some(at) = at {
            plan.fail_in(at, Fault { repeat: Repeat::FromThenOn, ..Fault::once() });
        }
        assert_eq!(rest(&mut volume).is_ok(), at.is_none());
        drop(volume);
        let volume = Volume::open(left, &passphrase(), open());
        let mut volume = volume.unwrap_or_else(|error| panic!("{at:?}: {error}"));
        let tree = volume.tree().expect("a tree").tree_info();
        assert!(tree.live_blocks <= tree.size_class, "{at:?}: {tree:?}");
        check(&mut volume);
        rest(&mut volume).expect("memory");
        check(&mut volume);
        plan.operations() - begin
    };
    let all = session(None);
    // Most are single buckets. Not up to the very end: another session may make a few fewer.
    let parts = scaled(3);
    for part in 0..parts {
        session(Some(all * part / parts));
    }
}

/// Removes most of a volume, ends the session, and makes the store fail after the `count`-th event
/// of a kind. Then opens it again, with its whole content.
fn fails_at(kind: ShownKind, count: u64, end: impl Fn(&mut Volume) -> Result<(), Error>) -> u64 {
    let (disk, plan) = (Arc::new(MemoryStore::new()), FaultPlan::new());
    let left = Arc::new(AtomicU64::new(u64::MAX));
    let on_shown = {
        let (left, plan) = (Arc::clone(&left), plan.clone());
        move |event: &Shown| {
            if event.kind == kind && left.fetch_sub(1, Ordering::Relaxed) == 1 {
                plan.fail_in(0, Fault { repeat: Repeat::FromThenOn, ..Fault::once() });
            }
        }
    };
    let store: Arc<dyn Store> = Arc::new(FaultStore::new(Arc::clone(&disk), plan));
    let options = OpenOptions { on_shown: Some(Box::new(on_shown)), ..open() };
    let mut volume = Volume::create(store, &passphrase(), create(SMALL), options).expect("empty");
    emptied(&mut volume);
    left.store(count, Ordering::Relaxed);
    assert!(end(&mut volume).is_err());
    drop(volume);
    let mut volume = Volume::open(disk, &passphrase(), open()).expect("sound");
    let tree = volume.tree().expect("a tree").tree_info();
    assert!(tree.live_blocks <= tree.size_class, "{tree:?}");
    check(&mut volume);
    tree.live_blocks
}

/// The tree is to shrink with the commit that records the removals, and that commit fails.
#[test]
fn what_was_not_removed_after_all_has_room() {
    fails_at(ShownKind::Commit, 1, rest);
    for count in [1, 5, 12].into_iter().step_by(every(2)) {
        fails_at(ShownKind::Maintenance, count, rest);
        let left = fails_at(ShownKind::Maintenance, count, |volume| volume.finish());
        assert!(left < BLOCKS / 2, "{left}: what was removed is so before the tree is swept");
    }
}
