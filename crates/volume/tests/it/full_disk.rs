//! A store with little space: it ends in `Full`, reported in advance, and never in a failed commit.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{Held, Layer, MemoryStore, Result, Slots, StoreAnswer, StoreCall, StoreError};
use oblivio_testkit::campaign::at_least;
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO};
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::{BlockSpace, CreateOptions, Error, OpenOptions, Volume};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

const PAGE: u64 = 4096;

/// A store of limited size that counts its refusals. Discarded pages take no space.
struct Limited {
    disk: MemoryStore,
    holes: Mutex<BTreeSet<(String, u64)>>,
    size: AtomicU64,
    refused: AtomicU64,
    least_free: AtomicU64,
    /// Whether it fails to report its free space.
    silent: AtomicBool,
}

impl Limited {
    fn new(size: u64) -> Arc<Self> {
        let (size, least_free) = (AtomicU64::new(size), AtomicU64::new(u64::MAX));
        let (disk, holes) = (MemoryStore::new(), Mutex::default());
        let (refused, silent) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Self { disk, holes, size, refused, least_free, silent })
    }

    fn free(&self) -> Result<u64> {
        let used: u64 = self.disk.list()?.iter().map(|(_, len)| len).sum();
        let holes = self.holes.lock().expect("no panic").len() as u64 * PAGE;
        Ok((self.size.load(Relaxed) + holes).saturating_sub(used))
    }

    /// Whether there is space for a write, which fills the holes in its range.
    fn expect(&self, object: &str, offset: u64, len: usize) -> Result<()> {
        let end = offset + len as u64;
        let free = self.free()?;
        let mut grows = end.saturating_sub(self.disk.len(object)?.unwrap_or(0));
        let mut holes = self.holes.lock().expect("no panic");
        for page in offset / PAGE..end.div_ceil(PAGE) {
            grows += u64::from(holes.remove(&(object.to_owned(), page))) * PAGE;
        }
        self.least_free.fetch_min(free.saturating_sub(grows), Relaxed);
        if grows > free {
            self.refused.fetch_add(1, Relaxed);
            return Err(StoreError::Full);
        }
        Ok(())
    }
}

impl Layer for Limited {
    type Below = MemoryStore;

    fn below(&self) -> &Self::Below {
        &self.disk
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        if let Some(done) = call.in_parts(self) {
            return done;
        }
        match call {
            StoreCall::Write(writes) => {
                for write in *writes {
                    self.expect(write.object, write.offset, write.data.len())?;
                    self.disk.write(&[*write])?;
                }
                return Ok(StoreAnswer::Done);
            }
            StoreCall::Put(object, data, _) => self.expect(object, 0, data.len())?,
            StoreCall::Truncate(object, len) => {
                let (object, len) = (*object, *len);
                let stays =
                    |(name, page): &(String, u64)| name != object || (page + 1) * PAGE <= len;
                self.holes.lock().expect("no panic").retain(stays);
            }
            StoreCall::Discard(ranges) => {
                for &(object, offset, len) in *ranges {
                    let pages = offset.div_ceil(PAGE)..(offset + len) / PAGE;
                    let pages = pages.map(|page| (object.to_owned(), page));
                    self.holes.lock().expect("no panic").extend(pages);
                }
            }
            StoreCall::FreeBytes if self.silent.load(Relaxed) => {
                return Err(StoreError::io("disk", std::io::Error::other("it does not answer")));
            }
            StoreCall::FreeBytes => return self.free().map(|free| StoreAnswer::Number(Some(free))),
            _ => {}
        }
        call.on(&self.disk)
    }
}

const BLOCK: usize = 4096;

fn options(memory: usize) -> OpenOptions {
    OpenOptions { memory_bytes: memory, ..OpenOptions::default() }
}

fn secret() -> Passphrase {
    Passphrase::new("full")
}

fn create(store: &Arc<Limited>, memory: usize) -> Volume {
    let create =
        CreateOptions { block_bytes: BLOCK, capacity_bytes: 1 << 30, kdf: KdfParams::TEST };
    Volume::create(Arc::clone(store) as _, &secret(), create, options(memory)).expect("room for it")
}

/// The least size of a store in which `blocks` blocks may be added.
fn just_enough(blocks: u64, memory: usize) -> u64 {
    let store = Limited::new(u64::MAX >> 1);
    let volume = create(&store, memory);
    let (mut too_little, mut enough) = (0_u64, 1_u64 << 40);
    while enough - too_little > 4096 {
        let size = too_little.midpoint(enough);
        store.size.store(size, Relaxed);
        match volume.room().expect("known") {
            Some(room) if room >= blocks => enough = size,
            _ => too_little = size,
        }
    }
    enough
}

