//! What every engine owes, whichever it is. It answers like a plain map, in later sessions too.
//! What the store sees, and how long the state is, follow from the number of operations. And a bit
//! that changed in the store gives no wrong answer.
//!
//! An engine is registered once, at the end. What it owes beyond this is in tests of its own.

mod subjects;

use crate::plain::{Plain, any_op, read, write};
use crate::{cases, seeds};
use oblivio_engine::{Action, BlockAnswer, BlockId, BlockOp, Result};
use oblivio_testkit::SplitMix64;
use proptest::prelude::*;

/// Blocks of each engine.
const BLOCKS: u64 = 64;

/// An engine with its store.
trait Subject {
    /// Without blocks.
    fn new() -> Self;

    fn serve(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockAnswer>>;

    /// A session ends, and the next begins on its state. Says how long that is.
    fn again(&mut self) -> usize;

    /// What the store saw so far, without what is drawn at random, as numbers.
    fn seen(&self) -> Vec<u64>;

    /// The parts of the store that are read as a whole: buckets, slots, sectors.
    fn stored(&mut self) -> Vec<&mut [u8]>;
}

#[derive(Clone, Debug)]
enum Event {
    Batch(Vec<BlockOp>),
    Again,
}

fn any_events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        12 => proptest::collection::vec(any_op(BLOCKS), 0..24).prop_map(Event::Batch),
        1 => Just(Event::Again),
    ];
    proptest::collection::vec(event, 1..60)
}

fn answers_like_a_plain_map<S: Subject>(events: Vec<Event>) {
    let (mut subject, mut plain) = (S::new(), Plain::default());
    let everything = Event::Batch((0..BLOCKS).map(read).collect());
    for event in events.into_iter().chain([Event::Again, everything]) {
        match event {
            Event::Batch(ops) => {
                let expected: Vec<_> = ops.iter().map(|op| plain.serve(op)).collect();
                assert_eq!(subject.serve(ops).expect("nothing was changed"), expected);
            }
            Event::Again => drop(subject.again()),
        }
    }
}

fn shows_the_number_of_operations_only<S: Subject>() {
    type Workload = fn(u64) -> BlockOp;
    let workloads: [Workload; 4] = [
        |n| write(5, n as u8),
        |n| read(n % BLOCKS),
        |n| write(n * n % BLOCKS, n as u8),
        |n| match n % 4 {
            0 => BlockOp { id: BlockId(n / 8 % BLOCKS), action: Action::Remove },
            1 => BlockOp { id: BlockId(3), action: Action::Patch { offset: 7, bytes: vec![1] } },
            _ => write(n * 7 % BLOCKS, n as u8),
        },
    ];
    let shown = workloads.map(|workload| {
        let (mut subject, mut states) = (S::new(), Vec::new());
        for n in 0..40 {
            subject.serve((0..16).map(|op| workload(16 * n + op)).collect()).expect("sound");
            if n % 8 == 7 {
                states.push(subject.again());
            }
        }
        (subject.seen(), states)
    });
    assert!(shown[0].0.len() > 40, "the store sees something");
    for other in &shown[1..] {
        assert!(*other == shown[0], "{:?} and {:?}", other.1, shown[0].1);
    }
}

fn gives_no_wrong_answer_for_a_changed_bit<S: Subject>() {
    let (mut found, seeds) = (0, seeds(40));
    for seed in seeds.clone() {
        let (mut subject, mut plain, mut rng) = (S::new(), Plain::default(), SplitMix64::new(seed));
        for n in 0..20 + seed % 60 {
            let ops: Vec<_> = (0..8).map(|_| write(rng.below(BLOCKS), n as u8)).collect();
            ops.iter().for_each(|op| drop(plain.serve(op)));
            subject.serve(ops).expect("nothing was changed");
        }
        // In each part, so that some read meets one of them.
        for part in subject.stored() {
            let at = rng.below(part.len() as u64) as usize;
            part[at] ^= 1 << rng.below(8);
        }
        for id in 0..BLOCKS {
            match subject.serve(vec![read(id)]) {
                Ok(answers) => assert_eq!(answers, [plain.serve(&read(id))], "seed {seed}"),
                Err(_) => {
                    found += 1;
                    break;
                }
            }
        }
    }
    // What a flush wrote over, or what nothing reads yet, does no harm.
    let tried = seeds.end - seeds.start;
    assert!(found * 10 > tried * 9, "{found} of {tried} were found");
}

macro_rules! engines {
    ($($engine:ident: $subject:ty,)*) => { $(
        mod $engine {
            use super::*;

            proptest! {
                #![proptest_config(cases(24))]

                #[test]
                fn answers_like_a_plain_map(events in any_events()) {
                    super::answers_like_a_plain_map::<$subject>(events);
                }
            }

            #[test]
            fn shows_the_number_of_operations_only() {
                super::shows_the_number_of_operations_only::<$subject>();
            }

            #[test]
            fn gives_no_wrong_answer_for_a_changed_bit() {
                super::gives_no_wrong_answer_for_a_changed_bit::<$subject>();
            }
        }
    )* };
}

engines! {
    linear: subjects::LinearOfTests,
    pyramid: subjects::PyramidOfTests,
    sequential: subjects::SequentialOfTests,
    tree: subjects::TreeOfTests,
}
