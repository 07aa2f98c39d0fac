//! Hints of where the newest session is: made up, old or torn, they cost requests and nothing else.

use super::hint;
use super::names::HINT;
use super::tests::{NOTE, World, told};
use super::*;
use crate::trust::SessionHint;
use oblivio_store::{Objects, PutMode};

/// Sessions up to this number that ended in every way, and a hint after each step of each, with
/// whether that was its end.
fn sessions(newest: u64) -> (World, Vec<(SessionHint, bool)>) {
    let mut world = World::new(ClaimMode::Create);
    let mut hints = Vec::new();
    for number in 1..=newest {
        if number == 3 || number == 6 {
            // Claimed, and no more.
            world.begin().expect("memory");
            continue;
        }
        let (mut session, _) = world.start();
        session.settle().expect("memory");
        hints.push((session.hint(), false));
        let mut old = Vec::new();
        for step in 0..[0, 2, 6, 0, 3, 4, 0, 5][number as usize] {
            session.append(NOTE, format!("{number} {step}").as_bytes(), 0).expect("memory");
            hints.push((session.hint(), false));
            let mark = session.commit(format!("of {number} {step}").as_bytes(), false);
            let mark = mark.expect("memory");
            // All up to the commit before go.
            let names: Vec<String> = std::mem::take(&mut old);
            session.delete(&names.iter().map(String::as_str).collect::<Vec<_>>()).expect("memory");
            old = (2..mark.index).map(|index| session.id().entry(index)).collect();
            hints.push((session.hint(), false));
        }
        session.append(NOTE, format!("{number} last").as_bytes(), 0).expect("memory");
        hints.push((session.hint(), false));
        if number % 2 == 0 {
            session.release(b"").expect("memory");
            hints.push((session.hint(), true));
        }
    }
    (world, hints)
}

#[test]
fn a_made_up_hint_costs_only_requests() {
    // The newest one ended by itself, or goes on.
    for newest in [2, 7] {
        made_up_hints_cost_only_requests(newest);
    }
}

fn made_up_hints_cost_only_requests(newest: u64) {
    let (mut world, hints) = sessions(newest);
    world.store.delete(&[HINT]).expect("memory");
    let expected = world.opening().peek().expect("memory").expect("sessions");
    let mut randoms: Vec<u64> = hints.iter().map(|(hint, _)| hint.random).collect();
    randoms.dedup();
    randoms.push(0);
    let mut tried = 0;
    let numbers = |most: u64| 0..=most;
    for number in numbers(9).chain([names::MOST_NUMBER, u64::MAX]) {
        for &random in &randoms {
            for pointer in numbers(7).chain([names::MOST_INDEX]) {
                for entry in numbers(16) {
                    let last = entry + (tried % 5) * 2;
                    let made_up = SessionHint { number, random, pointer, entry, last };
                    let bytes = hint::to_bytes(&made_up);
                    world.store.put(HINT, &bytes, PutMode::Replace).expect("memory");
                    let found = world.opening().peek().expect("sound").expect("sessions");
                    assert_eq!(found.0, expected.0, "{made_up:?}");
                    assert_eq!(told(&found.1), told(&expected.1), "{made_up:?}");
                    tried += 1;
                }
            }
        }
    }
    for bytes in [&b""[..], b"garbage", &[0; 40], &[0xff; 40], &[7; 4000]] {
        world.store.put(HINT, bytes, PutMode::Replace).expect("memory");
        let found = world.opening().peek().expect("sound").expect("sessions");
        assert_eq!(told(&found.1), told(&expected.1));
    }
}

/// What this computer noted at any time of sessions of its own, before others went on.
#[test]
fn an_old_note_shows_no_older_state() {
    let (mut world, hints) = sessions(7);
    for stored in [true, false] {
        if !stored {
            world.store.delete(&[HINT]).expect("memory");
        }
        let expected = world.opening().peek().expect("memory").expect("sessions");
        for &(hint, ended) in &hints {
            let start = SearchStart::own(hint, ended);
            let mut other = World { store: std::sync::Arc::new(world.store.snapshot()), ..world };
            other.seed = world.seed + 1;
            let opening = SessionOpening { start, ..other.opening() };
            let (session, history) = opening.begin().expect("sound");
            assert_eq!((session.id().number, told(&history)), (8, told(&expected.1)), "{hint:?}");
        }
    }
}

/// Claims that are lost right behind the one that is known hide nothing, and are not taken: fewer
/// than four in a row, as without a note.
#[test]
fn lost_claims_behind_the_known_one_are_found() {
    for (ended, lost) in [(true, 1), (false, 1), (true, 3), (false, 3)] {
        let mut world = World::new(ClaimMode::Create);
        let (mut one, _) = world.start();
        one.append(NOTE, b"a", 0).expect("memory");
        if ended {
            one.release(b"").expect("memory");
        }
        let start = SearchStart::own(one.hint(), ended);
        for number in 2..=lost + 1 {
            // Claimed, and no more, but for the last.
            let (mut later, _) = world.begin().expect("memory");
            if number == lost + 1 {
                later.start(b"").expect("memory");
                later.append(NOTE, b"b", 0).expect("memory");
            }
        }
        for number in 2..=lost {
            world.store.delete(&[&names::claim(number)]).expect("memory");
        }
        // Of the last one the second copy is left.
        world.store.delete(&[&names::claim(lost + 1)]).expect("memory");
        let opening = SessionOpening { start, ..world.opening() };
        let (session, history) = opening.begin().expect("sound");
        assert_eq!(session.id().number, lost + 2);
        assert_eq!(told(&history).1, ["a", "b"]);
    }
}
