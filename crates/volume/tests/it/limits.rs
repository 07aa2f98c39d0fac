//! The declared limit of a tree volume: the header alone changes it, whichever header is found.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::{Held, MemoryStore, Objects, PutMode, ReadAt};
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO};
use oblivio_volume::{
    CreateOptions, Error, HEADER_OBJECT, HEADER_OBJECTS, OpenOptions, Volume, read_header,
};
use std::sync::Arc;

const BLOCK: usize = 4096;
const MEMORY: usize = 64 << 20;

fn secret() -> Passphrase {
    Passphrase::new("limit")
}

fn options() -> OpenOptions {
    OpenOptions { memory_bytes: MEMORY, ..OpenOptions::default() }
}

fn create(store: &Arc<MemoryStore>, capacity_bytes: u64) -> FileSystem {
    let create = CreateOptions { block_bytes: BLOCK, capacity_bytes, kdf: KdfParams::TEST };
    let volume = Volume::create(Arc::clone(store) as _, &secret(), create, options());
    FileSystem::format(Box::new(volume.expect("made"))).expect("an empty file system")
}

fn open(store: &Arc<MemoryStore>) -> FileSystem {
    let volume = Volume::open(Arc::clone(store), &secret(), options());
    FileSystem::open(Box::new(volume.expect("opened"))).expect("a file system")
}

fn put(fs: &FileSystem, name: &str, bytes: usize) -> oblivio_volume::Result<()> {
    let (_, handle) = fs.create(ROOT_INO, name.as_bytes(), NewNode::default())?;
    let written = fs.write(handle, 0, &content(name, bytes));
    fs.close(handle).and(written)
}

fn content(name: &str, bytes: usize) -> Vec<u8> {
    name.bytes().cycle().take(bytes).collect()
}

fn expect(fs: &FileSystem, name: &str, bytes: usize) {
    let ino = fs.lookup(ROOT_INO, name.as_bytes()).expect("kept").ino;
    let handle = fs.open_file(ino).expect("a file");
    assert!(fs.read(handle, 0, bytes + 1).expect("read") == content(name, bytes), "{name}");
    fs.close(handle).expect("open");
}

fn header(store: &MemoryStore) -> Vec<u8> {
    let len = store.len(HEADER_OBJECT).expect("a store").expect("a header");
    let mut bytes = vec![0; len as usize];
    store.read(&mut [ReadAt { object: HEADER_OBJECT, offset: 0, buf: &mut bytes }]).expect("read");
    bytes
}

fn put_back(store: &MemoryStore, header: &[u8]) {
    for object in HEADER_OBJECTS {
        store.put(object, header, PutMode::Replace).expect("written");
    }
}

/// A copy of everything but the header.
fn copy(store: &MemoryStore) -> Arc<MemoryStore> {
    let copy = MemoryStore::new();
    for (name, len) in store.list().expect("a store") {
        let mut bytes = vec![0; len as usize];
        store.read(&mut [ReadAt { object: &name, offset: 0, buf: &mut bytes }]).expect("read");
        copy.put(&name, &bytes, PutMode::Replace).expect("written");
    }
    Arc::new(copy)
}

fn recursion(store: &Arc<MemoryStore>) -> u64 {
    let volume = Volume::open(Arc::clone(store), &secret(), options()).expect("opened");
    volume.info().expect("known").report.number("recursion_levels").expect("a tree")
}

#[test]
fn a_limit_is_raised_and_lowered_without_moving_anything() {
    let store = Arc::new(MemoryStore::new());
    let fs = create(&store, 8 << 20);
    put(&fs, "first", 4 << 20).expect("room");
    assert!(matches!(put(&fs, "second", 6 << 20), Err(Error::Full(_))));
    fs.unlink(ROOT_INO, b"second").expect("it was begun");
    fs.commit().expect("committed");
    let slab = || -> Vec<_> {
        let objects = store.list().expect("a store");
        objects.into_iter().filter(|(name, _)| name.starts_with("slab")).collect()
    };
    let before = slab();
    fs.set_capacity((64 << 20) / BLOCK as u64).expect("a higher limit");
    assert_eq!(slab(), before);
    put(&fs, "second", 6 << 20).expect("room now");
    drop(fs.into_blocks().expect("closed"));
    assert_eq!(read_header(&*store).expect("a header").capacity_bytes, 64 << 20);
    let fs = open(&store);
    let least = fs.least_capacity().expect("open");
    assert!(matches!(fs.set_capacity(least - 1), Err(Error::Invalid(_))));
    fs.set_capacity(least + 8).expect("a lower limit");
    expect(&fs, "first", 4 << 20);
    expect(&fs, "second", 6 << 20);
    assert!(matches!(put(&fs, "third", 1 << 20), Err(Error::Full(_))));
    drop(fs.into_blocks().expect("closed"));
    let fs = open(&store);
    assert!(matches!(put(&fs, "fourth", 1 << 20), Err(Error::Full(_))));
    expect(&fs, "second", 6 << 20);
    assert_eq!(fs.check().expect("read").problems, Vec::<String>::new());
}

