//! The file system after a crash, or a failure of the store.

use super::*;
use crate::common::disks::{open, sequential};
use oblivio_testkit::CrashStore;
use oblivio_testkit::campaign::every;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Other files' new data must not reach a restored state, although the volume commits blocks on its
/// own between our commits.
#[test]
fn a_crash_keeps_committed_files_among_uncommitted_changes() {
    for seed in 0..20u64 {
        let disk = MemoryBlocks::new(4096, 20_000, 128 << 10);
        let auto_commit = || disk.auto_commit(seed * 77 + 1, 2);
        keeps_committed_files(&disk, seed as usize, auto_commit, || disk.auto_commit(1, 0));
    }
}

/// This one commits whenever a turn of its queue ends, and a crash keeps a random part of what came
/// after.
#[test]
fn a_crash_keeps_committed_files_on_a_sequential_volume() {
    for seed in 0..12 {
        let disk = SequentialDisk::new(4096, 20_000, seed);
        keeps_committed_files(&disk, seed as usize, || (), || ());
    }
}

fn keeps_committed_files(
    disk: &dyn TestDisk,
    seed: usize,
    before_changes: impl FnOnce(),
    after_crash: impl FnOnce(),
) {
    let fs = FileSystem::format(disk.boxed()).unwrap();
    let old = |i: usize| vec![i as u8 | 1; 200 + i * 37];
    for i in 0..200 {
        put(&fs, ROOT_INO, &format!("f{i}"), &old(i)).unwrap();
    }
    fs.commit().unwrap();
    before_changes();
    for i in (0..200).filter(|i| i % 3 != seed % 3) {
        fs.unlink(ROOT_INO, format!("f{i}").as_bytes()).unwrap();
        put(&fs, ROOT_INO, &format!("n{i}"), &vec![0xee; i * 61]).unwrap();
    }
    drop(fs);
    disk.crash();
    after_crash();
    let fs = FileSystem::open(disk.boxed()).unwrap();
    assert_eq!(fs.usage().unwrap().files, 200);
    for i in 0..200 {
        let ino = fs.lookup(ROOT_INO, format!("f{i}").as_bytes()).unwrap().ino;
        assert!(get(&fs, ino) == old(i), "seed {seed} file {i}");
    }
    assert_clean(&fs);
}

#[test]
fn a_failing_store_loses_nothing_that_was_committed() {
    for accesses in 0..12 {
        let disk = MemoryBlocks::new(4096, 4_000, 1 << 20);
        let fs = FileSystem::format(disk.boxed()).unwrap();
        put(&fs, ROOT_INO, "kept", &[1; 5000]).unwrap();
        fs.commit().unwrap();
        disk.fail_after(Some(accesses));
        let mut failed = false;
        for i in 0..20 {
            failed |= put(&fs, ROOT_INO, &format!("f{i}"), &[2; 9000]).is_err();
        }
        failed |= fs.commit().is_err();
        assert!(failed || accesses > 2);
        disk.fail_after(None);
        fs.commit().unwrap();
        assert_clean(&fs);
        drop(fs);
        disk.crash();
        let fs = FileSystem::open(disk.boxed()).unwrap();
        assert_eq!(get(&fs, fs.lookup(ROOT_INO, b"kept").unwrap().ino), [1; 5000]);
        assert_clean(&fs);
    }
}

#[test]
fn data_outlives_its_name_while_it_is_open() {
    outlives_its_name(&MemoryBlocks::new(4096, 2_000, 1 << 20));
    outlives_its_name(&SequentialDisk::new(4096, 2_000, 1));
}

fn outlives_its_name(disk: &dyn TestDisk) {
    let fs = FileSystem::format(disk.boxed()).unwrap();
    let (attr, handle) = fs.create(ROOT_INO, b"f", NewNode::default()).unwrap();
    fs.write(handle, 0, &[9; 10_000]).unwrap();
    fs.unlink(ROOT_INO, b"f").unwrap();
    assert_eq!(fs.attr(attr.ino).unwrap().nlink, 0);
    assert_eq!(fs.read(handle, 0, 20_000).unwrap(), vec![9; 10_000]);
    assert_clean(&fs);
    fs.commit().unwrap();
    drop(fs);
    disk.crash();
    let fs = FileSystem::open(disk.boxed()).unwrap();
    fs.commit().unwrap();
    assert_eq!(fs.usage().unwrap().data_blocks, 0, "lost with the crash");
    assert_clean(&fs);
}

/// The files of a directory, with their content.
type Files = BTreeMap<String, Vec<u8>>;

fn files(fs: &FileSystem) -> Files {
    let entries = fs.read_dir(ROOT_INO, None, usize::MAX).unwrap().into_iter();
    entries.map(|it| (String::from_utf8(it.name).unwrap(), get(fs, it.ino))).collect()
}

/// Rounds of changes, each with a commit at its end; `committed` is called after each that
/// returned.
fn rounds(fs: &FileSystem, committed: &mut dyn FnMut()) -> oblivio_volume::Result<()> {
    for round in 0..4u8 {
        for i in 0..12u8 {
            let data = vec![round ^ 0x5a; 300 + usize::from(i) * 700];
            put(fs, ROOT_INO, &format!("{round}-{i}"), &data)?;
        }
        for i in (0..12).filter(|i| round > 0 && i % 2 == 0) {
            fs.unlink(ROOT_INO, format!("{}-{i}", round - 1).as_bytes())?;
        }
        if round > 0 {
            let name = |what: &str| format!("{}-{what}", round - 1).into_bytes();
            fs.rename(ROOT_INO, &name("1"), ROOT_INO, &name("new"), RenameMode::Replace)?;
            let kept = fs.lookup(ROOT_INO, &name("3"))?.ino;
            let size = Some(if round == 2 { 20_000 } else { 1000 });
            fs.set_attr(kept, SetAttr { size, ..SetAttr::default() })?;
        }
        fs.commit()?;
        committed();
    }
    Ok(())
}

/// The power fails at each operation that the store sees.
#[test]
fn a_crash_at_any_operation_of_a_sequential_volume_leaves_the_last_commit() {
    let start = sequential(2048, 20_000);
    let (mut states, mut now) = (vec![Files::new()], 0);
    let whole = Arc::new(CrashStore::holding(&start));
    let fs = FileSystem::format(open(whole.clone()).unwrap()).unwrap();
    fs.commit().unwrap();
    let formatted = whole.operations();
    rounds(&fs, &mut || states.push(files(&fs))).unwrap();
    drop(fs);
    for cut in (formatted..=whole.operations()).step_by(every(3)) {
        let store = Arc::new(CrashStore::holding(&start));
        let fs = FileSystem::format(open(store.clone()).unwrap()).unwrap();
        fs.commit().unwrap();
        store.crash_after(cut);
        let mut done = 0;
        let ended = rounds(&fs, &mut || done += 1);
        assert_eq!(ended.is_ok(), cut == whole.operations());
        drop(fs);
        store.crash();
        let mut left: Vec<_> = store.extremes().into_iter().map(|(_, left)| left).collect();
        left.push(store.survivors(cut));
        for left in left {
            let fs = FileSystem::open(open(Arc::new(left)).unwrap()).unwrap();
            assert_clean(&fs);
            let found = files(&fs);
            let next = states.get(done + 1);
            assert!(found == states[done] || Some(&found) == next, "cut {cut}, {done} commits");
            now += 1;
        }
    }
    assert!(now > 0, "nothing was looked at");
}
