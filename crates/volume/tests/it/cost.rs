//! The cost of each file operation in accesses: the table of docs/leakage/tree.md, row by row, on a
//! volume.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::{MemoryStore, Store};
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO, RenameMode, SetAttr};
use oblivio_volume::{CreateOptions, OnShown, OpenOptions, Shown, ShownKind, Volume};
use std::sync::{Arc, Mutex};

const BLOCK: usize = 4096;
/// The smallest record of a sync: 16 KiB of writes and a page.
const RECORD: u64 = 20 << 10;

/// A file system on a volume, and what its store saw.
struct Rig {
    fs: FileSystem,
    store: Arc<MemoryStore>,
    shown: Arc<Mutex<Vec<Shown>>>,
}

/// Drawn paths, scheduled paths outside batches, records of syncs by size, commits.
#[derive(Debug, Default, PartialEq, Eq)]
struct Cost {
    accesses: usize,
    maintenance: usize,
    records: Vec<u64>,
    commits: usize,
}

fn node() -> NewNode {
    NewNode { mode: 0o644, uid: 0, gid: 0, mtime: Default::default() }
}

impl Rig {
    fn new() -> Self {
        let (store, shown) = (Arc::new(MemoryStore::new()), Arc::default());
        let create =
            CreateOptions { block_bytes: BLOCK, capacity_bytes: 1 << 30, kdf: KdfParams::TEST };
        let volume = Volume::create(store.clone(), &Passphrase::new("cost"), create, open(&shown))
            .expect("a volume");
        let fs = FileSystem::format(Box::new(volume)).expect("a file system");
        Rig { fs, store, shown }
    }

    /// Closes the volume and opens it again, with nothing in memory.
    fn again(self) -> Self {
        drop(self.fs.into_blocks().expect("the end"));
        let store: Arc<dyn Store> = self.store.clone();
        let volume = Volume::open(store, &Passphrase::new("cost"), open(&self.shown));
        let fs = FileSystem::open(Box::new(volume.expect("a volume"))).expect("a file system");
        Rig { fs, ..self }
    }

    /// The cost of `work`.
    fn cost<T>(&self, work: impl FnOnce(&FileSystem) -> T) -> (T, Cost) {
        self.shown.lock().expect("alone").clear();
        let done = work(&self.fs);
        let mut cost = Cost::default();
        for shown in self.shown.lock().expect("alone").iter() {
            cost.accesses += shown.leaves.len() - shown.scheduled;
            match shown.kind {
                ShownKind::Batch | ShownKind::Map | ShownKind::Flush | ShownKind::Rule => {}
                ShownKind::Maintenance | ShownKind::Repair => cost.maintenance += shown.scheduled,
                ShownKind::Sync => cost.records.push(shown.bytes_written),
                ShownKind::Commit => cost.commits += 1,
            }
        }
        (done, cost)
    }
}

fn open(shown: &Arc<Mutex<Vec<Shown>>>) -> OpenOptions {
    let shown = Arc::clone(shown);
    let on_shown: OnShown = Box::new(move |event| shown.lock().expect("alone").push(event.clone()));
    OpenOptions { memory_bytes: 64 << 20, on_shown: Some(on_shown), ..OpenOptions::default() }
}

#[test]
fn what_changes_costs_nothing_until_a_sync_and_then_a_record() {
    let rig = Rig::new();
    rig.fs.commit().expect("memory");
    let ((_, file), cost) = rig.cost(|fs| fs.create(ROOT_INO, b"file", node()).expect("a file"));
    assert_eq!(cost, Cost::default(), "create");
    let (_, cost) = rig.cost(|fs| fs.write(file, 0, &[7; 1000]).expect("room"));
    assert_eq!(cost, Cost::default(), "write");
    let (_, cost) = rig.cost(|fs| {
        fs.rename(ROOT_INO, b"file", ROOT_INO, b"name", RenameMode::Replace).expect("a name");
        let ino = fs.lookup(ROOT_INO, b"name").expect("it").ino;
        fs.set_attr(ino, SetAttr { mode: Some(0o600), ..SetAttr::default() }).expect("a mode");
    });
    assert_eq!(cost, Cost::default(), "rename and change");
    let (_, cost) = rig.cost(|fs| fs.commit().expect("memory"));
    assert_eq!((cost.accesses, cost.records.len(), cost.commits), (0, 1, 0), "sync: {cost:?}");
    let (_, cost) = rig.cost(|fs| fs.commit().expect("memory"));
    assert_eq!(cost, Cost::default(), "a sync of nothing");
    // Two changes of different kinds take a record of the same class.
    let sync = |work: &dyn Fn(&FileSystem)| {
        work(&rig.fs);
        rig.cost(|fs| fs.commit().expect("memory")).1
    };
    let written = sync(&|fs| fs.write(file, 500, &[1; 100]).expect("room"));
    let removed = sync(&|fs| fs.unlink(ROOT_INO, b"name").expect("a name"));
    assert_eq!(written.records.len(), 1);
    assert!(
        written.records[0] >= RECORD && removed.records[0] >= RECORD,
        "{written:?} {removed:?}"
    );
}

