//! With padding every operation on files shows a power of two of batches, failed lookups and the
//! end of a session too.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::{MemoryStore, Store};
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO};
use oblivio_volume::{CreateOptions, Error, OpenOptions, Shown, ShownKind, Volume};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A page of the metadata's database, so a lookup reads one block after the other.
const BLOCK: usize = 4096;
const NAMES: u64 = 3000;

fn passphrase() -> Passphrase {
    Passphrase::new("pad")
}

/// A volume with a directory too large for its pages to be in memory at a lookup.
fn filled() -> MemoryStore {
    let store = Arc::new(MemoryStore::new());
    let create =
        CreateOptions { block_bytes: BLOCK, capacity_bytes: 64 << 20, kdf: KdfParams::TEST };
    let volume = Volume::create(store.clone(), &passphrase(), create, OpenOptions::default());
    let fs = FileSystem::format(Box::new(volume.expect("empty"))).expect("room");
    for number in 0..NAMES {
        let name = format!("{number:0>200}");
        fs.symlink(ROOT_INO, name.as_bytes(), b"target", NewNode::default()).expect("room");
    }
    drop(fs.into_blocks().expect("memory"));
    store.snapshot()
}

/// An open file system, and the batches that it has shown.
struct Session {
    fs: FileSystem,
    batches: Arc<AtomicU64>,
}

impl Session {
    fn open(disk: &MemoryStore, pad: bool) -> Self {
        let batches = Arc::new(AtomicU64::new(0));
        let counted = batches.clone();
        let on_shown = move |shown: &Shown| {
            counted.fetch_add(u64::from(shown.kind == ShownKind::Batch), Ordering::Relaxed);
        };
        let options = OpenOptions {
            pad,
            memory_bytes: 2 << 20,
            on_shown: Some(Box::new(on_shown)),
            ..OpenOptions::default()
        };
        let store: Arc<dyn Store> = Arc::new(disk.snapshot());
        let volume = Volume::open(store, &passphrase(), options).expect("sound");
        let session = Session { fs: FileSystem::open(Box::new(volume)).expect("sound"), batches };
        // The opening's reads are padded with the first operation.
        session.fs.attr(ROOT_INO).expect("there");
        session
    }

    /// Batches since the last call.
    fn shown(&self) -> u64 {
        self.batches.swap(0, Ordering::Relaxed)
    }

    /// Looks up missing names all over the directory; gives what each showed.
    fn misses(&self) -> Vec<u64> {
        self.shown();
        let miss = |number: u64| {
            let name = format!("{:0>200}!", number * 641 % NAMES);
            let found = self.fs.lookup(ROOT_INO, name.as_bytes());
            assert!(matches!(found, Err(Error::NotFound(_))), "{found:?}");
            self.shown()
        };
        (0..100).map(miss).collect()
    }

    /// Writes small files and ends; gives what the end showed.
    fn end(self, files: u64) -> u64 {
        for number in 0..files {
            let name = format!("new {number}");
            let made = self.fs.create(ROOT_INO, name.as_bytes(), NewNode::default());
            let (_, handle) = made.expect("room");
            self.fs.write(handle, 0, &[number as u8; 3 * BLOCK]).expect("room");
            self.fs.close(handle).expect("open");
        }
        self.shown();
        let batches = self.batches.clone();
        drop(self.fs.into_blocks().expect("memory"));
        batches.load(Ordering::Relaxed)
    }
}

fn is_padded(batches: u64) -> bool {
    batches == 0 || batches.is_power_of_two()
}

#[test]
fn lookups_that_find_nothing_are_padded() {
    let disk = filled();
    let plain = Session::open(&disk, false).misses();
    assert!(plain.iter().any(|&batches| !is_padded(batches)), "nothing to pad: {plain:?}");
    let padded = Session::open(&disk, true).misses();
    assert!(padded.iter().all(|&batches| is_padded(batches)), "{padded:?}");
    assert!(padded.iter().any(|&batches| batches > 1), "{padded:?}");
}

#[test]
fn the_end_of_a_session_is_padded() {
    let disk = filled();
    let ends: Vec<u64> = (0..12).map(|files| Session::open(&disk, true).end(files)).collect();
    assert!(ends.iter().all(|&batches| is_padded(batches)), "{ends:?}");
    assert!(ends.iter().any(|&batches| batches > 4), "{ends:?}");
}
