//! The block space itself: which blocks are written, rewritten or not, read and given back.

use super::create;
use crate::common::pairs::{Seen, Session, compare_pairs, padded};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::MemoryStore;
use oblivio_testkit::Dice;
use oblivio_volume::{BlockSpace, OpenOptions, Volume};
use std::sync::{Arc, LazyLock};

const BLOCK: usize = 512;
/// In the middle of a size class.
const LIVE: u64 = 720;

/// A volume with [`LIVE`] blocks.
fn filled() -> Arc<MemoryStore> {
    let (store, mut volume) = create(BLOCK, 1024 * BLOCK as u64);
    volume.reserve(1024).expect("room");
    let write = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![id as u8; BLOCK]) };
    volume.defer((0..LIVE).map(write).collect()).expect("memory");
    volume.finish().expect("memory");
    store
}

static FILLED: LazyLock<Arc<MemoryStore>> = LazyLock::new(filled);

/// The public part of a step: what is done, how often, with how many bytes.
#[derive(Clone, Debug)]
enum Step {
    Write(Vec<usize>),
    Read(u64),
    Discard(u64),
    Commit,
    Finish,
}

fn any_step(dice: &mut Dice, discards: &mut u64) -> Step {
    match dice.below(12) {
        0..5 => {
            let count = if dice.below(4) == 0 { dice.below(180) } else { dice.below(12) };
            Step::Write((0..=count).map(|_| 1 + dice.below(BLOCK as u64) as usize).collect())
        }
        5..8 => Step::Read(1 + dice.below(20)),
        // Few enough that the size class does not reveal them.
        8 if *discards > 0 => {
            let count = 1 + dice.below(*discards);
            *discards -= count;
            Step::Discard(count)
        }
        8..11 => Step::Commit,
        _ => Step::Finish,
    }
}

/// Which blocks: always the same, a few, one after the other, or any.
struct Chosen {
    kind: u64,
    next: u64,
}

impl Chosen {
    fn new(dice: &mut Dice) -> Self {
        Self { kind: dice.below(4), next: dice.below(LIVE) }
    }

    fn next(&mut self, dice: &mut Dice) -> u64 {
        match self.kind {
            0 => self.next,
            1 => (self.next + dice.below(3)) % LIVE,
            2 => {
                self.next = (self.next + 1) % LIVE;
                self.next
            }
            _ => dice.below(LIVE),
        }
    }
}

fn run(volume: &mut Volume, steps: &[Step], dice: &mut Dice) {
    let mut chosen = Chosen::new(dice);
    for step in steps {
        match step {
            Step::Write(sizes) => {
                let op = |&len: &usize| {
                    let (id, bytes) =
                        (BlockId(chosen.next(dice)), vec![dice.next_u64() as u8; len]);
                    let offset = dice.below((BLOCK - len) as u64 + 1) as usize;
                    let whole = len == BLOCK && dice.below(2) == 0;
                    let action = match whole {
                        true => Action::Write(bytes),
                        false => Action::Patch { offset, bytes },
                    };
                    BlockOp { id, action }
                };
                volume.defer(sizes.iter().map(op).collect()).expect("memory");
            }
            Step::Read(count) => {
                let op = |_| BlockOp { id: BlockId(chosen.next(dice)), action: Action::Read };
                volume.access((0..*count).map(op).collect()).expect("memory");
            }
            Step::Discard(count) => volume.discard(&given_back(*count, dice)).expect("memory"),
            Step::Commit => volume.commit().expect("memory"),
            Step::Finish => volume.finish().expect("memory"),
        }
        volume.end_operation().expect("memory");
    }
}

/// `count` blocks: adjacent, or as far apart as possible.
fn given_back(count: u64, dice: &mut Dice) -> Vec<u64> {
    let first = dice.below(LIVE);
    let apart = if dice.below(2) == 0 { 1 } else { LIVE / count };
    (0..count).map(|at| (first + at * apart) % LIVE).collect()
}

fn session(steps: &[Step], dice: &mut Dice, options: OpenOptions) -> Seen {
    let (session, mut volume) = Session::open(&FILLED, options);
    session.seen();
    run(&mut volume, steps, dice);
    volume.finish().expect("memory");
    session.seen()
}

#[test]
fn pairs_of_workloads_on_blocks_look_the_same() {
    compare_pairs("blocks", 20, |public, hidden| {
        let (mut discards, steps) = (90, 4 + public.below(30));
        let steps: Vec<_> = (0..steps).map(|_| any_step(public, &mut discards)).collect();
        session(&steps, hidden, padded())
    });
}

