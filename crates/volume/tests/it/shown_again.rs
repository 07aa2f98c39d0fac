//! A session that dies: the next one shows the same paths in the same order, those of idle sweeps
//! among them.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::MemoryStore;
use oblivio_volume::{BlockSpace, CreateOptions, OpenOptions, Shown, ShownKind, Volume};
use std::sync::{Arc, Mutex};

const BYTES: usize = 4096;
const BLOCKS: u64 = 1200;

/// The leaves of each event, in order.
type Seen = Arc<Mutex<Vec<(ShownKind, Vec<u64>)>>>;

fn op(id: u64, action: Action) -> BlockOp {
    BlockOp { id: BlockId(id), action }
}

fn passphrase() -> Passphrase {
    Passphrase::new("shown again")
}

/// Options as of a mount, and what is shown; with `since_commit`, since the last commit.
fn recorded(since_commit: bool) -> (OpenOptions, Seen) {
    let seen = Seen::default();
    let shown = Arc::clone(&seen);
    let on_shown = move |event: &Shown| {
        let mut shown = shown.lock().expect("alone");
        if !event.leaves.is_empty() {
            shown.push((event.kind, event.leaves.clone()));
        }
        if since_commit && event.kind == ShownKind::Commit {
            shown.clear();
        }
    };
    let on_shown: Option<oblivio_volume::OnShown> = Some(Box::new(on_shown));
    let options = OpenOptions { memory_bytes: 64 << 20, short_pauses: true, ..Default::default() };
    (OpenOptions { on_shown, ..options }, seen)
}

/// A new volume with `BLOCKS` blocks.
fn filled(store: &Arc<MemoryStore>) -> (Volume, Seen) {
    let (open, seen) = recorded(true);
    let create =
        CreateOptions { block_bytes: BYTES, capacity_bytes: 1 << 30, kdf: KdfParams::TEST };
    let mut volume = Volume::create(store.clone(), &passphrase(), create, open).expect("empty");
    volume.reserve(BLOCKS).expect("room");
    let write = |id| op(id, Action::Write(vec![id as u8; BYTES]));
    volume.access((0..BLOCKS).map(write).collect()).expect("memory");
    volume.commit().expect("memory");
    (volume, seen)
}

/// A crash here first shows again what was shown since the last commit.
fn assert_shown_again(store: &Arc<MemoryStore>, seen: &Seen) {
    let shown = seen.lock().expect("alone").clone();
    let (open, again) = recorded(false);
    drop(Volume::open(Arc::new(store.snapshot()), &passphrase(), open).expect("sound"));
    let again = again.lock().expect("alone");
    assert!(shown.len() > 5, "{}", shown.len());
    assert_eq!(again[..shown.len()], shown);
}

#[test]
fn what_was_shown_is_shown_again_in_that_order() {
    let store = Arc::new(MemoryStore::new());
    let (mut volume, seen) = filled(&store);
    for round in 0..8 {
        let write = |id| op(id, Action::Write(vec![9; BYTES]));
        volume.defer((0..40).map(|id| write(300 + 40 * round + id)).collect()).expect("memory");
        let read = |id| op(id, Action::Read);
        volume.access((0..5).map(|id| read(10 * round + id)).collect()).expect("memory");
    }
    assert_shown_again(&store, &seen);
}

#[test]
fn an_idle_sweep_shows_at_most_32_paths_and_is_shown_again_where_it_was() {
    let store = Arc::new(MemoryStore::new());
    let (mut volume, seen) = filled(&store);
    volume.discard(&(100..BLOCKS).collect::<Vec<_>>()).expect("memory");
    volume.commit().expect("memory");
    let sweeps = || {
        let seen = seen.lock().expect("alone");
        let sweeps: Vec<_> = seen.iter().filter(|it| it.0 == ShownKind::Maintenance).collect();
        assert!(sweeps.iter().all(|(_, leaves)| leaves.len() <= 32));
        sweeps.len()
    };
    while sweeps() < 9 {
        assert!(volume.idle().expect("memory").is_some(), "the tree still shrinks");
    }
    volume.access(vec![op(7, Action::Read)]).expect("memory");
    volume.idle().expect("memory");
    assert_shown_again(&store, &seen);
    while volume.idle().expect("memory").is_some() {}
    assert!(volume.tree().expect("a tree").tree_info().size_class < BLOCKS / 4);
}