/// A crash leaves the old header or the new one, and a store may restore any of them. Each opens
/// with each past state, and all data is there.
#[test]
fn every_header_opens_every_state() {
    let store = Arc::new(MemoryStore::new());
    let fs = create(&store, 4 << 20);
    put(&fs, "first", 1 << 20).expect("room");
    drop(fs.into_blocks().expect("closed"));
    let (small, before) = (header(&store), copy(&store));
    let fs = open(&store);
    fs.set_capacity((128 << 20) / BLOCK as u64).expect("a higher limit");
    let large = header(&store);
    put(&fs, "second", 10 << 20).expect("room");
    fs.commit().expect("committed");
    // As after a crash: the growth is in the journal or in the state.
    drop(fs);
    let crashed = copy(&store);
    let fs = open(&store);
    for name in ["a", "b", "c"] {
        put(&fs, name, 1 << 20).expect("room");
        fs.unlink(ROOT_INO, name.as_bytes()).expect("there");
    }
    fs.set_capacity(fs.least_capacity().expect("open") + 64).expect("a lower limit");
    let lowered = header(&store);
    drop(fs.into_blocks().expect("closed"));
    for (state, second) in [(before, false), (crashed, true), (copy(&store), true)] {
        for header in [&small, &large, &lowered] {
            let state = copy(&state);
            put_back(&state, header);
            let fs = open(&state);
            expect(&fs, "first", 1 << 20);
            assert_eq!(fs.lookup(ROOT_INO, b"second").is_ok(), second);
            if second {
                expect(&fs, "second", 10 << 20);
            }
            match put(&fs, "third", 2 << 20) {
                Ok(()) => expect(&fs, "third", 2 << 20),
                Err(error) => {
                    assert!(matches!(error, Error::Full(_)) && second, "{error}");
                    assert_ne!(header, &large);
                }
            }
            if second {
                fs.unlink(ROOT_INO, b"second").expect("removing needs no room");
                fs.commit().expect("committed");
                put(&fs, "fourth", 1 << 20).expect("there is room again");
            }
            assert_eq!(fs.check().expect("read").problems, Vec::<String>::new());
            drop(fs.into_blocks().expect("closed"));
            expect(&open(&state), "first", 1 << 20);
        }
    }
}

#[test]
fn the_map_keeps_its_levels_of_recursion() {
    // The whole map in memory, far beyond the size at which a new volume would recurse.
    let store = Arc::new(MemoryStore::new());
    let fs = create(&store, 1 << 30);
    put(&fs, "first", 1 << 20).expect("room");
    fs.set_capacity(1 << 26).expect("256 GiB");
    assert!(matches!(fs.set_capacity(1 << 38), Err(Error::Invalid(_))), "a map of 16 GiB");
    put(&fs, "second", 1 << 20).expect("room");
    drop(fs.into_blocks().expect("closed"));
    assert_eq!(recursion(&store), 1);
    expect(&open(&store), "second", 1 << 20);
    // A recursive one stays so, however little it may hold.
    let store = Arc::new(MemoryStore::new());
    let fs = create(&store, 256 << 30);
    put(&fs, "first", 1 << 20).expect("room");
    fs.set_capacity(fs.least_capacity().expect("open") + 300).expect("a lower limit");
    put(&fs, "second", 1 << 20).expect("room");
    drop(fs.into_blocks().expect("closed"));
    assert_eq!(recursion(&store), 2);
    let fs = open(&store);
    expect(&fs, "first", 1 << 20);
    expect(&fs, "second", 1 << 20);
}

#[test]
fn a_header_with_another_limit_is_authenticated() {
    let store = Arc::new(MemoryStore::new());
    let fs = create(&store, 1 << 30);
    fs.set_capacity(1 << 20).expect("a higher limit");
    drop(fs.into_blocks().expect("closed"));
    let mut forged = header(&store);
    // The capacity is the first eight bytes with this value.
    let at = forged.windows(8).position(|eight| eight == (1u64 << 20).to_le_bytes());
    forged[at.expect("it is there") + 2] ^= 1;
    put_back(&store, &forged);
    let opened = Volume::open(Arc::clone(&store), &secret(), options());
    assert!(matches!(opened.err(), Some(Error::Tampered(_))));
    let mut volume = {
        let other = Arc::new(MemoryStore::new());
        let fs = create(&other, 1 << 30);
        fs.into_blocks().expect("closed")
    };
    assert!(volume.can_resize() && volume.set_capacity(1 << 39).is_err());
}