fn content(name: &str) -> Vec<u8> {
    let bytes = name.bytes().cycle();
    bytes.take(5_000 + name.len() * 37 + usize::from(name.as_bytes()[0]) * 300).collect()
}

/// Files until the file system is full; gives their names.
fn fill(fs: &FileSystem, names: &mut Vec<String>, round: usize) {
    for number in 0.. {
        let name = format!("{}-{round}-{number}", number * 7 % 100);
        let created = fs.create(ROOT_INO, name.as_bytes(), NewNode::default());
        let written = created.and_then(|(_, handle)| {
            let written = fs.write(handle, 0, &content(&name));
            fs.close(handle).and(written)
        });
        match written {
            Ok(()) => names.push(name),
            Err(Error::Full(_)) => {
                let there = fs.lookup(ROOT_INO, name.as_bytes()).is_ok();
                assert!(!there || fs.unlink(ROOT_INO, name.as_bytes()).is_ok());
                return;
            }
            Err(error) => panic!("{error}"),
        }
        if number % 64 == 0 {
            fs.commit().expect("room for what was accepted");
        }
    }
}

fn check(fs: &FileSystem, names: &[String]) {
    for name in names {
        let ino = fs.lookup(ROOT_INO, name.as_bytes()).expect("kept").ino;
        let handle = fs.open_file(ino).expect("a file");
        assert!(fs.read(handle, 0, 1 << 20).expect("read") == content(name), "{name}");
        fs.close(handle).expect("open");
    }
}

/// Fills a file system of `blocks` blocks, works on it when it is full, and opens it as after a
/// crash; three times. Gives the remaining files.
fn rounds(
    mut fs: FileSystem,
    blocks: u64,
    open: &dyn Fn() -> FileSystem,
) -> (FileSystem, Vec<String>) {
    let mut names = Vec::new();
    for round in 0..3 {
        fill(&fs, &mut names, round);
        fs.commit().expect("room for what was accepted");
        assert!(names.len() as u64 * 20_000 > blocks * BLOCK as u64 / 2, "{} files", names.len());
        for (number, name) in names.iter().enumerate() {
            let ino = fs.lookup(ROOT_INO, name.as_bytes()).expect("kept").ino;
            let handle = fs.open_file(ino).expect("a file");
            fs.write(handle, 0, &content(name)[..4096]).expect("no further room is needed");
            fs.close(handle).expect("open");
            if number % 50 == 0 {
                fs.commit().expect("room for what was accepted");
            }
        }
        fs.commit().expect("room for what was accepted");
        // As after a crash.
        drop(fs);
        fs = open();
        check(&fs, &names);
        for name in names.split_off(names.len() / 3 * (round + 1) / 2) {
            fs.unlink(ROOT_INO, name.as_bytes()).expect("deleting needs no room");
        }
        fs.commit().expect("room for what was accepted");
    }
    (fs, names)
}

/// Fills a store just large enough for some thousand blocks, and works on it for several commits.
fn to_the_limit(memory: usize) {
    let blocks = if at_least(10.0) { 8_000 } else { 3_000 };
    // Slots of this size do not begin at pages, so each hole keeps parts of pages.
    let size = just_enough(blocks, memory) + (2 << 20);
    let store = Limited::new(size);
    let fs = FileSystem::format(Box::new(create(&store, memory))).expect("room");
    let open = || {
        let volume = Volume::open(Arc::clone(&store), &secret(), options(memory));
        FileSystem::open(Box::new(volume.expect("room to replay"))).expect("there")
    };
    let (fs, names) = rounds(fs, blocks, &open);
    let free = store.least_free.load(Relaxed);
    eprintln!("{blocks} blocks, memory {memory}: {size} bytes, {free} never used");
    assert_eq!(store.refused.load(Relaxed), 0, "told in advance");
    drop(fs.into_blocks().expect("room for the end"));
    check(&open(), &names);
}

