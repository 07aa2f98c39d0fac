//! A disk's report of its extents: trimmed ranges are holes, on whichever level, and the question
//! shows nothing.

use super::{MemoryKeeper, create, open};
use oblivio_engine::sequential::SequentialConfig;
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::record::CallKind;
use oblivio_store::{MemoryStore, RecordStore, Store};
use oblivio_volume::disk::{Disk, DiskExtent};
use oblivio_volume::sequential::SequentialOptions;
use oblivio_volume::{BlockSpace, EngineVolume};
use std::sync::Arc;

const BLOCK: u64 = 512;
const BLOCKS: u64 = 600;

fn options(time_pages: bool) -> SequentialOptions {
    let options = SequentialOptions::new(BLOCK as usize, BLOCKS * BLOCK);
    let mut engine = SequentialConfig { queue_buckets: 2, bucket_blocks: 8, ..options.engine };
    if time_pages {
        engine = engine.map_on_disk(2);
    }
    SequentialOptions { engine, ..options }
}

/// Extents of whole blocks, merged.
fn told(disk: &Disk) -> Vec<(u64, bool)> {
    let (mut told, mut at) = (Vec::<(u64, bool)>::new(), 0);
    while at < BLOCKS * BLOCK {
        let extents = disk.extents(at, BLOCKS * BLOCK - at, 3).expect("inside");
        assert!(!extents.is_empty() && extents.len() <= 3);
        for DiskExtent { len, exists } in extents {
            match told.last_mut() {
                Some((before, same)) if *same == exists => *before += len / BLOCK,
                _ => told.push((len / BLOCK, exists)),
            }
            at += len;
        }
    }
    told
}

fn trimmed_ranges_are_holes(time_pages: bool) {
    let (store, memory) = (Arc::new(RecordStore::new(MemoryStore::new())), MemoryKeeper::default());
    let as_store = || Arc::clone(&store) as Arc<dyn Store>;
    let made = create(as_store(), options(time_pages), &memory).expect("a volume");
    let mut disk = Disk::format(Box::new(made), BLOCKS * BLOCK).expect("a disk");
    disk.write(0, &vec![7; (BLOCKS * BLOCK) as usize]).expect("it works");
    assert!(!disk.zeroes_fast(0, BLOCKS * BLOCK), "it costs what a write costs");
    disk.trim(100 * BLOCK, 50 * BLOCK).expect("it works");
    disk.write_zeroes(300 * BLOCK, 10 * BLOCK, false).expect("it works");
    disk.write(120 * BLOCK, &[1; BLOCK as usize]).expect("it works");
    let expected = vec![
        (100, true),
        (20, false),
        (1, true),
        (29, false),
        (150, true),
        (10, false),
        (290, true),
    ];
    // In the queue, then further and further down, then after another opening.
    for round in 0..40u64 {
        store.take();
        assert_eq!(told(&disk), expected, "round {round}");
        let seen = store.take();
        assert!(
            seen.iter().all(|event| event.op == CallKind::Read),
            "only reads, which nobody sees"
        );
        for block in 0..20 {
            let at = (round * 20 + block) % 90 * BLOCK;
            disk.write(at, &[round as u8; BLOCK as usize]).expect("it works");
        }
        disk.flush().expect("it works");
        if round % 13 == 12 {
            drop(disk.into_blocks().expect("a good end"));
            let opened = open(as_store(), &memory).expect("it opens");
            disk = Disk::open(Box::new(opened)).expect("the disk");
        }
    }
    let read = disk.read_many(&[(110 * BLOCK, BLOCK as usize)]).expect("it works");
    assert_eq!(read, [vec![0; BLOCK as usize]]);
}

#[test]
fn trimmed_ranges_are_holes_with_the_map_in_memory() {
    trimmed_ranges_are_holes(false);
}

#[test]
fn trimmed_ranges_are_holes_with_the_map_on_the_disk() {
    trimmed_ranges_are_holes(true);
}

/// A check says how many blocks it read: those that exist.
#[test]
fn what_was_never_written_is_not_counted_as_read() {
    let (store, memory) = (Arc::new(MemoryStore::new()), MemoryKeeper::default());
    let mut volume = create(store, options(false), &memory).expect("a volume");
    assert_eq!(volume.verify(&mut |_, _| {}).expect("sound"), 0);
    let write = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![1; BLOCK as usize]) };
    volume.access([3, 500, 7, 3].map(write).to_vec()).expect("works");
    volume.finish().expect("works");
    assert_eq!(volume.verify(&mut |_, _| {}).expect("sound"), 3);
}
