//! Blocks set aside can be written, whatever happens meanwhile.

use super::*;

/// Takes all remaining space, to the last block; gives the number of blocks.
fn fill(fs: &FileSystem, handle: Handle) -> u64 {
    let mut count = 0;
    loop {
        let size = fs.seek(handle, 0, SeekWhence::Hole).unwrap().unwrap_or(0);
        match fs.write(handle, size, &[1; 4_096]) {
            Ok(()) => count += 1,
            Err(Error::Full(_)) => return count,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn writes_to_what_is_set_aside_never_find_the_volume_full() {
    for keep_size in [false, true] {
        let (disk, fs) = fresh(2_500);
        let (ino, handle) = open_new(&fs, "f");
        fs.write(handle, 0, b"a tail before the range").unwrap();
        fs.allocate(handle, 10_000, 4_000_000, keep_size).unwrap();
        let (_, filler) = open_new(&fs, "filler");
        assert!(fill(&fs, filler) > 10);
        // Every second block, one by one, so that each run is split; then the rest.
        let mut order: Vec<u64> = (0..976).step_by(2).collect();
        order.extend((1..976).step_by(2));
        for (count, step) in order.into_iter().enumerate() {
            fs.write(handle, 10_000 + step * 4_096, &[9; 4_096]).unwrap();
            if count % 100 == 0 {
                fs.commit().unwrap();
                fill(&fs, filler);
            }
        }
        fs.commit().unwrap();
        let fs = crashed(&disk, fs);
        let data = get(&fs, ino);
        assert_eq!(data.len(), if keep_size { 10_000 + 976 * 4_096 } else { 4_010_000 });
        assert!(data.starts_with(b"a tail before the range\0"));
        assert!(data[10_000..10_000 + 976 * 4_096].iter().all(|&byte| byte == 9));
        assert_clean(&fs);
    }
}

#[test]
fn small_writes_below_and_in_what_is_set_aside() {
    let (_disk, fs) = fresh(2_000);
    let (_, handle) = open_new(&fs, "f");
    fs.allocate(handle, 100_000, 100_000, true).unwrap();
    fs.write(handle, 0, b"below").unwrap();
    let (_, filler) = open_new(&fs, "filler");
    fill(&fs, filler);
    for at in (100_000..200_000).step_by(997) {
        fs.write(handle, at, b"in").unwrap();
    }
    assert_eq!(fs.read(handle, 0, 7).unwrap(), b"below\0\0");
    assert_eq!(fs.read(handle, 100_996, 4).unwrap(), b"\0in\0");
    assert_clean(&fs);
}

#[test]
fn what_is_set_aside_reads_as_zeros_even_after_a_crash() {
    for seed in 1..20 {
        let (disk, fs) = fresh(2_000);
        // The blocks had other content before.
        put(&fs, ROOT_INO, "old", &[0xee; 200_000]).unwrap();
        fs.commit().unwrap();
        fs.unlink(ROOT_INO, b"old").unwrap();
        fs.commit().unwrap();
        let (ino, handle) = open_new(&fs, "f");
        fs.allocate(handle, 0, 100_000, false).unwrap();
        assert_eq!(fs.read(handle, 0, 200_000).unwrap(), vec![0; 100_000]);
        fs.commit().unwrap();
        disk.auto_commit(seed, 2);
        for at in (0..20).map(|step| step * 4_500) {
            fs.write(handle, at, &[3; 2_000]).unwrap();
        }
        let fs = crashed(&disk, fs);
        disk.auto_commit(1, 0);
        assert_eq!(get(&fs, ino), vec![0; 100_000], "seed {seed}");
        let handle = fs.open_file(ino).unwrap();
        fs.write(handle, 50_000, b"again").unwrap();
        let mut wanted = vec![0; 100_000];
        wanted[50_000..50_005].copy_from_slice(b"again");
        assert_eq!(fs.read(handle, 0, 200_000).unwrap(), wanted);
        assert_clean(&fs);
    }
}

#[test]
fn it_takes_space_and_gives_it_back() {
    let (disk, fs) = fresh(5_000);
    let empty = fs.usage().unwrap();
    let accesses = disk.counts().0;
    let (ino, handle) = open_new(&fs, "f");
    fs.allocate(handle, 0, 4_096_000, true).unwrap();
    assert_eq!(disk.counts().0, accesses, "nothing is accessed");
    let attr = fs.attr(ino).unwrap();
    assert_eq!((attr.size, attr.blocks), (0, 8_000));
    let usage = fs.usage().unwrap();
    assert_eq!(usage.data_blocks, 1_000);
    assert!(empty.free_blocks - usage.free_blocks >= 1_000);
    let before = fs.usage().unwrap();
    let much = fs.allocate(handle, 0, 1 << 50, false);
    assert!(matches!(much, Err(Error::Full(_))));
    assert_eq!(fs.usage().unwrap().data_blocks, before.data_blocks);
    assert_eq!(fs.attr(ino).unwrap().size, 0);
    assert!(matches!(fs.allocate(handle, 0, 0, false), Err(Error::Invalid(_))));
    assert!(matches!(fs.allocate(handle, 1 << 63, 9, false), Err(Error::TooLarge(_))));
    fs.set_attr(ino, SetAttr { size: Some(0), ..SetAttr::default() }).unwrap();
    fs.punch(handle, 0, 1 << 40).unwrap();
    fs.commit().unwrap();
    assert_eq!(fs.usage().unwrap().data_blocks, 0);
    assert_clean(&fs);
}
