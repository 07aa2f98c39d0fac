//! The `paper` construction: several clients against a plain map, clients that die, and what the
//! server sees (S9).

#![allow(clippy::print_stdout, reason = "tests that say what they did")]

mod run;

use oblivio_lab::pyramid_paper::bloom_filter::FilterRule;
use oblivio_lab::pyramid_paper::{
    Construct, Cost, Generation, Handled, Height, LevelId, Operation, PaperConfig, Query,
    QueryNumber, Reply, Request,
};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use proptest::prelude::*;
use run::faults::Fault;
use run::{BYTES, Habits, World, audit, config, item};
use std::ops::Range;

/// The seeds of a campaign: this many, times its scale.
fn seeds(usual: u64) -> Range<u64> {
    let first = seed(0);
    first..first + scaled(usual)
}

/// A property's configuration: this many cases, times the scale of the campaign.
fn cases(usual: u64) -> ProptestConfig {
    ProptestConfig::with_cases(u32::try_from(scaled(usual)).expect("a number of cases"))
}

fn habits(config: &PaperConfig, hot: u64, deaths: u64) -> Habits {
    let schedule = &config.schedule;
    Habits { ids: schedule.items(schedule.bottom()), hot, reads: 33, deaths, fault: Fault::None }
}

/// Runs a world and checks its answers and its trace.
fn checked(config: PaperConfig, members: u64, habits: Habits, queries: u64, seed: u64) -> World {
    let mut world = World::new(config, members, habits, seed);
    world.run(queries);
    world.check_answers();
    assert_eq!(world.server.missed_deletions(), 0);
    let found = audit::check(&config, world.server.trace());
    assert_eq!(found, Vec::<String>::new());
    world
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn clients_at_once_agree_with_a_map(
        seed in any::<u64>(),
        log in 0u32..4,
        heights in 1u32..5,
        members in 1u64..5,
        hot in prop::sample::select(vec![0u64, 50, 95]),
        deaths in prop::sample::select(vec![0u64, 5]),
        queries in 1u64..200,
    ) {
        let config = config(1 << log, heights, BYTES);
        let habits = habits(&config, hot, deaths);
        checked(config, members, habits, queries, seed);
    }
}

/// Long enough for several generations of the bottom.
#[test]
fn a_long_run_stays_right() {
    let config = config(4, 4, BYTES);
    let world = checked(config, 4, habits(&config, 30, 3), 600, 1);
    assert!(world.deaths > 20, "{}", world.deaths);
    assert_eq!(world.server.queries(), 600);
    assert!(world.done.contains_key(&QueryNumber(599)));
}

/// A client dies before or after each of its requests; another finishes its query. The block then
/// has the new content exactly if the dead client sent it.
#[test]
fn a_client_may_die_at_any_step() {
    let config = config(4, 3, BYTES);
    let trips = u64::from(config.schedule.height_count()) + 3;
    for hit in [true, false] {
        for cut in 0..2 * trips {
            let mut world = World::new(config, 3, habits(&config, 0, 0), 5);
            world.run(60 + cut % 2);
            let id = if hit { world.done[&QueryNumber(7)].id } else { item(1 << 40) };
            let new = vec![cut as u8; BYTES];
            world.start(0, id, Operation::TestAndSet(new.clone()));
            (0..cut / 2).for_each(|_| world.trip(0, false));
            if cut % 2 == 0 {
                world.die(0);
            } else {
                world.trip(0, true);
            }
            let begun = world.server.unfinished().first().copied();
            assert_eq!(begun.is_some(), cut > 0 && cut < 2 * trips - 1);
            if let Some(number) = begun {
                world.adopt(1, number);
                (0..trips).for_each(|_| world.trip(0, false));
                assert!(world.running.is_empty(), "the same trips");
            }
            let last = QueryNumber(world.server.queries() - 1);
            if cut > 0 {
                assert_eq!(world.done[&last].wrote, (cut == 2 * trips - 1).then_some(new));
            }
            world.run(100);
            world.check_answers();
            assert_eq!(world.server.missed_deletions(), 0);
            assert_eq!(audit::check(&config, world.server.trace()), Vec::<String>::new());
        }
    }
}

