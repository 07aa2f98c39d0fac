//! Scribes that die, and servers that show an old state or two histories.

use super::*;

#[test]
fn a_scribe_may_die_before_any_duty_and_after_it() {
    let (mut kills, seeds) = (0, seeds(10));
    for seed in seeds.clone() {
        let mut world = World::new(7, 3, seed);
        let mut rng = SplitMix64::new(seed);
        for _ in 0..40 {
            for _ in 0..rng.below(16) {
                let (client, asks) = (rng.below(3) as usize, any_group(&mut rng, 100));
                world.transaction(client, asks);
                for _ in 0..rng.below(4) {
                    world.step().expect("an honest server");
                }
                if rng.below(6) == 0 {
                    world.kill().expect("an honest server");
                    kills += 1;
                }
            }
            // Somewhere between a duty and its reply.
            if rng.below(3) == 0 {
                let asks = world.server.asks();
                for ask in &asks {
                    world.scribe.take(ask).expect("in order");
                }
                let duty = world.scribe.duty().expect("it is at work");
                if duty != Duty::Wait {
                    world.server.carry_out(world.term, duty).expect("its term");
                }
                world.kill().expect("an honest server");
                kills += 1;
            }
            world.settle().expect("an honest server");
        }
        assert!(world.answers == replay(&world), "seed {seed}");
        assert_eq!(broken(&world.server.trace, &world.config), None, "seed {seed}");
    }
    assert!(kills > 16 * (seeds.end - seeds.start), "{kills} kills");
}

#[test]
fn a_scribe_whose_term_is_over_does_nothing_more() {
    let mut world = World::new(7, 1, 1);
    world.ask(0, ask(1, Action::Write(vec![1; BYTES]), false));
    for record in world.server.asks() {
        world.scribe.take(&record).expect("in order");
    }
    let (old, duty) = (world.term, world.scribe.duty().expect("a batch"));
    world.kill().expect("an honest server");
    assert!(world.server.carry_out(old, duty).is_err());
    world.settle().expect("the new one serves");
    let answer = Answer { done: true, content: None };
    let done = Outcome { answer, refusal: None, live_blocks: 0 };
    assert_eq!(world.answers[&Session(0)], [(Seq(0), done)]);
}

/// A volume with some history.
fn used(seed: u64) -> World {
    let mut world = World::new(7, 2, seed);
    let mut rng = SplitMix64::new(seed);
    for _ in 0..30 {
        for client in 0..2 {
            let ask = any_ask(&mut rng, 100);
            world.ask(client, ask);
        }
        world.settle().expect("honest");
    }
    world
}

#[test]
fn a_history_that_was_changed_is_refused() {
    let world = used(4);
    let take_over = |history: &[StoredRecord]| {
        let mut taking = TakeOver::new(oram(world.config, 4, 9), sealer(9), Head::default());
        history.iter().try_for_each(|stored| taking.record(stored))
    };
    let history = &world.records;
    take_over(history).expect("as it was stored");
    for at in 0..history.len() - 1 {
        let mut without = history.clone();
        without.remove(at);
        assert!(take_over(&without).is_err(), "record {at} is missing");
        let mut swapped = history.clone();
        swapped.swap(at, at + 1);
        assert!(take_over(&swapped).is_err(), "records {at} and the next are swapped");
        let mut changed = history.clone();
        let middle = changed[at].sealed.len() / 2;
        changed[at].sealed[middle] ^= 1;
        assert!(take_over(&changed).is_err(), "record {at} is changed");
        let mut twice = history.clone();
        twice.insert(at, history[at].clone());
        assert!(take_over(&twice).is_err(), "record {at} stands twice");
    }
    let mut other = history.clone();
    other.clone_from_slice(history);
    let with_asks = other.iter_mut().find(|stored| !stored.asks.is_empty()).expect("a batch");
    with_asks.asks[0].sealed[50] ^= 1;
    assert!(take_over(&other).is_err(), "an ask is changed");
}