#[test]
fn reading_costs_an_access_for_each_block_and_writing_waits() {
    let rig = Rig::new();
    let (_, file) = rig.fs.create(ROOT_INO, b"file", node()).expect("a file");
    let data = vec![3; 40 * BLOCK];
    let (_, cost) = rig.cost(|fs| fs.write(file, 0, &data).expect("room"));
    assert_eq!((cost.accesses, cost.records.len()), (0, 0), "40 blocks wait");
    let (_, cost) = rig.cost(|fs| fs.commit().expect("memory"));
    assert_eq!((cost.accesses, cost.records.len()), (0, 1), "and a sync does not wait for them");
    let rig = rig.again();
    let ino = rig.fs.lookup(ROOT_INO, b"file").expect("it").ino;
    let file = rig.fs.open_file(ino).expect("it");
    rig.fs.read(file, 0, 1).expect("the file's place is known now");
    for (from, len, blocks) in [(4, 1, 1), (8, 8, 8), (10, 30, 30), (8, 8, 8)] {
        let (read, cost) =
            rig.cost(|fs| fs.read(file, from * BLOCK as u64, len * BLOCK).expect("data"));
        assert_eq!(read.len(), len * BLOCK);
        assert_eq!(cost, Cost { accesses: blocks, ..Cost::default() }, "{len} blocks at {from}");
    }
    let (_, cost) = rig.cost(|fs| {
        fs.lookup(ROOT_INO, b"file").expect("it");
        fs.read_dir(ROOT_INO, None, 10).expect("names")
    });
    assert_eq!(cost, Cost::default(), "metadata in memory");
}

#[test]
fn removing_costs_no_accesses_and_the_tree_follows() {
    let rig = Rig::new();
    let (_, file) = rig.fs.create(ROOT_INO, b"large", node()).expect("a file");
    rig.fs.write(file, 0, &vec![3; 600 * BLOCK]).expect("room");
    rig.fs.close(file).expect("a handle");
    let rig = rig.again();
    let (_, cost) = rig.cost(|fs| {
        fs.unlink(ROOT_INO, b"large").expect("a name");
    });
    assert!(cost.accesses < 20, "metadata alone, not 600 blocks: {cost:?}");
    let (_, cost) = rig.cost(|fs| fs.commit().expect("memory"));
    assert_eq!((cost.accesses, cost.records.len()), (0, 1));
    let before = rig.shown.lock().expect("alone").last().map(|shown| shown.depth);
    let rig = rig.again();
    let sweep: usize = {
        let shown = rig.shown.lock().expect("alone");
        shown.iter().filter(|shown| shown.kind == ShownKind::Maintenance).count()
    };
    assert!(sweep > 0, "rounds of maintenance at the end of the session");
    rig.fs.commit().expect("memory");
    let (_, _) = rig.cost(|fs| fs.read_dir(ROOT_INO, None, 1).expect("names"));
    let rig = rig.again();
    let after = rig.shown.lock().expect("alone").last().map(|shown| shown.depth);
    assert!(after < before, "{before:?} -> {after:?}");
}

/// The store learns only the class of a journal record: three significant bits beyond 32 KiB.
#[test]
fn records_have_size_classes() {
    let rig = Rig::new();
    let (_, file) = rig.fs.create(ROOT_INO, b"file", node()).expect("a file");
    rig.fs.commit().expect("memory");
    for blocks in [1usize, 3, 9, 20, 77, 150] {
        rig.fs.write(file, 0, &vec![5; blocks * BLOCK]).expect("room");
        let (_, cost) = rig.cost(|fs| fs.commit().expect("memory"));
        let [bytes] = cost.records[..] else { panic!("one record: {cost:?}") };
        let step = (bytes.next_power_of_two() / 8).max(4096);
        assert!(
            bytes.is_multiple_of(step) && bytes >= (blocks * BLOCK) as u64,
            "{blocks}: {bytes}"
        );
    }
}