/// E1: a query is answered only when all earlier results are there, needed or not.
#[test]
fn results_come_in_order() {
    let config = config(4, 3, BYTES);
    let trips = config.schedule.height_count() + 3;
    let mut world = World::new(config, 2, habits(&config, 0, 0), 5);
    world.run(60);
    world.start(0, item(0), Operation::Read);
    world.start(1, item(1), Operation::Read);
    world.trip(0, false);
    (0..trips + 3).for_each(|_| world.trip(1, false));
    assert_eq!(world.running.len(), 2, "the second waits");
    assert_eq!(world.server.unfinished(), [QueryNumber(60)]);
    (0..trips - 1).for_each(|_| world.trip(0, false));
    assert_eq!(world.running.len(), 1, "the first does not");
    world.trip(0, false);
    assert!(world.running.is_empty());
    world.check_answers();
}

/// A client that was taken for dead gets to know that its write was not done.
#[test]
fn a_slow_client_is_overtaken() {
    let config = config(4, 3, BYTES);
    let trips = config.schedule.height_count() + 3;
    let mut world = World::new(config, 2, habits(&config, 0, 0), 5);
    world.run(60);
    world.start(0, item(0), Operation::Write(vec![9; BYTES]));
    (0..trips - 1).for_each(|_| world.trip(0, false));
    world.adopt(1, QueryNumber(60));
    (0..trips).for_each(|_| world.trip(1, false));
    assert_eq!((world.running.len(), world.overtaken), (1, 0));
    world.trip(0, false);
    assert_eq!((world.running.len(), world.overtaken), (0, 1));
    assert_ne!(world.value(item(0)), Some(vec![9; BYTES]));
    world.check_answers();
    assert_eq!(audit::check(&config, world.server.trace()), Vec::<String>::new());
}

/// The design's `log2(n/c) + 4`; the audit counts the trips of every query.
#[test]
fn a_query_makes_log2_n_over_c_plus_4_trips() {
    for heights in 1..=12 {
        let config = config(2, heights, BYTES);
        let world = checked(config, 2, habits(&config, 0, 0), 40, 3);
        let all = audit::queries(world.server.trace(), &mut Vec::new());
        let log2 = (config.schedule.items(config.schedule.bottom()) / 2).ilog2() as usize;
        assert!(all.values().all(|trips| trips.order.len() == log2 + 4));
    }
}

/// Whatever clients ask, a construction makes the same requests in the same sizes.
#[test]
fn constructions_do_not_depend_on_the_queries() {
    let config = config(4, 4, BYTES);
    let made = |hot, reads, ids, seed| {
        let habits = Habits { hot, reads, ids, ..habits(&config, 0, 0) };
        let world = checked(config, 3, habits, 200, seed);
        let mut made = audit::constructions(world.server.trace());
        // The last ones were not finished when the queries ended.
        made.retain(|level, _| config.schedule.end(*level) < world.server.period());
        made
    };
    let first = made(0, 33, 32, 1);
    assert!(first.len() > 30, "{}", first.len());
    assert_eq!(first, made(100, 0, 32, 2), "two blocks only, never read");
    assert_eq!(first, made(0, 100, 1000, 3), "nothing is ever written");
}

/// Every id that is asked for takes a place on its way down, but absent ones not for ever.
#[test]
fn reads_of_absent_ids_do_not_fill_the_volume() {
    let config = config(4, 3, BYTES);
    let habits = Habits { ids: 1 << 40, reads: 90, ..habits(&config, 0, 0) };
    checked(config, 2, habits, 120, 1);
}

#[test]
#[should_panic(expected = "Full")]
fn too_many_blocks_are_refused() {
    let config = config(4, 3, BYTES);
    let habits = Habits { ids: 1 << 40, reads: 0, ..habits(&config, 0, 0) };
    checked(config, 2, habits, 120, 1);
}

