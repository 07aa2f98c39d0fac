//! A hostile store: at random moments, within and between the sessions of two or three computers,
//! it hides, swaps, cuts, replays or forks its content, and some sessions die in between.
//!
//! Whatever it does, a computer finds the newest state that it knows of, or a later one, or is
//! refused; and only a replay shows a path twice. Each past hole is put back, and must be found.
//! `cargo test` plays some schedules, `just hostile` many. Each seed is one schedule.

mod holes;
mod logs;
mod oracle;
mod schedule;
mod store;
mod volumes;

use holes::Hole;
use oblivio_testkit::campaign::{scaled, seed};
use schedule::{Counts, play, play_repairs};
use volumes::Engine;

fn campaign(engine: Engine, schedules: u64) {
    let first = seed(1);
    let mut counts = Counts::default();
    for seed in first..first + schedules {
        if let Err(why) = play(engine, seed, None, &mut counts) {
            panic!("{engine:?}, seed {seed}: {why}");
        }
    }
    println!("{engine:?}, seeds {first} to {}: {counts:?}", first + schedules - 1);
    // One schedule again has not all of them.
    let all = counts.opened > 0 && counts.refused > 0 && counts.honest > 0;
    assert!(all || schedules < 10, "{counts:?}");
}

#[test]
fn a_tree_is_the_newest_or_refused() {
    campaign(Engine::Tree, scaled(100));
}

#[test]
fn a_sequential_volume_is_the_newest_or_refused() {
    campaign(Engine::Sequential, scaled(100));
}

/// The store damages what it holds as well, and each session repairs it: through a repair, too, a
/// computer finds the newest state that it knows of or a later one, blocks that are lost aside.
#[test]
fn a_repaired_volume_is_the_newest_or_refused() {
    let first = seed(1);
    for engine in [Engine::Tree, Engine::Sequential] {
        let (mut counts, schedules) = (Counts::default(), scaled(100));
        for seed in first..first + schedules {
            if let Err(why) = play_repairs(engine, seed, None, &mut counts) {
                panic!("{engine:?}, seed {seed}: {why}");
            }
        }
        println!("{engine:?}, repaired, seeds from {first}: {counts:?}");
        // The few blocks of a sequential volume stand in its log.
        let lost = engine == Engine::Sequential || counts.rewritten > 0;
        assert!(lost || schedules < 10, "{counts:?}");
    }
}

#[test]
fn a_hole_is_found_through_repairs_as_well() {
    for hole in [Hole::NoTable, Hole::AnyVolume] {
        let fails = |seed: &u64| {
            play_repairs(Engine::Tree, *seed, Some(hole), &mut Counts::default()).is_err()
        };
        let after = (1..=2000).find(fails);
        println!("{hole:?}: found in schedule {after:?}");
        assert!(after.is_some(), "{hole:?} is not found");
    }
}

/// L1: an opening reads the log of a sequential volume twice. A store that answers the second time
/// as before a sync is refused, or comes too late to matter.
#[test]
fn a_log_that_changes_while_it_is_read_is_refused() {
    let found = logs::logs_that_change();
    assert!(found.refused > 0 && found.newest > 0, "{found:?}");
}

/// H1: a journal, or a ring log, replaces another one on the same commit, of the same length and
/// number of syncs.
#[test]
fn a_log_of_the_same_commit_cannot_be_swapped() {
    for engine in [Engine::Tree, Engine::Sequential] {
        logs::swapped_logs(engine);
    }
}

/// The first schedule that finds a restored hole.
fn found_after(engine: Engine, hole: Hole) -> Option<u64> {
    (1..=2000).find(|seed| play(engine, *seed, Some(hole), &mut Counts::default()).is_err())
}

#[test]
fn every_old_hole_is_found_when_it_is_put_back() {
    let both =
        [Hole::HeaderReadTwice, Hole::LogByCount, Hole::NoLock, Hole::NoTable, Hole::AnyVolume];
    let engines = [Engine::Tree, Engine::Sequential];
    let planted = both.iter().flat_map(|hole| engines.map(|engine| (engine, *hole)));
    // Reads of a sequential volume are not hidden, so it has no intents.
    for (engine, hole) in planted.chain([(Engine::Tree, Hole::IntentsNotNoted)]) {
        let after = found_after(engine, hole);
        println!("{engine:?}, {hole:?}: found in schedule {after:?}");
        assert!(after.is_some(), "{engine:?}, {hole:?} is not found");
    }
}
