//! What stands for lost bytes whose places a salvage did not find: it reads as an error, whatever
//! happens to it and beside it.

use super::salvage::{filled, look, planned, salvage, salvaged, without};
use super::twins::written;
use super::*;
use oblivio_testkit::Dice;
use oblivio_volume::LostBytes;
use oblivio_volume::fs::{Salvage, Salvaged};

/// The volume without the first of its blocks whose loss takes places of these many bytes away.
fn without_places(disk: &MemoryBlocks, bytes: u64) -> MemoryBlocks {
    let lost = |report: &Salvaged| report.lost.iter().map(LostBytes::count).sum::<u64>();
    let mut damaged = written(disk).into_iter().skip(1).map(|copy| without(disk, &[copy]));
    let found = damaged.find(|damaged| {
        let report = planned(damaged).unwrap();
        lost(&report) >= bytes || !report.removed.is_empty() && lost(&report) > 0
    });
    found.expect("no block has places of files")
}

/// All that is lost stays lost for writes of a part of it, and for later sessions.
fn expect_lost(disk: &MemoryBlocks) {
    let fs = FileSystem::open(disk.boxed()).unwrap();
    let tree = look(&fs);
    let mut lost = 0;
    for (ino, thing) in &tree.things {
        for range in &thing.lost {
            let handle = fs.open_file(*ino).unwrap();
            for at in [range.start, range.end - 2] {
                let written = fs.write(handle, at, b"x");
                assert!(matches!(written, Err(Error::Lost(_))), "{ino}, {at}: {written:?}");
            }
            fs.close(handle).unwrap();
            lost += 1;
        }
    }
    assert!(lost > 0);
    drop(fs.into_blocks().unwrap());
    let fs = FileSystem::open(disk.boxed()).unwrap();
    assert_clean(&fs);
    for (ino, thing) in look(&fs).things {
        assert_eq!(thing.lost, tree.things[&ino].lost);
    }
}

/// Nothing but a table says which blocks stand for lost bytes. It may be lost as well.
#[test]
fn what_was_lost_stays_so_without_the_table_that_says_it() {
    let disk = without_places(&filled(4096, 60, 5), 1);
    salvage(&disk).unwrap();
    let before = look(&FileSystem::open(disk.boxed()).unwrap());
    assert!(before.things.values().any(|thing| !thing.lost.is_empty()));
    let mut harmless = 0;
    for copy in written(&disk).into_iter().skip(1) {
        let disk = without(&disk, &[copy]);
        harmless += u64::from(salvaged(&disk, &before).is_harmless());
    }
    assert!(harmless > 0, "that table among them");
}

/// A file that has most of a volume, and then the map of it is lost: the blocks that it had stand
/// for it. An empty file would be read as if it were whole.
#[test]
fn a_file_is_lost_byte_by_byte_where_most_blocks_exist() {
    let disk = MemoryBlocks::new(4096, 5_000, 1 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    let bytes = Dice::new(3).bytes(3_500 * 4096);
    put(&fs, ROOT_INO, "large", &bytes).unwrap();
    put(&fs, ROOT_INO, "small", b"a few bytes").unwrap();
    drop(fs.into_blocks().unwrap());
    let before = look(&FileSystem::open(disk.boxed()).unwrap());
    let disk = without_places(&disk, 3_500 * 4096);
    let report = salvaged(&disk, &before);
    let all = 0..3_500 * 4096;
    assert_eq!(report.lost, [LostBytes { what: "/large".into(), ranges: vec![all] }]);
    expect_lost(&disk);
}

/// Blocks are erased just before the end: wherever that is cut off, nothing of the file is read.
#[test]
fn a_salvage_that_is_cut_off_as_it_erases_can_be_done_again() {
    let disk = MemoryBlocks::new(1024, 5_000, 1 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    put(&fs, ROOT_INO, "large", &Dice::new(3).bytes(3_500 * 1024)).unwrap();
    put(&fs, ROOT_INO, "small", b"a few bytes").unwrap();
    drop(fs.into_blocks().unwrap());
    let before = look(&FileSystem::open(disk.boxed()).unwrap());
    let damaged = without_places(&disk, 3_500 * 1024);
    let whole = damaged.copy();
    let accesses = whole.counts().0;
    salvage(&whole).unwrap();
    let accesses = whole.counts().0 - accesses;
    let mut again = 0;
    for left in 0..8 {
        let disk = damaged.copy();
        disk.auto_commit(left + 1, left % 3);
        disk.fail_after(Some(accesses - left));
        drop(salvage(&disk));
        disk.fail_after(None);
        disk.auto_commit(1, 0);
        disk.crash();
        if Salvage::of(disk.boxed()).unwrap().is_needed() {
            salvaged(&disk, &before);
            again += 1;
        }
        let fs = FileSystem::open(disk.boxed()).unwrap();
        assert_clean(&fs);
        let ino = fs.resolve("/large").unwrap().ino;
        let all = 0..3_500 * 1024;
        assert_eq!(look(&fs).things[&ino].lost, [all]);
    }
    assert!(again > 0, "some were cut off");
}

/// What of a file may be lost is more than the volume has blocks: the file goes, by its name.
#[test]
fn a_file_that_cannot_be_noted_as_lost_is_removed() {
    let disk = MemoryBlocks::new(4096, 5_000, 1 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    let (_, handle) = open_new(&fs, "sparse");
    fs.write(handle, 1 << 30, &[7; 4096]).unwrap();
    fs.close(handle).unwrap();
    put(&fs, ROOT_INO, "small", &[1; 5000]).unwrap();
    drop(fs.into_blocks().unwrap());
    let before = look(&FileSystem::open(disk.boxed()).unwrap());
    let report = salvaged(&without_places(&disk, 1), &before);
    assert_eq!(report.removed, ["/sparse"]);
}

/// Where a space does not know what exists, a write of a part would make up the rest.
#[test]
fn no_write_makes_up_what_is_lost() {
    let whole = filled(4096, 60, 5);
    whole.be_vague();
    let before = look(&FileSystem::open(whole.boxed()).unwrap());
    let disk = without_places(&whole, 1);
    assert!(!salvaged(&disk, &before).lost.is_empty());
    expect_lost(&disk);
}
