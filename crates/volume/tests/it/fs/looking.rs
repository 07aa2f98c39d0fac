//! Sessions that change nothing write nothing.

use super::*;
use crate::common::disks::{open, sequential};
use oblivio_store::{Held, MemoryStore, ReadAt};
use std::sync::Arc;

/// Looks at everything, as `ls`, `get` and `check` do.
fn look(fs: &FileSystem, expected: &[(&str, &[u8])]) {
    let entries = fs.read_dir(ROOT_INO, None, 100).unwrap();
    let names: Vec<_> = expected.iter().map(|(name, _)| name.as_bytes().to_vec()).collect();
    assert_eq!(entries.iter().map(|it| it.name.clone()).collect::<Vec<_>>(), names);
    for (name, data) in expected {
        assert_eq!(&get(fs, fs.lookup(ROOT_INO, name.as_bytes()).unwrap().ino), data);
    }
    assert!(fs.lookup(ROOT_INO, b"none").is_err());
    assert_clean(fs);
    fs.commit().unwrap();
    fs.idle().unwrap();
}

#[test]
fn who_only_looks_changes_no_block() {
    let (disk, fs) = fresh(2_000);
    put(&fs, ROOT_INO, "a", &[1; 10_000]).unwrap();
    put(&fs, ROOT_INO, "b", &[2; 300]).unwrap();
    drop(fs.into_blocks().unwrap());
    let before = disk.changes();
    for _ in 0..3 {
        let fs = FileSystem::open(disk.boxed()).unwrap();
        look(&fs, &[("a", &[1; 10_000]), ("b", &[2; 300])]);
        drop(fs.into_blocks().unwrap());
        assert_eq!(disk.changes(), before);
    }
    let fs = FileSystem::open(disk.boxed()).unwrap();
    put(&fs, ROOT_INO, "c", &[3; 50]).unwrap();
    drop(fs.into_blocks().unwrap());
    assert!(disk.changes() > before);
    let fs = FileSystem::open(disk.boxed()).unwrap();
    look(&fs, &[("a", &[1; 10_000]), ("b", &[2; 300]), ("c", &[3; 50])]);
}

/// What a crash left is looked at, then written, then looked at.
#[test]
fn who_only_looks_after_a_crash_changes_no_block() {
    let (disk, fs) = fresh(2_000);
    put(&fs, ROOT_INO, "a", &[1; 10_000]).unwrap();
    fs.commit().unwrap();
    put(&fs, ROOT_INO, "lost", &[9; 5_000]).unwrap();
    drop(fs);
    disk.crash();
    // Blocks that nothing names are given back.
    drop(FileSystem::open(disk.boxed()).unwrap());
    let before = disk.changes();
    for _ in 0..2 {
        let fs = FileSystem::open(disk.boxed()).unwrap();
        look(&fs, &[("a", &[1; 10_000])]);
        drop(fs.into_blocks().unwrap());
        assert_eq!(disk.changes(), before);
    }
    for (at, name) in ["b", "c"].into_iter().enumerate() {
        let fs = FileSystem::open(disk.boxed()).unwrap();
        put(&fs, ROOT_INO, name, &[2; 7_000]).unwrap();
        drop(fs.into_blocks().unwrap());
        let all: [(&str, &[u8]); 3] = [("a", &[1; 10_000]), ("b", &[2; 7_000]), ("c", &[2; 7_000])];
        look(&FileSystem::open(disk.boxed()).unwrap(), &all[..at + 2]);
    }
}

/// Every byte in a store.
fn bytes(store: &MemoryStore) -> Vec<(String, Vec<u8>)> {
    let whole = |(object, len): (String, u64)| {
        let mut buf = vec![0; len as usize];
        store.read(&mut [ReadAt { object: &object, offset: 0, buf: &mut buf }]).unwrap();
        (object, buf)
    };
    store.list().unwrap().into_iter().map(whole).collect()
}

#[test]
fn who_only_looks_changes_no_byte_of_a_sequential_volume() {
    let store = Arc::new(sequential(2048, 20_000));
    let fs = FileSystem::format(open(store.clone()).unwrap()).unwrap();
    put(&fs, ROOT_INO, "a", &[1; 10_000]).unwrap();
    drop(fs.into_blocks().unwrap());
    for crash in [false, true] {
        if crash {
            let fs = FileSystem::open(open(store.clone()).unwrap()).unwrap();
            put(&fs, ROOT_INO, "b", &[2; 300]).unwrap();
            fs.commit().unwrap();
            drop(fs);
            // The next session flushes again what the log has, and leaves a state.
            drop(FileSystem::open(open(store.clone()).unwrap()).unwrap().into_blocks().unwrap());
        }
        let before = bytes(&store);
        let fs = FileSystem::open(open(store.clone()).unwrap()).unwrap();
        let all: [(&str, &[u8]); 2] = [("a", &[1; 10_000]), ("b", &[2; 300])];
        look(&fs, &all[..1 + usize::from(crash)]);
        drop(fs.into_blocks().unwrap());
        assert!(bytes(&store) == before, "after a crash: {crash}");
    }
}
