//! A volume whose tree follows the live blocks, by one slot of each leaf at a time.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::tree::Shape;
use oblivio_engine::{Action, BlockId, BlockOp, Level};
use oblivio_store::{Held, MemoryStore};
use oblivio_volume::tree::{TreeInfo, TreeVolume};
use oblivio_volume::{BlockSpace, CreateOptions, EngineVolume, OpenOptions};
use std::sync::Arc;

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