/// A server shows a new scribe an old state: the first client that knows better finds it.
#[test]
fn a_rollback_and_a_fork_are_found_at_the_first_ask_that_crosses() {
    let mut world = used(5);
    let whole = world.server.history.clone();
    let tables = world.server.tables.clone();
    // Ten records are held back. The tables of then may be gone: it does not come to that.
    world.server.history.truncate(whole.len() - 10);
    // A client that remembers finds it before anything is shown.
    assert!(matches!(world.kill(), Err(EngineError::Forked)), "a rollback");
    let taking = world.begin_take_over(Head::default()).expect("it begins");
    world.take_over(taking).expect("the old history holds together");
    world.ask(0, ask(1, Action::Read, true));
    assert!(matches!(world.settle(), Err(EngineError::Forked)), "a rollback");

    // Two histories: a client of each.
    let mut world = used(5);
    let fork = (world.server.history.clone(), world.server.tables.clone());
    assert_eq!(fork.1.len(), tables.len());
    world.ask(0, ask(2, Action::Write(vec![1; BYTES]), false));
    world.settle().expect("one side");
    (world.server.history, world.server.tables) = fork;
    let taking = world.begin_take_over(world.clients[1].head()).expect("it begins");
    world.take_over(taking).expect("the other side");
    world.ask(1, ask(2, Action::Write(vec![2; BYTES]), false));
    world.settle().expect("client 1 does not know the first side");
    world.ask(0, ask(2, Action::Read, true));
    assert!(matches!(world.settle(), Err(EngineError::Forked)), "client 0 does");
}

/// A client with several asks under way gets the first answer from one history, and the next from
/// another one, that is longer.
#[test]
fn an_answer_of_another_history_is_found_while_asks_are_under_way() {
    let mut world = used(5);
    let (known, write) = (world.clients[1].head(), |byte| Action::Write(vec![byte; BYTES]));
    let fork = (world.server.history.clone(), world.server.tables.clone());
    let mut asks = world.clients[1].ask(&ask(2, write(1), false)).into_iter().collect::<Vec<_>>();
    asks.extend(world.clients[1].ask(&ask(2, Action::Read, true)));
    // Not by way of the server, which would answer again what it answered on the other side.
    let answers = |world: &mut World| -> Vec<_> {
        for ask in &asks {
            world.scribe.take(ask).expect("it opens");
            while world.step().expect("an honest scribe") {}
        }
        std::iter::from_fn(|| world.server.answer(Session(1))).collect()
    };
    let first = answers(&mut world);
    (world.server.history, world.server.tables) = fork;
    let taking = world.begin_take_over(known).expect("it begins");
    world.take_over(taking).expect("the other side");
    // A third client knows nothing, and makes this side longer.
    let mut third = Follower::new(Session(9), VOLUME, BYTES, sealer(9)).knowing(known);
    for _ in 0..3 {
        let record = third.ask(&ask(2, write(2), false)).expect("it fits");
        world.server.ask(record);
        while world.step().expect("an honest scribe") {}
    }
    let other = answers(&mut world);
    assert_eq!((first.len(), other.len()), (2, 2));
    let client = &mut world.clients[1];
    assert!(client.answer(&first[0]).expect("the first").is_some());
    let crossed = client.answer(&other[1]);
    assert!(matches!(crossed, Err(EngineError::Forked)), "{crossed:?}");
    assert!(client.answer(&first[1]).expect("of its own side").is_some());
}

/// Merges go on while the sums of batches are late. So blocks that were removed are asked for while
/// a merge has them, and it is over before they are answered.
#[test]
fn a_removed_block_that_is_asked_for_in_its_merge_stays_removed() {
    for seed in seeds(6) {
        let (mut world, mut rng) = (World::new(7, 2, seed), SplitMix64::new(seed));
        for _ in 0..60 {
            for _ in 0..8 {
                let action = match rng.below(3) {
                    0 => Action::Write(vec![rng.below(256) as u8; BYTES]),
                    1 => Action::Remove,
                    _ => Action::Read,
                };
                world.ask(rng.below(2) as usize, ask(rng.below(40), action, true));
            }
            for record in world.server.asks() {
                world.scribe.take(&record).expect("an honest server");
            }
            loop {
                match world.scribe.duty().expect("an honest server") {
                    Duty::Wait if world.server.waiting() < 2 => break,
                    Duty::Wait => {
                        let reply = world.server.reply(0).expect("one waits");
                        reply.give(&mut world.scribe).expect("an honest server");
                    }
                    duty => world.carry_out(duty).expect("its term"),
                }
            }
            world.kill().expect("an honest server");
            if rng.below(2) == 0 {
                world.settle().expect("an honest server");
            }
        }
        world.settle().expect("an honest server");
        assert!(world.answers == replay(&world), "seed {seed}");
    }
}
