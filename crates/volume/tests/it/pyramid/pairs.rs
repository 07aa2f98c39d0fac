//! Pairs of recorded sessions on copies of one volume. The same script, other blocks: the judged
//! facts of the contract (SECURITY.md) hold of each, and nothing public differs.

use super::seen::{Seen, seen, twice};
use super::{BLOCKS, BYTES, create, open, read};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::record::Op;
use oblivio_store::{MemoryStore, RecordStore};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::scaled;
use oblivio_volume::BlockSpace;
use std::sync::Arc;

/// A volume of which three quarters were written, so that all partitions have tables; and what its
/// store saw.
fn base() -> (MemoryStore, Vec<Seen>) {
    let store = Arc::new(RecordStore::new(MemoryStore::new()));
    let mut volume = create(store.clone(), 11);
    for id in (0..BLOCKS).filter(|id| id % 4 != 3) {
        volume.access(vec![super::write(id, id as u8)]).expect("memory");
    }
    volume.finish().expect("memory");
    drop(volume);
    (store.inner().snapshot(), seen(store.take()))
}

/// Which blocks a session uses: any, one, a few, one after the other, or those that do not exist.
#[derive(Clone, Copy, Debug)]
enum Blocks {
    Any,
    One,
    Few,
    InTurn,
    Absent,
}

impl Blocks {
    const ALL: [Blocks; 5] =
        [Blocks::Any, Blocks::One, Blocks::Few, Blocks::InTurn, Blocks::Absent];

    fn next(self, n: u64, dice: &mut Dice) -> u64 {
        match self {
            Blocks::Any => dice.below(BLOCKS),
            Blocks::One => 7,
            Blocks::Few => dice.below(8) * 64,
            Blocks::InTurn => n % BLOCKS,
            Blocks::Absent => dice.below(BLOCKS / 4) * 4 + 3,
        }
    }
}

/// A session by a script; `choice` says which blocks it is for. Blocks that are written while
/// others wait are distinct: how many are is public.
fn session(from: &MemoryStore, script: u64, blocks: Blocks, choice: u64) -> Vec<Seen> {
    let store = Arc::new(RecordStore::new(from.snapshot()));
    let (mut script, mut dice) = (Dice::new(script), Dice::new(choice));
    let mut volume = open(store.clone(), choice).expect("sound");
    let (stride, first) = (dice.below(BLOCKS / 2) * 2 + 1, dice.below(BLOCKS));
    let (mut reads, mut writes, mut openings) = (0, 0, 0);
    let mut written = |dice: &mut Dice| {
        writes += 1;
        let id = BlockId((first + writes * stride) % BLOCKS);
        BlockOp { id, action: Action::Write(dice.bytes(BYTES)) }
    };
    for _ in 0..30 {
        let batch: Vec<_> = (0..script.below(20))
            .map(|_| {
                reads += 1;
                read(blocks.next(reads, &mut dice))
            })
            .collect();
        volume.access(batch).expect("memory");
        let batch: Vec<_> = (0..script.below(6)).map(|_| written(&mut dice)).collect();
        volume.access(batch).expect("memory");
        match script.below(6) {
            0 | 1 => volume.commit().expect("memory"),
            2 => {
                volume.finish().expect("memory");
                drop(volume);
                openings += 1;
                volume = open(store.clone(), choice + openings).expect("sound");
            }
            _ => {}
        }
    }
    volume.finish().expect("memory");
    drop(volume);
    seen(store.take())
}

/// The trace without the slots of rounds, which follow from partitions drawn at random. The reads
/// that come right after a record in the journal are a round's, others are a merge's.
fn shape(seen: &[Seen]) -> Vec<String> {
    let mut shape = Vec::new();
    for (at, it) in seen.iter().enumerate() {
        let recorded = at > 0
            && matches!(&seen[at - 1], Seen::Other(Op::Write, object, ..) if object == "journal");
        shape.push(match it {
            Seen::Slots(_) if recorded => "round".into(),
            Seen::Slots(slots) => format!("merge of {}", slots.len()),
            other => format!("{other:?}"),
        });
    }
    shape
}

/// `just pyramid-pairs` judges more of them.
#[test]
fn pairs_of_sessions_look_the_same() {
    let (from, before) = base();
    let mut dice = Dice::new(31);
    let any = |dice: &mut Dice| Blocks::ALL[dice.index(Blocks::ALL.len())];
    for pair in 0..scaled(4) {
        let (one, other) = (any(&mut dice), any(&mut dice));
        let traces = [(one, 2 * pair), (other, 2 * pair + 1)]
            .map(|(blocks, choice)| session(&from, pair, blocks, choice * 1000));
        for trace in &traces {
            let life = [before.clone(), trace.clone()].concat();
            assert_eq!(twice(&life), 0, "pair {pair}: a slot is read twice");
        }
        let [a, b] = traces.map(|trace| shape(&trace));
        assert!(a.iter().any(|it| it.starts_with("merge of")), "pair {pair}: no merge");
        assert!(a.iter().filter(|it| *it == "round").count() > 25, "pair {pair}: too few rounds");
        let differs = a.iter().zip(&b).position(|(a, b)| a != b);
        let there = |it: &[String]| differs.map(|at| it[at].clone());
        assert_eq!(there(&a), there(&b), "pair {pair}, {one:?} and {other:?}, differs");
        assert_eq!(a.len(), b.len(), "pair {pair}, {one:?} and {other:?}");
    }
}

/// What the judgement above must find.
#[test]
fn a_planted_difference_is_found() {
    let (from, before) = base();
    let trace = session(&from, 5, Blocks::Any, 1);
    assert_ne!(shape(&trace), shape(&session(&from, 6, Blocks::Any, 1)), "another script shows");
    let round = trace.iter().position(|it| matches!(it, Seen::Slots(_))).expect("a round");
    let mut again = trace.clone();
    again.insert(round + 1, trace[round].clone());
    assert!(twice(&[before, again.clone()].concat()) > 0, "a slot read again");
    assert_ne!(shape(&again), shape(&trace), "a call more");
}
