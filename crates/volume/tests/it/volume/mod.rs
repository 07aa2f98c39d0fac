//! Volumes against a plain model: round trips, a crash at every storage operation, and damage to
//! every stored object.

mod forks;
mod model;

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::MemoryStore;
use oblivio_volume::{BlockSpace, CreateOptions, Error, OpenOptions, Shown, Volume};
use std::sync::{Arc, Mutex};

const BYTES: usize = 256;

fn passphrase() -> Passphrase {
    Passphrase::new("correct horse")
}

fn small() -> CreateOptions {
    CreateOptions { block_bytes: BYTES, capacity_bytes: 1 << 20, kdf: KdfParams::TEST }
}

/// Little memory, so most buckets are read and written and not cached.
fn tight() -> OpenOptions {
    OpenOptions { memory_bytes: 64 << 10, ..OpenOptions::default() }
}

fn write(id: u64, fill: u8) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Write(vec![fill; BYTES]) }
}

fn read(id: u64) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Read }
}

fn created() -> MemoryStore {
    let store = Arc::new(MemoryStore::new());
    drop(Volume::create(store.clone(), &passphrase(), small(), tight()).expect("an empty store"));
    store.snapshot()
}

/// Buckets begin at pages if a page is small beside a bucket.
#[test]
fn large_buckets_begin_at_pages() {
    for (block_bytes, align) in [(4 << 10, 512), (16 << 10, 4096)] {
        let places = Arc::new(Mutex::new(Vec::<u64>::new()));
        let seen = Arc::clone(&places);
        let watch = move |shown: &Shown| seen.lock().expect("whole").extend(&shown.places_written);
        let open = OpenOptions {
            memory_bytes: 4 << 20,
            on_shown: Some(Box::new(watch)),
            ..OpenOptions::default()
        };
        let disk = Arc::new(MemoryStore::new());
        let create = CreateOptions { block_bytes, ..small() };
        let mut volume =
            Volume::create(disk.clone(), &passphrase(), create, open).expect("created");
        let fill = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![1; block_bytes]) };
        volume.reserve(64).expect("room");
        volume.access((0..64).map(fill).collect()).expect("served");
        volume.finish().expect("committed");
        let places = std::mem::take(&mut *places.lock().expect("whole"));
        assert!(places.len() > 20 && places.iter().all(|place| place % align == 0));
        assert_eq!(places.iter().any(|place| place % 4096 != 0), align == 512);
        drop(volume);
        let mut again = Volume::open(disk, &passphrase(), OpenOptions::default()).expect("opens");
        let answers = again.access((0..64).map(read).collect()).expect("served");
        assert!(answers.into_iter().all(|answer| answer == Some(vec![1; block_bytes])));
    }
}

#[test]
fn the_capacity_is_a_limit_and_not_a_reservation() {
    let store = Arc::new(MemoryStore::new());
    let huge = CreateOptions { capacity_bytes: 1 << 40, block_bytes: 4096, kdf: KdfParams::TEST };
    let open = OpenOptions { memory_bytes: 4 << 20, ..OpenOptions::default() };
    let mut volume = Volume::create(store, &passphrase(), huge, open).expect("empty");
    assert!(volume.info().expect("memory").bytes_stored < 16 << 20, "nothing is stored yet");
    assert!(matches!(volume.reserve((1 << 28) + 1), Err(Error::Full(_))));
    volume.reserve(100).expect("an earlier refusal closes nothing");
}

/// Writes after the commit in the same list are left to the next sync.
#[test]
fn a_commit_within_a_long_list_forgets_nothing() {
    const BLOCK: usize = 4096;
    let create =
        CreateOptions { block_bytes: BLOCK, capacity_bytes: 64 << 20, kdf: KdfParams::TEST };
    let open = || OpenOptions { memory_bytes: 8 << 20, ..OpenOptions::default() };
    let fill = |id: u64| vec![id as u8 | 1; BLOCK];
    for later in [false, true] {
        let store = Arc::new(MemoryStore::new());
        let mut volume =
            Volume::create(store.clone(), &passphrase(), create, open()).expect("empty");
        volume.reserve(2300).expect("within the capacity");
        let before = volume.known().epoch;
        let write = |id| BlockOp { id: BlockId(id), action: Action::Write(fill(id)) };
        let ops = (0..2300).map(write).collect();
        match later {
            true => volume.defer(ops).expect("sound"),
            false => drop(volume.access(ops).expect("sound")),
        }
        assert!(volume.known().epoch > before, "a commit was due within the list");
        volume.commit().expect("sound");
        // The process is gone, with all its deferred writes.
        drop(volume);
        let mut volume = Volume::open(store, &passphrase(), open()).expect("sound");
        let blocks = volume.access((0..2300).map(read).collect()).expect("sound");
        for (id, block) in (0..).zip(blocks) {
            assert!(block == Some(fill(id)), "block {id} is lost, later: {later}");
        }
    }
}
