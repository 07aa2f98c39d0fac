//! A volume whose tree follows the live blocks, by one slot of each leaf at a time.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::tree::Shape;
use oblivio_engine::{Action, BlockId, BlockOp, Level};
use oblivio_store::{MemoryStore, Result, Store, pass_on};
use oblivio_volume::tree::TreeVolume;
use oblivio_volume::{BlockSpace, CreateOptions, OpenOptions, TreeInfo};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const BYTES: usize = 4096;
const BLOCKS: u64 = 2000;
const STEP: u64 = 50;

fn passphrase() -> Passphrase {
    Passphrase::new("correct horse")
}

fn open(store: &Arc<MemoryStore>) -> TreeVolume {
    let options = OpenOptions { memory_bytes: 1 << 20, ..OpenOptions::default() };
    TreeVolume::open(store.clone(), &passphrase(), options).expect("sound")
}

fn new_volume(store: &Arc<MemoryStore>) -> TreeVolume {
    let create =
        CreateOptions { block_bytes: BYTES, capacity_bytes: 64 << 20, kdf: KdfParams::TEST };
    let options = OpenOptions { memory_bytes: 1 << 20, ..OpenOptions::default() };
    TreeVolume::create(store.clone(), &passphrase(), create, options).expect("an empty store")
}

fn settle(volume: &mut TreeVolume) -> TreeInfo {
    volume.commit().expect("memory");
    while volume.idle().expect("memory").is_some() {}
    volume.tree_info()
}

fn check(volume: &mut TreeVolume, live: u64) {
    volume.verify(&mut |_, _| {}).expect("every bucket is the last version");
    let read = |id| BlockOp { id: BlockId(id), action: Action::Read };
    for first in (0..BLOCKS).step_by(200) {
        let answers = volume.access((first..first + 200).map(read).collect()).expect("sound");
        for (id, answer) in (first..).zip(answers) {
            assert_eq!(answer, (id < live).then(|| vec![id as u8; BYTES]), "block {id}");
        }
    }
}

/// A slow disk: it makes data durable soon only after enough requests.
#[derive(Default)]
struct Slow {
    disk: MemoryStore,
    left: AtomicU64,
    calls: AtomicU64,
}

impl Slow {
    fn count(&self) -> &MemoryStore {
        self.calls.fetch_add(1, Relaxed);
        &self.disk
    }
}

impl Store for Slow {
    pass_on!(self => self.count(); read write sync put truncate discard delete);
    pass_on!(self => self.disk; len list lock free_bytes);

    fn sync_soon(&self, _: &[&str], _: Duration) -> Result<bool> {
        let left = self.left.load(Relaxed);
        self.left.store(if left == 0 { 3 } else { left - 1 }, Relaxed);
        Ok(left == 1)
    }
}

/// An idle step makes nobody wait: while the disk is at work, it makes no further request.
#[test]
fn a_quiet_moment_waits_for_the_disk_without_keeping_anybody() {
    let store = Arc::new(Slow::default());
    let create =
        CreateOptions { block_bytes: BYTES, capacity_bytes: 64 << 20, kdf: KdfParams::TEST };
    let options = OpenOptions { memory_bytes: 1 << 20, ..OpenOptions::default() };
    let mut volume =
        TreeVolume::create(store.clone(), &passphrase(), create, options).expect("an empty store");
    let write = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![id as u8; BYTES]) };
    volume.reserve(BLOCKS).expect("room");
    (0..1000).for_each(|id| drop(volume.access(vec![write(id)]).expect("memory")));
    volume.discard(&(300..1000).collect::<Vec<_>>()).expect("memory");
    volume.commit().expect("memory");
    let (mut waited, mut worked) = (0, 0);
    loop {
        let (left, calls) = (store.left.load(Relaxed), store.calls.load(Relaxed));
        let next = volume.idle().expect("memory");
        let quiet = store.calls.load(Relaxed) == calls;
        match left {
            0 | 1 => worked += 1,
            _ => {
                assert!(quiet && next > Some(Duration::ZERO), "it goes on when the disk is done");
                waited += 1;
            }
        }
        if next.is_none() {
            break;
        }
    }
    assert!(waited > 10 && worked > 10, "{waited} {worked}");
    assert!(volume.tree_info().size_class < 1000 / 2);
    check(&mut volume, 300);
}

/// Filled and emptied in steps: beyond the smallest class between three eighths and half of the
/// slots are used, at any size. All data is there, also after another opening.
#[test]
fn the_tree_is_three_eighths_to_half_full() {
    let store = Arc::new(MemoryStore::new());
    let mut volume = new_volume(&store);
    volume.reserve(BLOCKS).expect("room");
    let write = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![id as u8; BYTES]) };
    let mut shapes = std::collections::BTreeSet::new();
    let mut look = |info: &TreeInfo| {
        let shape = Shape { depth: Level(info.depth), leaf_slots: info.leaf_slots };
        let slots = shape.slots(info.blocks_per_bucket);
        shapes.insert(shape);
        assert!(info.live_blocks * 2 <= slots + 4, "{info:?}");
        assert!(info.size_class == 64 || info.live_blocks * 8 >= slots * 3, "{info:?}");
        let full = info.stored_slots <= slots;
        assert!(full, "{} of {slots} slots are stored", info.stored_slots);
    };
    for first in (0..BLOCKS).step_by(STEP as usize) {
        volume.access((first..first + STEP).map(write).collect()).expect("room");
        look(&settle(&mut volume));
    }
    check(&mut volume, BLOCKS);
    let mut left = BLOCKS;
    while left > 100 {
        let gone: Vec<_> = (left - STEP..left).collect();
        volume.discard(&gone).expect("they exist");
        left -= STEP;
        look(&settle(&mut volume));
        if left.is_multiple_of(500) {
            volume.finish().expect("memory");
            drop(volume);
            volume = open(&store);
            check(&mut volume, left);
        }
    }
    assert!(shapes.len() >= 4 * 4, "{shapes:?}");
    // Leaves that changed their number of slots leave less behind than is worth cutting off.
    let info = settle(&mut volume);
    let objects = store.list().expect("memory");
    let current = format!("slab-{}", info.leaf_slots);
    for (object, len) in objects.iter().filter(|object| object.0.starts_with("slab-")) {
        assert!(*object == current || *len < 1 << 20, "{object} has {len} bytes, {info:?}");
    }
}