/// A sequential volume takes all its space when it is created. Either there is enough, or not;
/// later only the file system may be full.
#[test]
fn a_sequential_volume_is_used_up_to_its_capacity() {
    let blocks = 3_000;
    let create = SequentialOptions::new(BLOCK, blocks * BLOCK as u64);
    // With room for the header, which is replaced as a whole.
    let size = create.stored_bytes().expect("it can work") + (64 << 10);
    let make = |size| {
        let store = Limited::new(size);
        let (to, quiet) = (Arc::clone(&store) as _, &mut |_, _| {});
        let kdf = KdfParams::TEST;
        let volume = SequentialVolume::create(to, &secret(), kdf, create, options(0), quiet);
        (store, volume.map(Volume::from))
    };
    let refused = make(size / 2).1.err().expect("no space for it");
    assert!(matches!(refused, Error::Full(_) | Error::Store(StoreError::Full)), "{refused}");
    let (store, volume) = make(size);
    let fs = FileSystem::format(Box::new(volume.expect("room"))).expect("room");
    let open = || {
        let volume = Volume::open(Arc::clone(&store), &secret(), options(0));
        FileSystem::open(Box::new(volume.expect("room to replay"))).expect("there")
    };
    let (fs, names) = rounds(fs, blocks, &open);
    assert_eq!(store.refused.load(Relaxed), 0, "nothing grows");
    drop(fs.into_blocks().expect("room for the end"));
    check(&open(), &names);
}

#[test]
fn what_was_removed_makes_room_at_once() {
    // Holes keep parts of pages, as above.
    let store = Limited::new(just_enough(2_000, 8 << 20) + (2 << 20));
    let fs = FileSystem::format(Box::new(create(&store, 8 << 20))).expect("room");
    let mut names = Vec::new();
    for round in 0..3 {
        fill(&fs, &mut names, round);
        fs.commit().expect("room for what was accepted");
        for name in names.split_off(names.len() / 2) {
            fs.unlink(ROOT_INO, name.as_bytes()).expect("deleting needs no room");
        }
        let soon = fs.create(ROOT_INO, b"soon", NewNode::default());
        let (_, handle) = soon.expect("room again");
        fs.write(handle, 0, &content("soon")).expect("room again");
        fs.close(handle).expect("open");
        fs.unlink(ROOT_INO, b"soon").expect("deleting needs no room");
    }
    check(&fs, &names);
    assert_eq!(store.refused.load(Relaxed), 0, "told in advance");
}

/// As `df` shows: removed blocks count in both of its numbers at once, not in one of them a commit
/// later.
#[test]
fn what_was_removed_is_told_as_free_and_available_together() {
    for (size, room) in
        [(u64::MAX >> 1, "the capacity"), (just_enough(4_000, 8 << 20), "the store")]
    {
        let store = Limited::new(size);
        let fs = FileSystem::format(Box::new(create(&store, 8 << 20))).expect("room");
        let (_, handle) = fs.create(ROOT_INO, b"large", NewNode::default()).expect("room");
        fs.write(handle, 0, &vec![7; 2_000 * BLOCK]).expect("room");
        fs.close(handle).expect("open");
        fs.commit().expect("room for what was accepted");
        let before = fs.usage().expect("known");
        fs.unlink(ROOT_INO, b"large").expect("deleting needs no room");
        let at_once = fs.usage().expect("known");
        let unused = at_once.unused_blocks - before.unused_blocks;
        let free = at_once.free_blocks - before.free_blocks;
        assert!(unused >= 1_990, "{unused} blocks of 2,000, with {room} as the limit");
        // The available space can be set aside at once, which takes some for metadata.
        let offered = free <= unused && free * 100 >= unused * 95;
        assert!(offered, "{free} of {unused}, with {room} as the limit");
        fs.commit().expect("room for what was accepted");
        let after = fs.usage().expect("known");
        assert!(after.free_blocks.abs_diff(at_once.free_blocks) < 50, "as it is after a commit");
    }
}

#[test]
fn a_store_that_does_not_tell_what_is_free_is_not_given_up() {
    let store = Limited::new(1 << 30);
    let mut volume = create(&store, 8 << 20);
    store.silent.store(true, Relaxed);
    for round in 0..3_u8 {
        let write = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![round; BLOCK]) };
        volume.reserve(64).expect("addressable");
        volume.access((0..64).map(write).collect()).expect("room");
        volume.finish().expect("committed");
    }
    let read = volume.access(vec![BlockOp { id: BlockId(7), action: Action::Read }]);
    assert_eq!(read.expect("open"), [Some(vec![2; BLOCK])]);
}

#[test]
fn with_little_memory_a_store_is_used_up_to_its_limit() {
    to_the_limit(3 << 20);
}

#[test]
fn with_much_memory_a_store_is_used_up_to_its_limit() {
    to_the_limit(64 << 20);
}
