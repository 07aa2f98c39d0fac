//! Where the log ends: what was synced is read, or it is said that it cannot be; what a crash left
//! is no damage.

use super::damage::{QUANTUM, long_turn, write, write_and_sync};
use super::lost::{Unreadable, inspect};
use super::model::content;
use super::{MemoryKeeper, create, open};
use oblivio_store::record::{CallKind, StoreEvent};
use oblivio_store::{Held, Log, MemoryStore, ReadAt, RecordStore, Slots, WriteAt};
use oblivio_volume::sequential::SequentialVolume;
use oblivio_volume::{BlockSpace, EngineVolume, Error, Result};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// A volume whose session did not end: some writes with a sync each, then some with one for all.
fn left_open(each: u64, together: u64) -> MemoryStore {
    let store = Arc::new(MemoryStore::new());
    let mut volume =
        create(store.clone(), long_turn(), &MemoryKeeper::default()).expect("a volume");
    (0..each).for_each(|id| write_and_sync(&mut volume, id, 7));
    (each..each + together).for_each(|id| write(&mut volume, id, 7));
    volume.commit().expect("works");
    drop(volume);
    store.snapshot()
}

/// On a computer that knows nothing of it, with these bytes of the log unreadable.
fn opened(store: &MemoryStore, bad: Range<u64>) -> Result<SequentialVolume> {
    let store = Unreadable::new(store.snapshot(), Some(("log", bad)));
    open(Arc::new(store), &MemoryKeeper::default())
}

