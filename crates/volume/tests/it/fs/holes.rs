//! Punching holes, zeroing ranges, and finding data and holes.

use super::*;

fn all(fs: &FileSystem, handle: Handle) -> Vec<u8> {
    fs.read(handle, 0, 1 << 20).unwrap()
}

#[test]
fn a_hole_gives_whole_blocks_back_and_zeros_the_edges() {
    let (disk, fs) = fresh(2_000);
    let (ino, handle) = open_new(&fs, "f");
    let mut wanted = vec![7; 40_000];
    fs.write(handle, 0, &wanted).unwrap();
    fs.commit().unwrap();
    let before = fs.attr(ino).unwrap().blocks;
    let accesses = disk.counts().0;
    fs.punch(handle, 5_000, 20_000).unwrap();
    assert_eq!(disk.counts().0 - accesses, 1, "both edges together");
    wanted[5_000..25_000].fill(0);
    assert!(all(&fs, handle) == wanted);
    let attr = fs.attr(ino).unwrap();
    assert_eq!((attr.size, before - attr.blocks), (40_000, 4 * 8));
    fs.punch(handle, 30_000, 1 << 40).unwrap();
    wanted[30_000..].fill(0);
    assert!(all(&fs, handle) == wanted, "the tail too");
    assert_eq!(fs.attr(ino).unwrap().size, 40_000);
    assert_clean(&fs);
    let fs = crashed(&disk, fs);
    // Overwritten data is torn at most; whole blocks are restored.
    assert!(get(&fs, ino)[8192..24_576].iter().all(|&byte| byte == 7));
    assert_clean(&fs);
}

#[test]
fn small_shared_tails_are_punched_too() {
    let (_disk, fs) = fresh(2_000);
    let ino = put(&fs, ROOT_INO, "small", &[5; 1_000]).unwrap();
    put(&fs, ROOT_INO, "other", &[6; 1_000]).unwrap();
    fs.commit().unwrap();
    let handle = fs.open_file(ino).unwrap();
    fs.punch(handle, 100, 300).unwrap();
    let mut wanted = vec![5; 1_000];
    wanted[100..400].fill(0);
    assert_eq!(all(&fs, handle), wanted);
    fs.punch(handle, 0, 1_000).unwrap();
    assert_eq!(all(&fs, handle), vec![0; 1_000]);
    assert_eq!(fs.attr(ino).unwrap().blocks, 0);
    fs.commit().unwrap();
    let other = fs.lookup(ROOT_INO, b"other").unwrap().ino;
    assert_eq!(get(&fs, other), vec![6; 1_000]);
    assert_clean(&fs);
}

#[test]
fn a_zeroed_range_keeps_its_blocks_and_is_not_accessed() {
    let (disk, fs) = fresh(2_000);
    let (ino, handle) = open_new(&fs, "f");
    fs.write(handle, 0, &[7; 32_768]).unwrap();
    fs.commit().unwrap();
    let (before, accesses) = (fs.attr(ino).unwrap().blocks, disk.counts().0);
    fs.zero_range(handle, 4_096, 8_192, false).unwrap();
    let zeroed = fs.read(handle, 4_096, 8_192).unwrap();
    assert_eq!((zeroed, disk.counts().0), (vec![0; 8_192], accesses));
    assert_eq!(fs.attr(ino).unwrap().blocks, before);
    fs.write(handle, 5_000, b"x").unwrap();
    assert_eq!(fs.read(handle, 4_999, 3).unwrap(), b"\0x\0");
    fs.zero_range(handle, 30_000, 20_000, true).unwrap();
    assert_eq!(fs.attr(ino).unwrap().size, 32_768);
    fs.zero_range(handle, 30_000, 20_000, false).unwrap();
    assert_eq!(fs.attr(ino).unwrap().size, 50_000);
    assert_clean(&fs);
}

#[test]
fn data_and_holes_are_found() {
    use SeekWhence::{Data, Hole};
    let (_disk, fs) = fresh(2_000);
    let (_, handle) = open_new(&fs, "f");
    assert_eq!(fs.seek(handle, 0, Hole).unwrap(), None, "an empty file");
    fs.write(handle, 8_192, &[1; 4_096]).unwrap();
    fs.write(handle, 40_960, b"tail").unwrap();
    let seek = |at, whence| fs.seek(handle, at, whence).unwrap();
    assert_eq!((seek(0, Data), seek(0, Hole)), (Some(8_192), Some(0)));
    assert_eq!((seek(9_000, Data), seek(9_000, Hole)), (Some(9_000), Some(12_288)));
    assert_eq!((seek(12_288, Data), seek(40_961, Data)), (Some(40_960), Some(40_961)));
    assert_eq!((seek(40_960, Hole), seek(40_964, Hole)), (Some(40_964), None));
    assert_eq!(seek(40_964, Data), None);
    fs.allocate(handle, 16_384, 8_192, true).unwrap();
    assert_eq!(seek(16_384, Hole), Some(16_384), "what is set aside is a hole");
    fs.punch(handle, 40_000, 10_000).unwrap();
    assert_eq!(seek(12_288, Data), None);
    assert_eq!(seek(12_288, Hole), Some(12_288));
}
