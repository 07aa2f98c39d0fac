//! The `paper` construction: several clients against a plain map, clients that die, and what the
//! server sees (S9).

mod pyramid_paper_run;

use oblivio_engine::pyramid::paper::{PaperConfig, QueryNumber};
use proptest::prelude::*;
use pyramid_paper_run::faults::Fault;
use pyramid_paper_run::{BYTES, Habits, World, audit, config};

fn habits(config: &PaperConfig, hot: u64, deaths: u64) -> Habits {
    let schedule = &config.schedule;
    Habits { ids: schedule.items(schedule.bottom()), hot, deaths, fault: Fault::None }
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
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

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
