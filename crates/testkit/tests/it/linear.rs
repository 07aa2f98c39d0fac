//! The checker of histories, on histories that are and are not linearizable.

use oblivio_testkit::SplitMix64;
use oblivio_testkit::linear::{Answer, Call, Change, Compare, Part, carry_out, judge};
use std::collections::BTreeMap;

fn part(block: u64, change: Change) -> Part {
    Part { block, compare: Compare::Always, change, and_read: false }
}

fn call(called: u64, end: u64, parts: Vec<Part>, contents: &[Option<u8>]) -> Call {
    let answer = |content: &Option<u8>| Answer { done: true, content: content.map(|it| vec![it]) };
    Call { called, parts, answered: Some((end, contents.iter().map(answer).collect())) }
}

fn write(called: u64, end: u64, value: u8) -> Call {
    call(called, end, vec![part(1, Change::Write(vec![value]))], &[None])
}

fn read(called: u64, end: u64, value: Option<u8>) -> Call {
    call(called, end, vec![part(1, Change::Read)], &[value])
}

/// A swap: it writes, and answers with what was there.
fn swap(called: u64, end: u64, value: u8, before: Option<u8>) -> Call {
    let swap = Part { and_read: true, ..part(1, Change::Write(vec![value])) };
    call(called, end, vec![swap], &[before])
}

fn lost(called: u64, value: u8) -> Call {
    Call { answered: None, ..write(called, 0, value) }
}

#[test]
fn overlapping_calls_may_go_either_way_and_others_not() {
    judge(&[write(0, 1, 5), read(2, 3, Some(5))]).expect("in order");
    judge(&[write(0, 10, 5), read(2, 3, None), read(4, 5, Some(5))]).expect("in between");
    judge(&[write(0, 3, 5), write(1, 4, 6), read(5, 6, Some(5))]).expect("6 came first");
    let stale = [write(0, 1, 5), write(2, 3, 6), read(4, 5, Some(5))];
    assert_eq!(judge(&stale), Err([1].into()), "a stale read");
    let back = [write(0, 10, 5), read(1, 2, Some(5)), read(3, 4, None)];
    assert!(judge(&back).is_err(), "it was there before");
}

#[test]
fn an_unanswered_write_may_have_happened_late_or_never() {
    judge(&[lost(0, 5), read(1, 2, None), read(3, 4, Some(5))]).expect("in between");
    judge(&[lost(0, 5), read(1, 2, None)]).expect("never");
    let before = [read(0, 1, Some(5)), lost(2, 5)];
    assert!(judge(&before).is_err(), "not before it was called");
    let twice =
        [lost(0, 5), write(1, 2, 6), read(3, 4, Some(5)), write(5, 6, 7), read(7, 8, Some(5))];
    assert!(judge(&twice).is_err(), "it cannot happen twice");
}

#[test]
fn swaps_form_a_chain() {
    judge(&[swap(0, 9, 1, None), swap(0, 9, 2, Some(1)), read(10, 11, Some(2))]).expect("a chain");
    let both = [swap(0, 9, 1, None), swap(0, 9, 2, None)];
    assert!(judge(&both).is_err(), "both were first");
}

#[test]
fn a_transaction_is_seen_whole_or_not_at_all() {
    let both =
        |value: u8| vec![part(1, Change::Write(vec![value])), part(2, Change::Write(vec![value]))];
    let look = || vec![part(1, Change::Read), part(2, Change::Read)];
    let whole = call(0, 9, both(5), &[None, None]);
    judge(&[whole.clone(), call(1, 2, look(), &[Some(5), Some(5)])]).expect("whole");
    judge(&[whole.clone(), call(1, 2, look(), &[None, None])]).expect("not yet");
    let half = [whole, call(1, 2, look(), &[Some(5), None])];
    assert_eq!(judge(&half), Err([1, 2].into()), "half");
}

#[test]
fn other_blocks_do_not_matter() {
    let other = call(0, 1, vec![part(7, Change::Read)], &[Some(1)]);
    assert_eq!(judge(&[write(0, 1, 5), other]), Err([7].into()));
}

/// A random history of one order, with times drawn around each one's moment.
fn history(seed: u64) -> Vec<Call> {
    let mut rng = SplitMix64::new(seed);
    let mut state = BTreeMap::new();
    let one = |moment: u64| {
        let parts: Vec<Part> = (0..1 + rng.below(3))
            .map(|_| {
                let change = match rng.below(4) {
                    0 => Change::Write(vec![rng.below(256) as u8; 2]),
                    1 => Change::Patch(1, vec![rng.below(256) as u8], 2),
                    2 if rng.below(3) == 0 => Change::Remove,
                    _ => Change::Read,
                };
                let compare = match rng.below(6) {
                    0 => Compare::Exists,
                    1 => Compare::Absent,
                    _ => Compare::Always,
                };
                Part { block: rng.below(3), compare, change, and_read: rng.below(2) == 0 }
            })
            .collect();
        let answers = carry_out(&mut state, &parts);
        let (called, end) =
            (moment * 10 - rng.below(40).min(moment * 10), moment * 10 + rng.below(40));
        let answered = (rng.below(10) > 0).then_some((end, answers));
        Call { called, parts, answered }
    };
    (1..=150).map(one).collect()
}

#[test]
fn histories_of_one_order_pass_and_changed_ones_are_found() {
    let mut found = 0;
    for seed in 0..40 {
        let mut history = history(seed);
        judge(&history).unwrap_or_else(|blocks| panic!("seed {seed}: {blocks:?}"));
        // One answer that nothing wrote.
        let mut answers = history.iter_mut().filter_map(|call| call.answered.as_mut());
        let content =
            answers.find_map(|(_, answers)| answers.iter_mut().find_map(|it| it.content.as_mut()));
        content.expect("something was read")[0] ^= 1;
        found += u32::from(judge(&history).is_err());
    }
    assert!(found >= 39, "{found} of 40");
}