/// The finding of the review: a hundred times (write, flush), of one block or of a hundred.
#[test]
fn rewriting_one_block_shows_as_much_as_writing_many() {
    let paths = |distinct: u64, options: OpenOptions| {
        let (session, mut volume) = Session::open(&FILLED, options);
        session.seen();
        for round in 0..100u64 {
            let id = BlockId(round % distinct);
            let op = BlockOp { id, action: Action::Write(vec![round as u8; BLOCK]) };
            volume.defer(vec![op]).expect("memory");
            volume.commit().expect("memory");
            volume.end_operation().expect("memory");
        }
        volume.finish().expect("memory");
        session.seen()
    };
    let [one, few, many] = [1, 7, 100].map(|distinct| paths(distinct, padded()));
    one.expect_equal(&many, "one block and a hundred");
    one.expect_equal(&few, "one block and a few");
    assert!(one.drawn() >= 100, "{}", one.drawn());
    // Without padding it shows, and the contract says so.
    let plain = || OpenOptions { memory_bytes: 64 << 20, ..OpenOptions::default() };
    for distinct in [1, 7, 100] {
        let drawn = paths(distinct, plain()).drawn() as u64;
        // One path more now and then, by the number of operations.
        assert!((distinct..=distinct + 1).contains(&drawn), "{distinct} blocks: {drawn} paths");
    }
}

/// A commit writes as much for discarded blocks anywhere as for neighbours.
#[test]
fn a_commit_does_not_tell_whether_blocks_lay_side_by_side() {
    const MANY: u64 = 1 << 17;
    let (store, mut volume) = create(64, MANY * 64);
    volume.reserve(MANY).expect("room");
    let ids = (0..MANY / 40).map(|at| at * 40);
    let write = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![1; 8]) };
    volume.defer(ids.chain(0..MANY / 40).map(write).collect()).expect("memory");
    volume.finish().expect("memory");
    for options in [padded, || OpenOptions { memory_bytes: 64 << 20, ..OpenOptions::default() }] {
        let delta = |apart: u64, erased: bool| {
            let (session, mut volume) = Session::open(&store, options());
            // The next commit is a delta.
            volume.finish().expect("memory");
            session.seen();
            let ids: Vec<u64> = (0..2600).map(|at| at * apart).collect();
            match erased {
                true => volume.erase(&ids).expect("memory"),
                false => volume.discard(&ids).expect("memory"),
            }
            // More than fits into a record, so that a commit follows.
            let op = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![2; 64]) };
            for _ in 0..60 {
                volume.defer((0..1000).map(op).collect()).expect("memory");
            }
            volume.commit().expect("memory");
            session.seen().writes_to("log")
        };
        let (together, scattered) = (delta(1, false), delta(40, false));
        assert!(!together.is_empty(), "a commit");
        assert_eq!(together, scattered);
        let range = delta(1, true);
        assert!(range[0] < together[0], "a range takes less");
    }
}

/// A padded session that crashed: the synced data is there at any next opening, and a padded
/// opening shows as much whichever blocks were written.
#[test]
fn what_a_padded_session_synced_survives_it() {
    let crashed = |distinct: u64| {
        let (session, mut volume) = Session::open(&FILLED, padded());
        for round in 0..30u64 {
            let bytes = vec![round as u8; 7];
            let id = BlockId(round % distinct);
            let op = BlockOp { id, action: Action::Patch { offset: 5, bytes } };
            volume.defer(vec![op, BlockOp { id, action: Action::Read }]).expect("memory");
            volume.commit().expect("memory");
            volume.end_operation().expect("memory");
        }
        drop(volume);
        session.copy()
    };
    let plain = || OpenOptions { memory_bytes: 64 << 20, ..OpenOptions::default() };
    let shown = [1, 30].map(|distinct| {
        let store = crashed(distinct);
        for options in [plain(), padded()] {
            let (_, mut volume) = Session::open(&store, options);
            let read = |id| BlockOp { id: BlockId(id), action: Action::Read };
            let answers = volume.access((0..distinct).map(read).collect()).expect("memory");
            for (id, answer) in (0..).zip(answers) {
                let mut block = vec![id as u8; BLOCK];
                block[5..12].fill((29 - (29 - id) % distinct) as u8);
                assert!(answer.as_deref() == Some(&block[..]), "block {id} of {distinct}");
            }
        }
        Session::open(&store, padded()).0.seen()
    });
    shown[0].expect_equal(&shown[1], "recoveries");
    assert!(shown[0].drawn() >= 60, "{}", shown[0].drawn());
}
