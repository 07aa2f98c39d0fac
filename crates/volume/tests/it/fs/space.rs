//! What takes space, and what gives it back.

use super::*;
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{at_least, every};

#[test]
fn small_files_share_blocks_and_give_them_back() {
    let disk = MemoryBlocks::new(16_384, 20_000, 16 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    let empty = fs.usage().unwrap();
    let before = disk.counts().1;
    for i in 0..2_000 {
        put(&fs, ROOT_INO, &format!("f{i}"), &[i as u8; 4096]).unwrap();
    }
    fs.commit().unwrap();
    assert_eq!(fs.usage().unwrap().data_blocks, 500);
    assert!(disk.counts().1 - before < 650);
    for i in (0..2_000).filter(|i| i % 4 != 0) {
        fs.unlink(ROOT_INO, format!("f{i}").as_bytes()).unwrap();
    }
    fs.commit().unwrap();
    for i in 0..1_000 {
        put(&fs, ROOT_INO, &format!("g{i}"), &[7; 4096]).unwrap();
    }
    fs.commit().unwrap();
    assert!(fs.usage().unwrap().data_blocks <= 510, "holes are filled again");
    assert_clean(&fs);
    for entry in fs.read_dir(ROOT_INO, None, usize::MAX).unwrap() {
        fs.unlink(ROOT_INO, &entry.name).unwrap();
    }
    fs.commit().unwrap();
    let usage = fs.usage().unwrap();
    assert_eq!((usage.files, usage.data_blocks, usage.logical_bytes), (0, 0, 0));
    let fs = FileSystem::open(fs.into_blocks().unwrap()).unwrap();
    let usage = fs.usage().unwrap();
    // Each of them has a twin.
    assert!(usage.metadata_blocks <= empty.metadata_blocks + 48, "{usage:?}");
}

#[test]
fn sparse_files_take_no_space() {
    let disk = MemoryBlocks::new(4096, 4_000, 1 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    let ino = put(&fs, ROOT_INO, "sparse", b"begin").unwrap();
    let handle = fs.open_file(ino).unwrap();
    fs.write(handle, 1 << 40, b"end").unwrap();
    assert_eq!(fs.attr(ino).unwrap().size, (1 << 40) + 3);
    assert!(fs.attr(ino).unwrap().blocks <= 16);
    assert_eq!(fs.read(handle, 0, 8).unwrap(), b"begin\0\0\0");
    assert_eq!(fs.read(handle, 1 << 39, 5000).unwrap(), vec![0; 5000]);
    assert_eq!(fs.read(handle, (1 << 40) - 2, 9).unwrap(), b"\0\0end");
    fs.close(handle).unwrap();
    assert_clean(&fs);
}

#[test]
fn a_full_volume_stays_usable() {
    let disk = MemoryBlocks::new(4096, 1_500, 1 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    for round in 0..3 {
        let mut count = 0;
        let error = loop {
            let name = format!("f{count}");
            match put(&fs, ROOT_INO, &name, &vec![count as u8; 1000 + count * 50 % 9000]) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Full(_)), "round {round}: {error}");
        assert!(count > 200, "round {round}: only {count} files");
        assert_clean(&fs);
        fs.commit().unwrap();
        for i in 0..count {
            let ino = fs.lookup(ROOT_INO, format!("f{i}").as_bytes()).unwrap().ino;
            assert_eq!(get(&fs, ino), vec![i as u8; 1000 + i * 50 % 9000]);
        }
        for entry in fs.read_dir(ROOT_INO, None, usize::MAX).unwrap() {
            fs.unlink(ROOT_INO, &entry.name).unwrap();
        }
        assert_clean(&fs);
    }
    fs.commit().unwrap();
    assert_eq!(fs.usage().unwrap().data_blocks, 0);
}

#[test]
fn blocks_are_discarded_when_nothing_can_want_them_any_more() {
    let (disk, fs) = fresh(5_000);
    let empty = disk.present();
    let ino = put(&fs, ROOT_INO, "f", &[1; 400_000]).unwrap();
    fs.commit().unwrap();
    let with_file = disk.present();
    assert!(with_file >= empty + 98);
    fs.unlink(ROOT_INO, b"f").unwrap();
    assert_eq!(disk.present(), with_file, "a crash would bring the file back");
    let fs = crashed(&disk, fs);
    assert_eq!(get(&fs, ino), vec![1; 400_000]);
    fs.unlink(ROOT_INO, b"f").unwrap();
    fs.commit().unwrap();
    assert!(disk.present() <= fs.usage().unwrap().metadata_blocks);
    let fs = crashed(&disk, fs);
    assert_eq!(fs.usage().unwrap().data_blocks, 0);
    put(&fs, ROOT_INO, "g", &[2; 400_000]).unwrap();
    // Written and removed between two commits.
    fs.unlink(ROOT_INO, b"g").unwrap();
    put(&fs, ROOT_INO, "h", &[3; 4_096]).unwrap();
    fs.commit().unwrap();
    assert!(disk.present() <= fs.usage().unwrap().metadata_blocks + 1);
    assert_clean(&fs);
}

#[test]
fn free_blocks_are_what_can_be_written() {
    for held in [0, 40_960] {
        let (_disk, fs) = fresh(3_000);
        let (_, handle) = open_new(&fs, "f");
        if held > 0 {
            fs.allocate(handle, 0, held, true).unwrap();
        }
        fs.commit().unwrap();
        let free = fs.usage().unwrap().free_blocks;
        let mut written = 0;
        while fs.write(handle, held + written * 4_096, &[1; 4_096]).is_ok() {
            written += 1;
        }
        // Writing yields a few more blocks than setting aside at once.
        assert!(free <= written + 2 && written <= free + free / 20 + 40, "{written} of {free}");
        assert!(fs.usage().unwrap().free_blocks <= 40);
    }
}

#[test]
fn a_file_beyond_the_largest_size_is_told_apart() {
    let (_disk, fs) = fresh(2_000);
    let (ino, handle) = open_new(&fs, "f");
    let set = |size| fs.set_attr(ino, SetAttr { size: Some(size), ..SetAttr::default() });
    assert!(matches!(set(1 << 63), Err(Error::TooLarge(_))));
    assert!(matches!(fs.write(handle, u64::MAX, b"xx"), Err(Error::TooLarge(_))));
    assert!(matches!(fs.write(handle, (1 << 63) - 1, b"x"), Err(Error::TooLarge(_))));
    set((1 << 63) - 1).unwrap();
    fs.write(handle, (1 << 63) - 2, b"x").unwrap();
    assert_eq!(fs.seek(handle, 0, SeekWhence::Data).unwrap(), Some((1 << 63) - 4_096));
    fs.punch(handle, 0, (1 << 63) - 1).unwrap();
    assert_eq!(fs.seek(handle, 0, SeekWhence::Data).unwrap(), None);
    assert_clean(&fs);
}

/// Links that fill a volume with metadata alone; gives their number.
fn fill_with_names(fs: &FileSystem) -> u64 {
    fill_with_more_names(fs, 0)
}

/// Adds as many more, from a number on, as fit; gives the number behind the last.
fn fill_with_more_names(fs: &FileSystem, first: u64) -> u64 {
    for count in first.. {
        let name = format!("{count:0>200}");
        match fs.symlink(ROOT_INO, name.as_bytes(), &[b't'; 3000], NewNode::default()) {
            Ok(_) => {}
            Err(Error::Full(_)) => return count,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("a volume is not endless")
}

fn delete_names(fs: &FileSystem, names: impl Iterator<Item = u64>) {
    names.for_each(|number| fs.unlink(ROOT_INO, format!("{number:0>200}").as_bytes()).unwrap());
}

#[test]
fn a_volume_full_of_names_has_room_after_they_are_deleted() {
    let disk = MemoryBlocks::new(4096, 1_500, 1 << 20);
    let mut fs = FileSystem::format(disk.boxed()).unwrap();
    let large = vec![7; 2 << 20];
    for round in 0..2 {
        let count = fill_with_names(&fs);
        delete_names(&fs, (0..count).filter(|number| number % 8 != 0));
        let ino = put(&fs, ROOT_INO, "f", &large).expect("there is room again");
        assert_eq!(get(&fs, ino), large);
        assert_clean(&fs);
        let left = fs.read_dir(ROOT_INO, None, usize::MAX).unwrap().len() as u64;
        assert_eq!(left, count.div_ceil(8) + 1, "round {round}");
        delete_names(&fs, (0..count).step_by(8));
        fs.unlink(ROOT_INO, b"f").unwrap();
        if round % 2 == 1 {
            fs = FileSystem::open(fs.into_blocks().unwrap()).unwrap();
        }
    }
}

#[test]
fn crashes_while_metadata_shrinks_lose_nothing() {
    for cut in (0..).step_by(every(4)) {
        let disk = MemoryBlocks::new(4096, 1_500, 1 << 20);
        let fs = FileSystem::format(disk.boxed()).unwrap();
        let count = fill_with_names(&fs);
        delete_names(&fs, 0..count - 5);
        fs.commit().unwrap();
        disk.auto_commit(cut + 1, 3);
        disk.fail_after(Some(cut));
        let done = put(&fs, ROOT_INO, "f", &vec![7; 2 << 20]);
        disk.fail_after(None);
        disk.auto_commit(1, 0);
        let fs = crashed(&disk, fs);
        assert_clean(&fs);
        delete_names(&fs, count - 5..count);
        put(&fs, ROOT_INO, "g", &[8; 4096]).unwrap();
        assert_clean(&fs);
        if done.is_ok() {
            assert!(cut > 20, "metadata did not shrink in {cut} accesses");
            return;
        }
    }
}

/// Links with targets of many lengths, and now and then a file, until nothing fits any more.
fn fill_at_random(fs: &FileSystem, dice: &mut Dice, names: &mut Vec<String>, round: u64) {
    for count in 0.. {
        let name = format!("{round}-{count:0>150}");
        let full = match dice.below(20) {
            0 => put(fs, ROOT_INO, &name, &vec![3; dice.below(9000) as usize]).err(),
            _ => {
                let target = vec![b't'; 1 + dice.below(3500) as usize];
                fs.symlink(ROOT_INO, name.as_bytes(), &target, NewNode::default()).err()
            }
        };
        match full {
            None => names.push(name),
            Some(Error::Full(_)) => {
                // A file exists even if its content did not fit.
                names.extend(fs.lookup(ROOT_INO, name.as_bytes()).is_ok().then_some(name));
                return;
            }
            Some(error) => panic!("{error}"),
        }
        if dice.below(200) == 0 {
            fs.commit().unwrap();
        }
    }
}

#[test]
fn names_can_be_deleted_however_often_they_filled_the_volume() {
    let rounds = if at_least(10.0) { 6 } else { 4 };
    for (seed, block, blocks) in
        [(1, 4096, 1_000), (3, 4096, 2_900), (4, 512, 8_000), (5, 16_384, 700)]
    {
        let mut dice = Dice::new(seed);
        let disk = MemoryBlocks::new(block, blocks, 1 << 20);
        let mut fs = FileSystem::format(disk.boxed()).unwrap();
        let mut names = Vec::new();
        for round in 0..rounds {
            fill_at_random(&fs, &mut dice, &mut names, round);
            assert!(names.len() as u64 * 6000 > blocks * block as u64 / 2, "early, round {round}");
            for at in (1..names.len()).rev() {
                names.swap(at, dice.below(at as u64 + 1) as usize);
            }
            let kept = dice.below(names.len() as u64) as usize;
            for name in names.drain(kept..) {
                let deleted = fs.unlink(ROOT_INO, name.as_bytes());
                assert!(deleted.is_ok(), "seed {seed}, round {round}: {deleted:?}");
            }
            assert_clean(&fs);
            if round == 3 {
                fs = crashed(&disk, FileSystem::open(fs.into_blocks().unwrap()).unwrap());
            }
            for name in &names {
                fs.lookup(ROOT_INO, name.as_bytes()).unwrap();
            }
        }
        assert_eq!(fs.read_dir(ROOT_INO, None, usize::MAX).unwrap().len(), names.len());
    }
}

#[test]
fn what_was_deleted_is_told_as_free() {
    let disk = MemoryBlocks::new(4096, 1_500, 1 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    let fresh = fs.usage().unwrap().free_blocks;
    let count = fill_with_names(&fs);
    assert_eq!(fs.usage().unwrap().free_blocks, 0);
    fs.idle().unwrap();
    assert_eq!(fs.usage().unwrap().free_blocks, 0, "nothing was deleted");
    delete_names(&fs, (0..count).filter(|number| number % 8 != 0));
    let accesses = disk.counts();
    while fs.idle().unwrap().is_some() {}
    let free = fs.usage().unwrap().free_blocks;
    assert!(free > fresh / 2 && disk.counts() > accesses, "{free} of {fresh}");
    let accesses = disk.counts();
    fs.idle().unwrap();
    assert_eq!(disk.counts(), accesses, "once is enough");
    assert_clean(&fs);
    // And at the end of a session that was never idle.
    let more = fill_with_more_names(&fs, count);
    delete_names(&fs, count..more);
    let fs = FileSystem::open(fs.into_blocks().unwrap()).unwrap();
    assert!(fs.usage().unwrap().free_blocks.abs_diff(free) < 80, "{:?}", fs.usage().unwrap());
    assert_clean(&fs);
}

/// A volume without the reserve for deletions refuses some of them, but nothing else happens.
#[test]
fn what_metadata_has_no_block_for_is_as_if_it_had_never_begun() {
    let disk = MemoryBlocks::new(4096, 1_500, 1 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    put(&fs, ROOT_INO, "kept", &[5; 6000]).unwrap();
    let count = fill_with_names(&fs);
    delete_names(&fs, (0..count).step_by(2));
    // Closed without free pages.
    drop(fs.into_blocks().unwrap());
    let mut refused = 0;
    for spare in [0, 1, 3, 9, 40] {
        disk.set_capacity(disk.end() + spare);
        let fs = FileSystem::open(disk.boxed()).unwrap();
        let kept = get(&fs, fs.lookup(ROOT_INO, b"kept").unwrap().ino);
        assert_eq!(kept, vec![5; 6000]);
        let mut names = fs.read_dir(ROOT_INO, None, usize::MAX).unwrap();
        names.retain(|entry| entry.name != b"kept");
        for entry in names.iter().step_by(3).take(40) {
            let deleted = fs.unlink(ROOT_INO, &entry.name);
            let there = fs.lookup(ROOT_INO, &entry.name).is_ok();
            assert!(matches!((&deleted, there), (Ok(()), false) | (Err(Error::Full(_)), true)));
            refused += u64::from(there);
            assert!(matches!(put(&fs, ROOT_INO, "new", b"new"), Err(Error::Full(_))));
        }
        assert!(names.iter().skip(1).step_by(3).all(|e| fs.lookup(ROOT_INO, &e.name).is_ok()));
        drop(fs);
        disk.crash();
    }
    assert!(refused > 0, "there was room for all");
    disk.set_capacity(1_500);
    let fs = FileSystem::open(disk.boxed()).unwrap();
    let names = fs.read_dir(ROOT_INO, None, usize::MAX).unwrap();
    assert!(names.len() as u64 <= count + 1);
    names.iter().for_each(|entry| fs.unlink(ROOT_INO, &entry.name).unwrap());
    assert_clean(&fs);
}

/// What was promised can be written, also in parts and with commits in between, in which metadata
/// may grow. At each capacity another number of blocks is left in the end.
#[test]
fn promised_room_is_there_after_commits() {
    const PIECE: usize = 128 << 10;
    for (capacity, parts) in (300..332).flat_map(|capacity| [(capacity, 2), (capacity, 32)]) {
        let disk = MemoryBlocks::new(16_384, capacity, 4 << 20);
        let fs = FileSystem::format(disk.boxed()).unwrap();
        fs.commit().unwrap();
        let ino = put(&fs, ROOT_INO, "f", b"").unwrap();
        let handle = fs.open_file(ino).unwrap();
        let (mut end, len) = (0, PIECE / parts);
        while fs.expect_room(PIECE as u64).is_ok() {
            for part in 0..parts {
                let written = fs.write(handle, end, &vec![part as u8; len]);
                written.unwrap_or_else(|error| panic!("{capacity} blocks, {parts} parts: {error}"));
                end += len as u64;
            }
        }
        assert!(end > 200 * 16_384, "{end} bytes of {capacity} blocks");
        fs.close(handle).unwrap();
        assert_clean(&fs);
    }
}