/// With 8 bits an item and one hash, filters are wrong all the time, and a query stops at it.
#[test]
#[should_panic(expected = "the filter of")]
fn a_false_positive_stops_its_query() {
    let mut config = config(4, 3, BYTES);
    config.filter = FilterRule { hashes: 1, bits_per_item: 8 };
    let habits = Habits { ids: 1 << 40, reads: 100, ..habits(&config, 0, 0) };
    checked(config, 2, habits, 500, 1);
}

#[test]
fn an_older_lease_is_refused() {
    let config = config(2, 2, BYTES);
    let mut world = World::new(config, 2, habits(&config, 0, 0), 1);
    world.run(2);
    let target = LevelId { height: Height(0), generation: Generation(2), star: true };
    let mut old = Construct::new(&config, target).expect("not the top");
    let mut new = Construct::new(&config, target).expect("not the top");
    let step = |world: &mut World, member: usize, construct: &mut Construct| {
        let member = &mut world.members[member];
        let request = construct.request(member).expect("it goes on").expect("not over");
        let writes = matches!(request, Request::WriteSlots(..) | Request::WriteList(..));
        let Handled::Now(reply) = world.server.handle(member.me(), request) else {
            panic!("constructions do not wait")
        };
        let refused = matches!(reply, Reply::Refused(_));
        assert_eq!(construct.reply(member, reply).is_err(), refused);
        (writes, refused)
    };
    assert_eq!(step(&mut world, 0, &mut old), (false, false), "a lease");
    assert_eq!(step(&mut world, 1, &mut new), (false, false), "a newer lease");
    let first_write = (0..10).map(|_| step(&mut world, 0, &mut old)).find(|(writes, _)| *writes);
    assert_eq!(first_write, Some((true, true)));
    let first_write = (0..10).map(|_| step(&mut world, 1, &mut new)).find(|(writes, _)| *writes);
    assert_eq!(first_write, Some((true, false)));
}

/// What S9's two checks find in a run with this fault: breaches, and alarms of the positions.
fn findings(fault: Fault, queries: u64, seed: u64) -> (Vec<String>, Vec<String>) {
    let config = config(4, 4, BYTES);
    let habits = Habits { fault, ..habits(&config, 30, 0) };
    let mut world = World::new(config, 3, habits, seed);
    world.run(queries);
    world.check_answers();
    let trace = world.server.trace();
    let is_real = |query: QueryNumber, level, shown: &[_]| {
        let (prf, shape) = (world.members[0].prf(), config.filter_of(level));
        let real = shape.of_item(prf, level, world.asked[&query]);
        real.iter().map(|at| at.segment()).eq(shown.iter().copied())
    };
    let (alarms, draws) = audit::positions(&config, trace, is_real);
    assert!(
        queries < 400 || fault == Fault::AllFilters || draws > 3000,
        "{draws} draws of the rarer kind"
    );
    (audit::check(&config, trace), alarms)
}

#[test]
fn honest_runs_raise_no_alarm() {
    for seed in seeds(2) {
        assert_eq!(findings(Fault::None, 400, seed), (Vec::new(), Vec::new()));
    }
}

/// Large enough that the lags are a small part of each pass, so that all streams run at their pace;
/// through two generations of the bottom. The design reckons with 12 slots stored for each block;
/// here a sort keeps the list that it reads until its last pass is done.
#[test]
fn a_large_pyramid_runs_at_its_pace() {
    let mut config = config(16, 6, BYTES);
    (config.sorting.run, config.sorting.chunk) = (128, 32);
    let blocks = config.schedule.items(config.schedule.bottom());
    let world = checked(config, 4, habits(&config, 10, 0), 3 * blocks - 16, 1);
    let stored = world.most_slots / blocks;
    assert!(stored <= 17, "{stored} slots for each block");
}

