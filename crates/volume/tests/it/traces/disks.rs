//! Disks: the offsets of their reads, writes and trims.

use super::create;
use crate::common::pairs::{Seen, Session, compare_pairs, padded};
use oblivio_store::MemoryStore;
use oblivio_testkit::Dice;
use oblivio_volume::disk::Disk;
use std::sync::{Arc, LazyLock};

const BLOCK: u64 = 1024;
const SIZE: u64 = 1000 * BLOCK;
/// The bytes that exist, in the middle of a size class.
const LIVE: u64 = 720 * BLOCK;

static FILLED: LazyLock<Arc<MemoryStore>> = LazyLock::new(|| {
    let (store, volume) = create(BLOCK as usize, SIZE);
    let mut disk = Disk::format(Box::new(volume), SIZE).expect("a disk");
    disk.write(0, &vec![7; LIVE as usize]).expect("room");
    drop(disk.into_blocks().expect("memory"));
    store
});

#[derive(Clone, Debug)]
enum Step {
    Read(Vec<u64>),
    Write(u64),
    Zeroes(u64, bool),
    Trim(u64),
    Flush,
}

fn any_step(dice: &mut Dice) -> Step {
    let len = |dice: &mut Dice| match dice.below(3) {
        0 => 1 + dice.below(BLOCK * 2),
        1 => (1 + dice.below(9)) * 512,
        _ => (1 + dice.below(40)) * BLOCK,
    };
    match dice.below(9) {
        0..2 => Step::Read((0..=dice.below(4)).map(|_| len(dice)).collect()),
        2..5 => Step::Write(len(dice)),
        // Their whole blocks are given back: few enough that the size class does not reveal them.
        5 => Step::Zeroes(len(dice).min(3 * BLOCK), dice.below(2) == 0),
        6 => Step::Trim(1 + dice.below(3)),
        _ => Step::Flush,
    }
}

fn session(steps: &[Step], dice: &mut Dice) -> Seen {
    let (session, volume) = Session::open(&FILLED, padded());
    let mut disk = Disk::open(Box::new(volume)).expect("a disk");
    session.seen();
    let (kind, mut next) = (dice.below(3), dice.below(LIVE));
    let mut place = |dice: &mut Dice, len: u64| {
        next = match kind {
            0 => next,
            1 => next + len,
            _ => dice.next_u64(),
        };
        next % (LIVE - len)
    };
    for step in steps {
        match step {
            Step::Read(lens) => {
                let range = |&len: &u64| (place(dice, len), len as usize);
                let ranges: Vec<_> = lens.iter().map(range).collect();
                disk.read_many(&ranges).expect("inside");
            }
            Step::Write(len) => {
                let data = vec![dice.next_u64() as u8; *len as usize];
                disk.write(place(dice, *len), &data).expect("room");
            }
            Step::Zeroes(len, stay) => {
                disk.write_zeroes(place(dice, *len), *len, *stay).expect("room");
            }
            Step::Trim(blocks) => {
                let at = place(dice, blocks * BLOCK) / BLOCK * BLOCK;
                disk.trim(at, blocks * BLOCK).expect("inside");
            }
            Step::Flush => disk.flush().expect("memory"),
        }
        disk.end_operation().expect("memory");
    }
    drop(disk.into_blocks().expect("memory"));
    session.seen()
}

#[test]
fn pairs_of_workloads_on_a_disk_look_the_same() {
    compare_pairs("a disk", 20, |public, hidden| {
        let steps: Vec<_> = (0..4 + public.below(26)).map(|_| any_step(public)).collect();
        session(&steps, hidden)
    });
}
