//! A whole volume whose state a key holder wrote, and the file system's root.

use crate::input::Input;
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::MemoryStore;
use oblivio_testkit::blocks::MemoryBlocks;
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO};
use oblivio_volume::fuzzing::{self, Edit};
use oblivio_volume::{BlockSpace, CreateOptions, OpenOptions, Result, Volume};
use std::sync::{Arc, OnceLock};

const BYTES: usize = 64;

fn passphrase() -> Passphrase {
    Passphrase::new("fuzz")
}

fn open(store: MemoryStore) -> Result<Volume> {
    let options = OpenOptions { memory_bytes: 64 << 10, ..OpenOptions::default() };
    Volume::open(Arc::new(store), &passphrase(), options)
}

fn op(id: u64, action: Action) -> BlockOp {
    BlockOp { id: BlockId(id), action }
}

/// A volume with some content, shared by the whole process.
fn base() -> &'static MemoryStore {
    static BASE: OnceLock<MemoryStore> = OnceLock::new();
    BASE.get_or_init(|| {
        let store = Arc::new(MemoryStore::new());
        let create =
            CreateOptions { block_bytes: BYTES, capacity_bytes: 8192, kdf: KdfParams::TEST };
        let options = OpenOptions { memory_bytes: 64 << 10, ..OpenOptions::default() };
        let mut volume =
            Volume::create(store.clone(), &passphrase(), create, options).expect("an empty store");
        volume.set_root(b"a root");
        let writes = (0..40).map(|id| op(id, Action::Write(vec![id as u8; BYTES])));
        volume.access(writes.collect()).expect("sound");
        volume.commit().expect("sound");
        store.snapshot()
    })
}

/// A volume whose state was changed and sealed again: refused, or it works.
pub fn volume_state(data: &[u8]) {
    let mut input = Input(data);
    let choice = input.byte();
    let part = if choice & 128 == 0 { Edit::Delta } else { Edit::Checkpoint };
    let store = base().snapshot();
    let edit = |plain: &mut Vec<u8>| {
        input.patch(plain);
    };
    fuzzing::edit_state(&store, &passphrase(), part, edit).expect("sound");
    let Ok(mut volume) = open(store) else { return };
    let _ = volume.verify(&mut |_, _| {});
    for id in 0..u64::from(choice % 8) {
        let ops = vec![op(id, Action::Read), op(id + 8, Action::Write(vec![1; BYTES]))];
        if volume.access(ops).is_err() {
            break;
        }
    }
    let _ = volume.reserve(100);
    let _ = volume.commit();
}

fn formatted() -> MemoryBlocks {
    let blocks = MemoryBlocks::new(4096, 1 << 12, 1 << 16);
    let fs = FileSystem::format(blocks.boxed()).expect("there is room");
    let (_, file) = fs.create(ROOT_INO, b"name", NewNode::default()).expect("there is room");
    fs.write(file, 0, b"content").expect("there is room");
    fs.close(file).expect("it is open");
    fs.into_blocks().expect("sound");
    blocks
}

/// The offset of the root's list of blocks.
const EXTENTS_AT: usize = 32;

/// A file system with a changed root record: refused, or it works.
///
/// The database's pages are left out: redb panics on some that are not where it put them, and a
/// volume returns only what it wrote. So a root with other blocks gets empty ones.
pub fn fs_root(data: &[u8]) {
    let mut input = Input(data);
    let raw = input.byte() == 0;
    let sound = formatted();
    let sound_root = sound.boxed().root().to_vec();
    let mut root = sound_root.clone();
    if raw {
        root = input.0.to_vec();
    } else {
        input.patch(&mut root);
    }
    root.truncate(oblivio_volume::ROOT_BYTES);
    let same_blocks = root.get(EXTENTS_AT..) == sound_root.get(EXTENTS_AT..);
    let blocks = if same_blocks { sound } else { MemoryBlocks::new(4096, 1 << 12, 1 << 16) };
    let mut space = blocks.boxed();
    space.set_root(&root);
    let Ok(fs) = FileSystem::open(space) else { return };
    let _ = fs.check();
    let _ = fs.mkdir(ROOT_INO, b"new", NewNode::default());
    let _ = fs.commit();
}