/// Each planted fault gives right answers and is found on the trace alone.
#[test]
fn planted_faults_are_found() {
    let breach = |fault, whats: &[&str]| {
        // A level whose deletions did not happen has too many slots, so constructions of it go
        // wrong from the fourth period on.
        let queries = if fault == Fault::DeletesHitsOnly { 12 } else { 100 };
        let (breaches, _) = findings(fault, queries, 1);
        for what in whats {
            assert!(breaches.iter().any(|breach| breach.contains(what)), "{fault:?}: {breaches:?}");
        }
    };
    breach(Fault::AllFilters, &["filters of other levels", "filter positions twice"]);
    breach(Fault::DeletesHitsOnly, &["not one deletion"]);
    breach(Fault::AsksTwice, &["an item twice"]);
    breach(Fault::StopsAfterHit, &["items of other levels"]);
    let (breaches, alarms) = findings(Fault::FrontFakes, 400, 1);
    assert!(breaches.is_empty() && alarms.len() == 4, "{breaches:?} {alarms:?}");
}

/// The closed form of the cost is that of a trace, to the byte.
#[test]
fn the_cost_is_that_of_a_trace() {
    for (log, heights) in [(1, 3), (4, 3), (2, 1), (8, 2)] {
        let config = config(log, heights, BYTES);
        let cost = Cost::of(&config);
        let mut world = World::new(config, 3, habits(&config, 30, 0), 1);
        // The third cycle, when every level is there; all heights change at its ends.
        world.run(3 * cost.queries - log);
        world.server.take_trace();
        world.run(4 * cost.queries - log);
        let (online, construction) = audit::bytes(world.server.trace());
        assert_eq!((online, construction), (cost.online, cost.construction), "{log} {heights}");
    }
}

/// A server that replies nonsense gets errors, never a panic, and never a wrong answer.
#[test]
fn replies_that_do_not_fit_are_refused() {
    let config = config(4, 3, BYTES);
    let mut world = World::new(config, 2, habits(&config, 0, 0), 1);
    world.run(61);
    let id = world.done[&QueryNumber(7)].id;
    let (mut refused, mut whole) = (0, 0);
    for case in 0..2000 {
        let mut world_server = world.server.clone();
        let member = &mut world.members[case % 2];
        let mut query = Query::new(member, id, Operation::Read).expect("valid");
        let outcome = loop {
            let request = query.request(member).expect("seals").expect("not over");
            let Handled::Now(reply) = world_server.handle(member.me(), request) else {
                panic!("nothing to wait for")
            };
            let (reply, damaged) = damage(reply, &mut world.dice);
            match query.reply(member, reply) {
                Ok(None) => whole += u64::from(damaged),
                Ok(Some(answer)) => break Ok(answer.before),
                Err(error) => break Err(error),
            }
        };
        match outcome {
            Err(_) => refused += 1,
            Ok(before) => assert_eq!(before, world.value(id)),
        }
    }
    // Damage to a fake's segments and slots goes unseen: a query does not open them.
    assert!(refused > 500 && whole > 100, "{refused} {whole}");
}

/// A reply, in one of eight cases with something missing, doubled or changed.
fn damage(mut reply: Reply, dice: &mut Dice) -> (Reply, bool) {
    if dice.below(8) > 0 {
        return (reply, false);
    }
    let hurt = |object: &mut Vec<u8>, dice: &mut Dice| match dice.below(2) {
        0 => object.truncate(object.len() / 2),
        _ => object.iter_mut().for_each(|byte| *byte ^= 1),
    };
    match &mut reply {
        Reply::Log(number, _) if dice.percent(30) => number.0 += dice.below(9),
        Reply::Log(_, entries) | Reply::Results(entries, _) if dice.percent(50) => {
            drop(entries.pop());
        }
        Reply::Log(_, entries) | Reply::Results(entries, _) => {
            entries.iter_mut().for_each(|entry| hurt(entry, dice));
        }
        Reply::Walked(segments, _) if dice.percent(30) => {
            segments.iter_mut().flatten().for_each(|segment| hurt(segment, dice));
        }
        Reply::Walked(segments, _) if dice.percent(30) => drop(segments.pop()),
        Reply::Walked(_, items) if dice.percent(50) => {
            items.iter_mut().flatten().for_each(|item| hurt(item, dice));
        }
        Reply::Walked(_, items) => items.iter_mut().for_each(|item| *item = None),
        _ => reply = Reply::Done,
    }
    (reply, true)
}
