//! The game of lanes (docs/decisions/0051-lanes.md). An inspector names the acts of a volume one by
//! one, each after he saw what came of the last: every call, every byte, the home, the times, and
//! what the outer passphrase shows. In one world nothing is in its lanes. In the other its owner
//! has something there, and opens them when he likes. Both worlds must look the same to him.
//!
//! Then leaks are planted, and each is found. `just lane-game` plays for long.

mod acts;
mod classifier;
mod home;
mod leaks;
mod referee;
mod watch;
mod world;

use super::lanes_open::with_lane;
use acts::{Act, Inspector};
use leaks::Leak;
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{every, scaled, seed};
use oblivio_volume::LaneParameters;
use referee::{Found, Referee};
use std::hash::{DefaultHasher, Hash, Hasher};
use watch::{Seen, What};
use world::World;

/// Acts of a game.
const ACTS: u64 = 80;
/// Games in which each leak must show.
const PAIRS: u64 = 30;

/// What was played.
#[derive(Default, Debug)]
struct Counts {
    pairs: u64,
    acts: u64,
    openings: u64,
    crashes: u64,
    harms: u64,
    /// Syncs of lanes that found all of it durable.
    carried: u64,
}

/// A digest of all that was seen: what an inspector does next depends on it.
fn digest(seen: &[Seen]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for seen in seen {
        if let What::Call(_, parts) = &seen.what {
            parts.iter().for_each(|part| (part.offset, &part.data).hash(&mut hasher));
        }
    }
    hasher.finish()
}

/// Plays a pair to its end, or until the worlds differ.
fn play(seed: u64, leak: Leak, referee: &mut Referee, counts: &mut Counts) -> Result<(), Found> {
    let mut dice = Dice::new(seed);
    let mut options = with_lane(&mut dice);
    if let Some(lanes) = &mut options.lanes {
        *lanes = LaneParameters { count: 1 + u8::from(dice.below(4) == 0), ..*lanes };
    }
    let objects = options.objects().expect("sound parameters");
    let state = objects.iter().find(|(name, _)| *name == "state").expect("it has states").1;
    referee.begin_game(state / 2);
    let hides = Dice::new(dice.next_u64());
    let own = dice.next_u64();
    let mut worlds = [None, Some(hides)].map(|hides| World::new(options, own, hides, leak));
    let mut inspector = Inspector::new(Dice::new(dice.next_u64()), options.engine.blocks);
    // The making came before anything was in a lane.
    worlds.iter().for_each(|world| drop(world.take_seen()));
    let shows = dice.index(2);
    let (mut seen, mut works) = (0, true);
    counts.pairs += 1;
    for number in 0..ACTS {
        let act = inspector.next(seen, works);
        let said = worlds.each_mut().map(|world| world.play(&act));
        let all = worlds.each_ref().map(World::take_seen);
        let judged = referee.judge(&act, [&all[0], &all[1]], [&said[0], &said[1]]);
        judged.map_err(|Found { check, how }| {
            let how = format!("seed {seed}, act {number}: {how}, after {act:?}");
            Found { check, how }
        })?;
        (seen, works) = (digest(&all[shows]), said[0].works);
        counts.see(&act);
    }
    counts.carried += worlds[1].carried();
    worlds.iter_mut().for_each(|world| drop(world.play(&Act::Crash(seen))));
    referee.end_game([&worlds[0], &worlds[1]])
}

impl Counts {
    fn see(&mut self, act: &Act) {
        self.acts += 1;
        self.openings += u64::from(matches!(act, Act::Open(_) | Act::Restore));
        self.crashes += u64::from(matches!(act, Act::Crash(_) | Act::Kill));
        self.harms += u64::from(matches!(act, Act::Harm(_)));
    }
}

#[test]
fn nobody_tells_a_lane_that_is_used_from_one_that_is_not() {
    let (first, mut referee, mut counts) = (seed(1), Referee::default(), Counts::default());
    for seed in first..first + scaled(8) {
        if let Err(Found { check, how }) = play(seed, Leak::Honest, &mut referee, &mut counts) {
            panic!("{check:?}: {how}");
        }
    }
    referee.judge_all().unwrap_or_else(|found| panic!("{found:?}"));
    let Referee { calls, notes, lane_bytes, .. } = referee;
    println!("{counts:?}: {calls} calls, {notes} notes, {lane_bytes} bytes of lanes, equal");
    println!("{:.3} bytes read of used lanes for one of unused ones", referee.read_more());
    assert!(counts.carried > 3 && counts.openings > counts.pairs, "{counts:?}");
}

/// The pair in which a leak shows, if any.
fn found(leak: Leak) -> Option<(u64, Found)> {
    let (mut referee, mut counts) = (Referee::default(), Counts::default());
    (1..=PAIRS).find_map(|pair| {
        let played = play(pair, leak, &mut referee, &mut counts);
        played.and_then(|()| referee.judge_all()).err().map(|found| (pair, found))
    })
}

/// `cargo test` looks for one in three.
#[test]
fn every_planted_leak_is_found() {
    let planted = Leak::PLANTED
        .into_iter()
        .flat_map(|(check, leaks)| leaks.iter().map(move |it| (check, *it)));
    let (mut leaks, mut last) = (Vec::new(), 0);
    for (check, leak) in planted.step_by(every(3)) {
        let (pair, found) = found(leak).unwrap_or_else(|| panic!("{leak:?} is not found"));
        assert_eq!(found.check, check, "{leak:?} in pair {pair}: {}", found.how);
        leaks.push((check, leak));
        last = last.max(pair);
    }
    println!("{} leaks are found, within {last} pairs: {leaks:?}", leaks.len());
}

/// Runs as those in which leaks are looked for.
#[test]
fn no_honest_run_is_accused() {
    let runs = scaled(1).min(20);
    for run in 0..runs {
        let (mut referee, mut counts) = (Referee::default(), Counts::default());
        let first = 1_000_000 + seed(1) + run * PAIRS;
        let pairs = scaled(2).min(PAIRS);
        for seed in first..first + pairs {
            let played = play(seed, Leak::Honest, &mut referee, &mut counts);
            let judged = played.and_then(|()| referee.judge_all());
            judged.unwrap_or_else(|found| panic!("run {run}: {found:?}"));
        }
    }
    println!("{runs} honest runs, none accused");
}
