use super::*;
use crate::Error;
use crate::core::LEAST_SYNC;
use crate::records::journal::{FRAME, JOURNAL_OBJECT, Journal, MOST, PAGE, size_class};
use oblivio_crypto::{SealRoot, Sealer, SeededEntropy, VolumeId};
use oblivio_store::record::CallKind;
use oblivio_store::{Held, MemoryStore, ReadAt, RecordStore, Slots, WriteAt};

#[test]
fn size_classes_are_pages_and_then_eighths() {
    assert_eq!(size_class(1), PAGE);
    assert_eq!(size_class(PAGE + 1), 2 * PAGE);
    assert_eq!(size_class(LEAST_SYNC), LEAST_SYNC);
    assert_eq!(size_class((1 << 20) + 1), (1 << 20) + (1 << 18));
    for bytes in (1..3_000_000).step_by(777) {
        let class = size_class(bytes);
        assert!(class >= bytes && class.is_multiple_of(PAGE));
        assert!(class < bytes + bytes / 4 + PAGE, "{bytes} -> {class}");
    }
}

const EPOCH: u64 = 9;

fn journal() -> Journal {
    let entropy = Box::new(SeededEntropy::new(1));
    let mut journal = Journal::new(VolumeId([1; 16]), Sealer::new(SealRoot::from_seed(1), entropy));
    journal.restart(EPOCH, &[2; 32]);
    journal
}

fn an_intent(seed: u64) -> Intent {
    Intent { seed, ids: (0..2000).map(BlockId).collect() }
}

/// A journal of `records` records, and where each begins.
fn written(records: u64) -> (MemoryStore, Vec<u64>) {
    let (store, mut journal, mut begins) = (MemoryStore::new(), journal(), Vec::new());
    for seed in 0..records {
        begins.push(journal.bytes());
        let record = intent(Act::default(), None, &an_intent(seed));
        journal.append(&store, record, 0).expect("memory");
    }
    (store, begins)
}

fn flip(store: &MemoryStore, at: u64) {
    let mut byte = [0];
    store.read(&mut [ReadAt { object: JOURNAL_OBJECT, offset: at, buf: &mut byte }]).expect("it");
    byte[0] ^= 1;
    store.write(&[WriteAt::new(JOURNAL_OBJECT, at, &byte)]).expect("memory");
}

#[test]
fn a_damaged_record_does_not_hide_later_ones() {
    for at in [0, 8, 100, 9000] {
        let (store, begins) = written(5);
        flip(&store, begins[2] + at);
        let refused = journal().load(&store, &mut LogCheck::default(), parse);
        assert!(matches!(&refused, Err(Error::Tampered(why)) if why.contains("before others")));
        // The last one may be torn.
        let (store, begins) = written(5);
        flip(&store, begins[4] + at);
        assert_eq!(
            journal().load(&store, &mut LogCheck::default(), parse).expect("it is the end").len(),
            4
        );
    }
}

/// Each page claims a record that reaches to the end.
#[test]
fn forged_frames_cost_no_more_than_the_journal_is_long() {
    let (store, begins) = written(3);
    let from = begins[2] + 2 * PAGE as u64;
    let end = 33 << 20;
    for at in (from..end).step_by(PAGE) {
        let left = end - at - FRAME as u64;
        let frame = [left.min(MOST as u64).to_le_bytes(), EPOCH.to_le_bytes()].concat();
        store.write(&[WriteAt::new(JOURNAL_OBJECT, at, &frame)]).expect("memory");
    }
    store.write(&[WriteAt::new(JOURNAL_OBJECT, end - 1, &[1])]).expect("memory");
    flip(&store, begins[2] + 40);
    let store = RecordStore::new(store);
    let refused = journal().load(&store, &mut LogCheck::default(), parse);
    assert!(matches!(&refused, Err(Error::Tampered(why)) if why.contains("do not open")));
    let reads = store.take().into_iter().filter(|event| event.op == CallKind::Read);
    let read: u64 = reads.map(|event| event.len).sum();
    assert!(read <= 2 * end, "{read} bytes were read of {end}");
}
