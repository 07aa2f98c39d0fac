//! Computers that run sessions over one store, in an order that a seed decides.
//!
//! The sessions are the real ones, each computer in a thread, of which one runs at a time. Between
//! any two operations another one may go on, or what was on its way may arrive. Answers are lost,
//! writes are done or not or arrive once more much later, computers crash and stall.
//!
//! `cargo test` plays some schedules, `just sessions` many. A failure names its seed.

mod computer;
mod judge;
mod network;

use super::ClaimMode;
use super::planted::PlantedFault;
use computer::Computer;
use judge::ComputersJudge;
use network::{ScheduleCounts, SimulatedNetwork};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use std::fmt;
use std::sync::Arc;

/// What a schedule did.
#[derive(Default)]
struct Outcome {
    counts: ScheduleCounts,
    sessions: u64,
    acknowledged: u64,
    commits: u64,
    overtaken: u64,
    wrong: Option<String>,
}

impl Outcome {
    fn add(&mut self, one: &Self) {
        self.sessions += one.sessions;
        self.acknowledged += one.acknowledged;
        self.commits += one.commits;
        self.overtaken += one.overtaken;
        self.counts.add(&one.counts);
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScheduleCounts { steps, failed, late, crashes, stalls } = self.counts;
        let Self { sessions, acknowledged, commits, overtaken, .. } = self;
        write!(f, "{sessions} sessions, {overtaken} overtaken, {acknowledged} entries ")?;
        write!(f, "acknowledged, {commits} commits, {steps} steps, {failed} without an answer, ")?;
        write!(f, "{late} late copies, {crashes} crashes, {stalls} stalls")
    }
}

/// Passes the turn on when a computer's thread ends, after a panic too.
struct Leaving(Arc<SimulatedNetwork>, usize);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

/// Plays a schedule. Afterwards two more sessions begin, in peace: one before and one after what
/// is still on its way.
fn play(seed: u64, fault: Option<PlantedFault>, contents_pass: bool) -> Outcome {
    let mut dice = Dice::new(seed);
    let way = if dice.percent(50) { ClaimMode::Create } else { ClaimMode::Alone };
    let count = 2 + dice.index(2);
    let judge = ComputersJudge::new(contents_pass);
    let sea = Arc::new(SimulatedNetwork::new(dice.next_u64(), count, judge));
    let mut computers: Vec<Computer> = (0..count)
        .map(|me| Computer {
            sea: Arc::clone(&sea),
            me,
            way,
            fault,
            dice: Dice::new(dice.next_u64()),
            known: None,
        })
        .collect();
    std::thread::scope(|threads| {
        for computer in &mut computers {
            threads.spawn(|| {
                let _leaving = Leaving(Arc::clone(&sea), computer.me);
                computer.sea.enter(computer.me);
                computer.run();
            });
        }
    });
    sea.calm();
    computers[0].life();
    sea.arrive();
    let before = sea.state().judge.sessions();
    computers[0].life();
    let mut state = sea.state();
    if state.judge.sessions() == before {
        state.judge.accuse("no session begins although nothing fails".into());
    }
    state.judge.conclude();
    Outcome {
        counts: state.counts,
        sessions: state.judge.sessions(),
        acknowledged: state.judge.acknowledged(),
        commits: state.judge.commits,
        overtaken: state.judge.overtaken,
        wrong: state.judge.wrong.take(),
    }
}

#[test]
fn no_schedule_loses_what_was_acknowledged() {
    let (first, schedules) = (seed(0), scaled(800));
    let (mut all, mut wrong) = (Outcome::default(), Vec::new());
    for seed in first..first + schedules {
        let one = play(seed, None, false);
        all.add(&one);
        wrong.extend(one.wrong.map(|why| format!("schedule {seed}: {why}")));
    }
    eprintln!("{schedules} schedules from {first} on: {all}; {} are wrong", wrong.len());
    assert!(wrong.is_empty(), "{}: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
    // Or nothing was tried.
    assert!(schedules < 1000 || all.commits > schedules && all.counts.crashes > schedules / 10);
    assert!(schedules < 1000 || all.counts.late > schedules / 4 && all.overtaken > schedules / 10);
}

#[test]
fn planted_faults_are_found() {
    let faults = [
        PlantedFault::NoLook,
        PlantedFault::EarlyLook,
        PlantedFault::EarlyRead,
        PlantedFault::BlindDelete,
        PlantedFault::EarlyDelete,
        PlantedFault::PointerInPlace,
        PlantedFault::AnyCheckpoint,
        PlantedFault::EarlyConfirm,
    ];
    for fault in faults {
        let played = (0..2000).map(|seed| (seed, play(seed, Some(fault), true).wrong));
        let found = played.filter_map(|(seed, wrong)| Some((seed, wrong?))).next();
        eprintln!("{fault:?}: {found:?}");
        assert!(found.is_some(), "{fault:?} is not found");
    }
}

#[test]
fn a_schedule_is_repeated_by_its_seed() {
    for seed in 0..20 {
        assert_eq!(play(seed, None, false).to_string(), play(seed, None, false).to_string());
    }
}
