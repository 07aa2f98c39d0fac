//! What the store sees follows from numbers, not from what is asked.

use super::seen::{public, rounds, seen, twice};
use super::{BLOCKS, create, open, read, write};
use oblivio_engine::BlockOp;
use oblivio_store::{MemoryStore, RecordStore};
use oblivio_testkit::Dice;
use oblivio_volume::BlockSpace;
use std::sync::Arc;

/// Which blocks a run is for; it gets the number of the operation.
type Picks = Box<dyn FnMut(u64) -> u64>;

fn picks() -> [(&'static str, Picks); 4] {
    let mut dice = Dice::new(5);
    [
        ("uniform", Box::new(move |_| dice.below(BLOCKS))),
        ("one block", Box::new(|_| 7)),
        ("scanning", Box::new(|n| n % BLOCKS)),
        ("eight blocks", Box::new(|n| n * 5 % 8)),
    ]
}

/// Some reads, then a write, and so on; now and then a sync. The written blocks are distinct:
/// deferred writes to one block are carried out as one, as the contract says.
fn run(pick: &mut Picks, stride: u64) -> Vec<super::seen::Seen> {
    let store = Arc::new(RecordStore::new(MemoryStore::new()));
    let mut volume = create(store.clone(), 3);
    let mut n = 0;
    for round in 0..40u64 {
        let reads = (0..1 + round % 7).map(|_| {
            n += 1;
            read(pick(n))
        });
        let reads: Vec<BlockOp> = reads.collect();
        volume.access(reads).expect("memory");
        volume.access(vec![write(round * stride % BLOCKS, round as u8)]).expect("memory");
        if round % 3 == 2 {
            volume.set_root(&[round as u8; 9]);
            volume.commit().expect("memory");
        }
    }
    volume.finish().expect("memory");
    drop(volume);
    seen(store.take())
}

#[test]
fn equally_long_runs_look_the_same_but_for_partitions() {
    let mut expected: Option<Vec<String>> = None;
    for ((name, mut pick), stride) in picks().into_iter().zip([1, 3, 5, 201]) {
        let seen = run(&mut pick, stride);
        let public = public(&seen);
        assert!(public.iter().any(|it| it.starts_with("merge of")), "{name}: no merge");
        assert!(public.iter().filter(|it| it.contains("commit")).count() > 2, "{name}: no commit");
        let same = expected.get_or_insert_with(|| public.clone());
        assert_eq!(same, &public, "{name} looks different");
    }
}

#[test]
fn no_slot_is_read_twice_in_the_life_of_its_table() {
    for (name, mut pick) in picks() {
        assert_eq!(twice(&run(&mut pick, 3)), 0, "{name}");
    }
}

/// The partitions that are shown are uniform, whatever is asked for: with one block as with many.
/// Here each partition is known from where its tables lie.
#[test]
fn rounds_read_as_many_slots_for_one_block_as_for_many() {
    let mut means = Vec::new();
    for (_, mut pick) in picks() {
        let store = Arc::new(RecordStore::new(MemoryStore::new()));
        let mut volume = create(store.clone(), 9);
        for id in 0..BLOCKS {
            volume.access(vec![write(id, 1)]).expect("memory");
        }
        volume.finish().expect("memory");
        store.take();
        const ASKS: u64 = 2000;
        for n in 0..ASKS {
            volume.access(vec![read(pick(n))]).expect("memory");
        }
        let slots: usize = rounds(&seen(store.take())).iter().map(Vec::len).sum();
        means.push(slots as f64 / ASKS as f64);
    }
    let (least, most) = means.iter().fold((f64::MAX, 0f64), |(a, b), &it| (a.min(it), b.max(it)));
    assert!(most - least < 0.15, "{means:?}");
}

#[test]
fn what_was_shown_is_shown_again_in_that_order() {
    let store = Arc::new(RecordStore::new(MemoryStore::new()));
    let mut volume = create(store.clone(), 1);
    for id in 0..200 {
        volume.access(vec![write(id, id as u8)]).expect("memory");
    }
    volume.finish().expect("memory");
    store.take();
    for n in 0..30 {
        volume.access(vec![read(n * 7 % 200), write(n, 77)]).expect("memory");
        volume.commit().expect("memory");
    }
    // It ends here, without a word.
    drop(volume);
    let first = seen(store.take());
    let shown = rounds(&first);
    assert!(shown.len() >= 25, "{}", shown.len());
    let mut volume = open(store.clone(), 2).expect("sound");
    let again = rounds(&seen(store.take()));
    assert_eq!(again[..shown.len()], shown);
    assert_eq!(volume.access(vec![read(5)]).expect("sound")[0].as_ref().expect("there")[0], 77);
}
