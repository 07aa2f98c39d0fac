//! States that the scribe writes, and scribes that go on from them.

use super::*;

/// What an engine knows, when no round is under way.
fn state(oram: &PyramidOram) -> Vec<u8> {
    let mut bytes = Vec::new();
    oram.checkpoint(&mut bytes).expect("nothing is under way");
    bytes
}

/// A volume whose scribe wrote some states.
fn used(seed: u64, rounds: u64) -> World {
    let mut world = World::new(6, 3, seed);
    let mut rng = SplitMix64::new(seed);
    for _ in 0..rounds {
        let (client, asks) = (rng.below(3) as usize, any_group(&mut rng, 60));
        world.transaction(client, asks);
        world.settle().expect("honest");
    }
    world
}

#[test]
fn a_scribe_that_starts_from_a_state_knows_what_one_knows_that_reads_everything() {
    let mut from_states = 0;
    for seed in 0..30 {
        let mut world = used(seed, 40 + seed * 7);
        from_states += u64::from(!world.server.saved.pieces.is_empty());
        let mut whole = TakeOver::new(oram(world.config, seed, 98), sealer(98), Head::default());
        world.records.iter().for_each(|stored| whole.record(stored).expect("in order"));
        let whole = whole.finish(Term(1000)).expect("a new term");
        world.kill().expect("honest");
        assert_eq!(state(world.scribe.oram()), state(whole.oram()), "seed {seed}");
        assert_eq!(world.scribe.head(), whole.head());
        for client in 0..3 {
            world.ask(client, ask(3, Action::Read, true));
        }
        world.settle().expect("it goes on");
        assert!(world.answers == replay(&world), "seed {seed}");
    }
    assert!(from_states > 20, "{from_states} from states");
}

#[test]
fn old_records_are_forgotten_by_a_public_rule() {
    let world = used(1, 400);
    let q = world.config.checkpoint_asks() / 4;
    assert!(world.server.forgotten > 0);
    let kept: usize = world.server.history.iter().map(|stored| stored.asks.len()).sum();
    assert!(kept as u64 >= 6 * q, "{kept} of {q} asks");
    let sizes = world.server.trace.iter().filter_map(|seen| match seen {
        Recorded::Save(_, piece, bytes) => Some((*piece, *bytes)),
        _ => None,
    });
    // Sessions and stash are padded, so whole states have few sizes.
    let sizes: BTreeSet<_> = sizes.collect();
    assert!(sizes.len() <= 4, "{sizes:?}");
}

#[test]
fn a_state_that_was_changed_or_is_of_another_record_is_refused() {
    let mut world = used(2, 200);
    assert!(!world.server.saved.pieces.is_empty());
    let honest = world.server.saved.clone();
    world.begin_take_over(Head::default()).expect("as it was stored");
    for at in (0..honest.pieces[0].len()).step_by(997) {
        world.server.saved.pieces[0][at] ^= 1;
        assert!(world.begin_take_over(Head::default()).is_err(), "byte {at}");
        world.server.saved = honest.clone();
    }
    world.server.saved.number += 1;
    assert!(world.begin_take_over(Head::default()).is_err(), "of another record");
    world.server.saved = honest;
    let head = world.clients[0].head();
    let other = Head { number: 1, tag: head.tag };
    let began = world.begin_take_over(other);
    assert!(matches!(began, Err(EngineError::Forked | EngineError::State(_))));
    // The records after it must follow it.
    let mut taking = world.begin_take_over(head).expect("as it was stored");
    let next = (taking.head().number - world.server.forgotten) as usize;
    if let Some(skipped) = world.server.history.get(next + 1) {
        assert!(taking.record(skipped).is_err(), "one is missing");
    }
}

/// A scribe dies while it writes a state: the state before it counts.
#[test]
fn a_state_that_is_not_whole_does_not_count() {
    let mut world = used(3, 30);
    let mut saves = 0;
    while saves < 3 {
        world.ask(0, ask(5, Action::Write(vec![1; BYTES]), true));
        loop {
            for record in world.server.asks() {
                world.scribe.take(&record).expect("in order");
            }
            let duty = world.scribe.duty().expect("at work");
            if duty == Duty::Wait {
                break;
            }
            if saves < 3 && matches!(duty, Duty::Save(_)) {
                saves += 1;
                world.kill().expect("honest");
                continue;
            }
            world.carry_out(duty).expect("its term");
            world.give_replies();
            if saves == 3 {
                break;
            }
        }
    }
    world.settle().expect("honest");
    assert!(world.answers == replay(&world));
}

#[test]
fn a_table_has_a_name_of_its_own() {
    let mut world = World::new(7, 1, 4);
    let mut names = BTreeSet::new();
    for round in 0..300u64 {
        world.ask(0, ask(round % 100, Action::Write(vec![1; BYTES]), false));
        for record in world.server.asks() {
            world.scribe.take(&record).expect("in order");
        }
        loop {
            let duty = world.scribe.duty().expect("at work");
            match &duty {
                Duty::Wait => break,
                Duty::Build(build) => assert!(names.insert(build.table), "it is new"),
                Duty::Switch(switch) => {
                    assert!(names.contains(&switch.table));
                    assert_eq!(world.scribe.oram().table_id(switch.home), Some(switch.table));
                }
                _ => {}
            }
            world.carry_out(duty).expect("its term");
            world.give_replies();
        }
    }
    let known: BTreeMap<_, _> = world.scribe.oram().table_ids().collect();
    world.kill().expect("honest");
    assert_eq!(world.scribe.oram().table_ids().collect::<BTreeMap<_, _>>(), known);
    assert!(names.len() > known.len());
}