/// It is refused because of this quantum.
fn names(refused: Result<SequentialVolume>, quantum: u64) {
    match refused {
        Ok(_) => panic!("quantum {quantum} is lost, and nobody says so"),
        Err(Error::Tampered(why)) => {
            assert!(why.contains(&format!("log: quantum {quantum} ")), "{why}");
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn what_cannot_be_read_of_the_log_is_no_end() {
    let (each, together) = (10, 9);
    let store = left_open(each, together);
    // Each sync has a quantum; the first one says whose session it is. Two writes share one.
    let quanta = each + together.div_ceil(2);
    for quantum in 0..quanta {
        let at = quantum * QUANTUM;
        names(opened(&store, at..at + QUANTUM), quantum);
        for page in [at, at + 4096] {
            let mut volume = opened(&store, page..page + 1).expect("it has parity");
            assert_eq!(volume.damaged().len(), 1, "quantum {quantum}");
            let left = content(&mut volume).expect("readable").blocks.len() as u64;
            assert_eq!(left, each + together, "quantum {quantum}");
        }
    }
    let mut volume = opened(&store, (quanta + 1) * QUANTUM..u64::MAX).expect("nothing is lost");
    assert_eq!(content(&mut volume).expect("readable").blocks.len() as u64, each + together);
}

#[test]
fn a_log_that_is_cut_is_no_end() {
    let store = left_open(10, 9);
    for quantum in 1..=10 {
        let cut = store.snapshot();
        cut.truncate("log", quantum * QUANTUM).expect("memory");
        names(opened(&cut, 0..0), quantum);
    }
}

/// Copies a page of the log.
fn put_page(from: &MemoryStore, to: &MemoryStore, at: u64) {
    let mut page = vec![0; 4096];
    from.read(&mut [ReadAt { object: "log", offset: at, buf: &mut page }]).expect("memory");
    to.write(&[WriteAt::new("log", at, &page)]).expect("memory");
}

/// A page of the newest quantum did not reach the disk: a crash explains that, unless this computer
/// knows that the quantum was synced.
#[test]
fn what_a_crash_tore_of_the_newest_quantum_is_no_damage() {
    let (store, memory) = (Arc::new(MemoryStore::new()), MemoryKeeper::default());
    let mut volume = create(store.clone(), long_turn(), &memory).expect("a volume");
    (0..6).for_each(|id| write_and_sync(&mut volume, id, 7));
    let before = store.snapshot();
    write_and_sync(&mut volume, 6, 7);
    drop(volume);
    for page in [0, 4096] {
        for (quantum, is_newest) in [(6, true), (4, false)] {
            let torn = store.snapshot();
            let at = quantum * QUANTUM + page;
            match is_newest {
                true => put_page(&before, &torn, at),
                false => torn.corrupt("log", at + 99, |byte| *byte ^= 1).expect("a byte"),
            }
            for (computer, knows) in [(MemoryKeeper::default(), false), (memory.twin(), true)] {
                let what = format!("page {page} of quantum {quantum}, known: {knows}");
                let left = Arc::new(torn.snapshot());
                let mut volume = open(left.clone(), &computer).expect("it has parity");
                let said = volume.damaged().len();
                assert_eq!(said, usize::from(!is_newest || knows), "{what}");
                assert_eq!(content(&mut volume).expect("readable").blocks.len(), 7, "{what}");
                volume.finish().expect("works");
                drop(volume);
                let mut volume = open(left, &computer).expect("it is whole");
                assert_eq!(inspect(&mut volume, &BTreeSet::new(), &what), [], "{what}");
                assert_eq!(volume.damaged(), [], "{what}");
            }
        }
    }
}

/// The only quantum that knows of the hole before it is damaged as well, and has parity.
#[test]
fn a_hole_is_found_by_what_parity_makes_again() {
    let store = left_open(9, 1);
    for page in [8 * QUANTUM, 8 * QUANTUM + 4096, 9 * QUANTUM] {
        store.corrupt("log", page + 99, |byte| *byte ^= 1).expect("a byte");
    }
    names(opened(&store, 0..0), 8);
}

/// The next write to the log makes a damaged page whole before anything else.
#[test]
fn a_page_is_healed_before_anything_is_added() {
    let store = left_open(10, 1);
    store.corrupt("log", 3 * QUANTUM + 99, |byte| *byte ^= 1).expect("a byte");
    let store = Arc::new(RecordStore::new(store));
    let mut volume = open(store.clone(), &MemoryKeeper::default()).expect("it has parity");
    assert_eq!(volume.damaged().len(), 1);
    store.take();
    let mut added = Vec::new();
    // As much as goes to the store without a sync.
    for write_number in 0..80 {
        write(&mut volume, write_number % 10, 8);
        added.extend(
            store.take().into_iter().filter(|it| it.op == CallKind::Write && &*it.object == "log"),
        );
    }
    let places: Vec<u64> = added.iter().map(|it| it.offset).collect();
    assert!(places.len() > 1 && places[0] == 3 * QUANTUM, "{places:?}");
}

/// What heals copies leaves the volume as the end of a session does: the next opening reads no map.
#[test]
fn a_check_that_heals_keeps_the_access_times() {
    let (store, memory) = (Arc::new(MemoryStore::new()), MemoryKeeper::default());
    let options = long_turn();
    let mut volume = create(store.clone(), options, &memory).expect("a volume");
    // Enough for flushes, so that there is a map on the disk.
    for turn in 0..9 {
        (0..150).for_each(|id| write(&mut volume, id, turn));
        volume.commit().expect("works");
    }
    volume.finish().expect("works");
    drop(volume);
    let reads = |store: &MemoryStore, computer: &MemoryKeeper| {
        let store = Arc::new(RecordStore::new(store.snapshot()));
        let volume = open(store.clone(), computer).expect("it opens");
        assert_eq!(volume.damaged(), []);
        let is_disk = |it: &&StoreEvent| it.op == CallKind::Read && &*it.object == "disk";
        store.take().iter().filter(is_disk).count()
    };
    assert_eq!(reads(&store, &memory.twin()), 0, "a clean end");
    let half = store.len("state").expect("memory").expect("it is there") / 2;
    for at in [99, half + 99] {
        store.corrupt("state-2", at, |byte| *byte ^= 1).expect("a byte");
    }
    for ends in [false, true] {
        let healed = Arc::new(store.snapshot());
        let computer = memory.twin();
        let mut volume = open(healed.clone(), &computer).expect("by the other copy");
        assert_eq!(volume.damaged().len(), 1);
        assert_eq!(inspect(&mut volume, &BTreeSet::new(), "healed"), []);
        if ends {
            volume.finish().expect("works");
        }
        drop(volume);
        assert_eq!(reads(&healed, &computer), 0, "ended: {ends}");
    }
}
