//! What the rival shows to the storage, and that it keeps its content.

use super::clock::HOLDING;
use super::map::{Entry, Map};
use super::*;
use crate::sequential::area::BLOCK;
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::record::CallKind;
use oblivio_store::{Held, MemoryStore, RecordStore, Slots};
use oblivio_testkit::SplitMix64;
use oblivio_volume::{BlockSpace, Error};

const BLOCKS: u64 = 100;

/// Few entries a leaf and a tiny cache, to give little data many leaves.
const SMALL: Shape = Shape { fan_out: 7, step: 3, cached: 2 };

/// The map in memory, or on the disk with reads of either kind.
type Way = Option<(Shape, Reads)>;

fn ways() -> [(u64, Way); 5] {
    let (known, compared) = (Some((SMALL, Reads::Known)), Some((SMALL, Reads::Compared)));
    [(1, None), (3, None), (1, known), (1, compared), (3, compared)]
}

fn disk(store: Arc<dyn Store>, every: u64, way: Way) -> Box<dyn BlockSpace> {
    let areas = Areas { blocks: BLOCKS, every, reads: Reads::Known };
    match way {
        None => Box::new(DetWo::create(store, areas).expect("a disk")),
        Some((shape, reads)) => {
            let areas = Areas { reads, ..areas };
            Box::new(DetWoMap::create(store, areas, shape).expect("a disk"))
        }
    }
}

/// The storage's view of `writes` writes: places and objects, in order.
fn trace(every: u64, way: Way, writes: u64, seed: u64) -> Vec<(CallKind, String, u64, u64)> {
    let store = Arc::new(RecordStore::new(MemoryStore::new()));
    let mut disk = disk(store.clone(), every, way);
    let mut rng = SplitMix64::new(seed);
    for turn in 0..writes {
        let id = BlockId(if seed == 0 { 7 } else { rng.below(BLOCKS) });
        let action = match rng.below(8) {
            0 => Action::Remove,
            _ => Action::Write(vec![rng.next_u64() as u8; BLOCK]),
        };
        disk.access(vec![BlockOp { id, action }]).expect("memory");
        if seed > 0 && rng.below(5) == 0 {
            let id = BlockId(rng.below(BLOCKS));
            disk.access(vec![BlockOp { id, action: Action::Read }]).expect("memory");
        }
        if turn % 37 == 0 {
            disk.commit().expect("memory");
        }
    }
    disk.commit().expect("memory");
    let seen = store.take().into_iter();
    let writes = seen.filter(|event| matches!(event.op, CallKind::Write | CallKind::Sync));
    writes.map(|event| (event.op, event.object.to_string(), event.offset, event.len)).collect()
}

#[test]
fn what_is_written_where_says_nothing() {
    for (every, way) in ways() {
        let one = trace(every, way, 1000, 0);
        assert!(!one.is_empty());
        for seed in 1..4 {
            assert_eq!(trace(every, way, 1000, seed), one);
        }
    }
}

#[test]
fn two_blocks_are_written_for_each_or_four_for_three_and_as_many_for_a_leaf() {
    let blocks = |every, way, object| {
        let events = trace(every, way, 900, 1).into_iter();
        let written = events.filter(|event| event.1 == object).map(|event| event.3);
        written.sum::<u64>() / (BLOCK as u64 + 40)
    };
    for (every, way) in ways() {
        assert_eq!(blocks(every, way, "blocks"), if every == 1 { 1800 } else { 1200 });
        // A leaf after every third write.
        if way.is_some() {
            assert_eq!(blocks(every, way, "nodes"), if every == 1 { 600 } else { 400 });
        }
    }
    let usual = Some((Shape::default(), Reads::Known));
    assert_eq!(blocks(1, usual, "nodes"), 2 * (900 / 16));
}

/// Changes since a leaf's last turn wait in memory: at most a round's writes.
#[test]
fn what_waits_for_its_leaf_is_bounded() {
    let areas = Areas { blocks: BLOCKS, every: 1, reads: Reads::Known };
    let mut map = Nodes::create(Arc::new(MemoryStore::new()), areas, SMALL).expect("a map");
    let mut rng = SplitMix64::new(1);
    let most = BLOCKS.div_ceil(SMALL.fan_out) * SMALL.step;
    for written in 0..2000 {
        let place = (written % (HOLDING * BLOCKS)) as u32;
        let made = [(rng.below(BLOCKS), Entry { place, bit: 0 })];
        map.note(written, &made, &[]).expect("memory");
        assert!(map.waits() as u64 <= most);
    }
}

/// A place is indistinguishable from the same place a round of the holding area later.
#[test]
fn leaves_that_come_too_late_are_refused() {
    let areas = Areas { blocks: BLOCKS, every: 3, reads: Reads::Known };
    let made = DetWoMap::create(Arc::new(MemoryStore::new()), areas, SMALL);
    assert!(matches!(made, Err(Error::Invalid(_))));
}

#[test]
fn a_block_in_anothers_place_is_refused() {
    let store = Arc::new(MemoryStore::new());
    let mut disk = disk(store.clone(), 1, None);
    let write = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![id as u8; BLOCK]) };
    disk.access((0..BLOCKS).map(write).collect()).expect("memory");
    disk.commit().expect("memory");
    let mut bytes = vec![0; 2 * BLOCK];
    let at = |offset, buf| oblivio_store::ReadAt { object: "blocks", offset, buf };
    store.read(&mut [at(0, &mut bytes)]).expect("there");
    bytes.rotate_left(BLOCK);
    let write = oblivio_store::WriteAt::new("blocks", 0, &bytes);
    store.write(&[write]).expect("memory");
    let read = disk.access(vec![BlockOp { id: BlockId(1), action: Action::Read }]);
    assert!(matches!(read, Err(Error::Tampered(_))), "{read:?}");
}
