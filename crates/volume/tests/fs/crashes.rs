//! What a crash, or a store that fails, leaves.

use super::*;

/// Other files' new data must not reach what a crash brings back, although the volume commits
/// blocks on its own between our commits.
#[test]
fn a_crash_keeps_committed_files_among_uncommitted_changes() {
    for seed in 0..20u64 {
        let disk = MemoryBlocks::new(4096, 20_000, 128 << 10);
        let fs = FileSystem::format(disk.boxed()).unwrap();
        let old = |i: usize| vec![i as u8 | 1; 200 + i * 37];
        for i in 0..200 {
            put(&fs, ROOT_INO, &format!("f{i}"), &old(i)).unwrap();
        }
        fs.commit().unwrap();
        disk.auto_commit(seed * 77 + 1, 2);
        for i in (0..200).filter(|i| i % 3 != seed as usize % 3) {
            fs.unlink(ROOT_INO, format!("f{i}").as_bytes()).unwrap();
            put(&fs, ROOT_INO, &format!("n{i}"), &vec![0xee; i * 61]).unwrap();
        }
        drop(fs);
        disk.crash();
        disk.auto_commit(1, 0);
        let fs = FileSystem::open(disk.boxed()).unwrap();
        assert_eq!(fs.usage().unwrap().files, 200);
        for i in 0..200 {
            let ino = fs.lookup(ROOT_INO, format!("f{i}").as_bytes()).unwrap().ino;
            assert!(get(&fs, ino) == old(i), "seed {seed} file {i}");
        }
        assert_clean(&fs);
    }
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
    let disk = MemoryBlocks::new(4096, 2_000, 1 << 20);
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
