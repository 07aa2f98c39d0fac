//! A scribe that dies, a server that is started anew, and one that stays away.

use super::{ClientOptions, LONG, World, add_one, eventually, get, read, started, value, write};
use oblivio_share::MemoryShare;
use oblivio_store::share::{LEASE, ScribeTerm, Share};
use oblivio_testkit::share::TestClock;
use oblivio_volume::Error;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// A volume whose time the test tells: leases end when it says so.
fn timed() -> (World, TestClock) {
    let clock = TestClock::default();
    (World::over(Arc::new(MemoryShare::new(clock.clock()))), clock)
}

/// Lets leases end until there is another scribe. A renewal may still be under way.
fn pass_to_another(world: &World, clock: &TestClock, before: ScribeTerm) {
    eventually("another client is the scribe", || {
        clock.pass(LEASE);
        (world.line.status().unwrap().term != before).then_some(())
    });
}

#[test]
fn another_client_takes_the_place_of_a_scribe_that_died() {
    let (world, clock) = timed();
    let mut gone = Vec::new();
    for _ in 0..3 {
        let before = world.line.status().unwrap().term;
        let (client, line) = world.client();
        thread::scope(|scope| {
            scope.spawn(|| pass_to_another(&world, &clock, before));
            (0..10).for_each(|_| add_one(&client, 5).unwrap());
        });
        // Nobody hears of it again.
        line.cut(true);
        gone.push(client);
    }
    let before = world.line.status().unwrap().term;
    let (client, _) = world.client();
    thread::scope(|scope| {
        scope.spawn(|| pass_to_another(&world, &clock, before));
        assert_eq!(get(&client, 5), 30);
    });
    drop(gone);
    client.close().unwrap();
}

#[test]
fn clients_go_on_when_the_scribe_dies_under_load() {
    let (world, clock) = timed();
    let (first, line) = world.client();
    add_one(&first, 0).unwrap();
    let before = world.line.status().unwrap().term;
    let others: Vec<_> = (0..3).map(|_| world.client().0).collect();
    thread::scope(|scope| {
        for client in &others {
            scope.spawn(move || (0..20).for_each(|_| add_one(client, 0).unwrap()));
        }
        // They are at work.
        while get(&first, 0) < 10 {}
        line.cut(true);
        pass_to_another(&world, &clock, before);
    });
    assert_eq!(get(&others[0], 0), 61);
    drop(first);
}

#[test]
fn a_server_that_is_started_anew_has_everything_that_was_answered() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Arc::new(started(dir.path()));
    let world = World::over(open());
    let (client, _) = world.client();
    let (other, _) = world.client();
    for start in 1..=3 {
        for _ in 0..8 {
            add_one(&client, start).unwrap();
            add_one(&other, 0).unwrap();
        }
        world.line.lead(None);
        world.line.lead(Some(open()));
        assert_eq!((get(&other, start), get(&client, 0)), (8, start * 8));
    }
    client.close().unwrap();
    other.close().unwrap();
}

#[test]
fn every_wait_has_an_end_when_the_server_is_away() {
    let world = World::in_memory();
    let (first, line) = world.client();
    first.carry_out(&[write(1, 1)]).unwrap();
    first.close().unwrap();
    let timeout = Duration::from_millis(700);
    let client = world.client_over(&line, ClientOptions { timeout, ..World::options() });
    eventually("it is written", || client.carry_out(&[write(1, 2)]).ok());
    world.line.lead(None);
    // How long each of them waits is tested where the client's time is: here, that it ends.
    let (tell, told) = channel();
    thread::spawn(move || {
        for _ in 0..11 {
            tell.send(client.carry_out(&[write(1, 3)]).map(drop)).unwrap();
        }
        tell.send(client.close()).unwrap();
    });
    let next = || told.recv_timeout(LONG).expect("it ends");
    for _ in 0..11 {
        let failed = next();
        assert!(matches!(failed, Err(Error::Store(_))), "{failed:?}");
    }
    next().unwrap();
}

#[test]
fn what_waited_in_vain_does_not_hold_up_what_comes_later() {
    let world = World::in_memory();
    let (first, line) = world.client();
    first.close().unwrap();
    let timeout = Duration::from_millis(700);
    let client = world.client_over(&line, ClientOptions { timeout, ..World::options() });
    // On a busy computer, any of these may wait in vain.
    let ask = |ask| eventually("an answer", || client.carry_out(std::slice::from_ref(&ask)).ok());
    ask(write(1, 2));
    line.cut(true);
    client.carry_out(&[write(1, 3)]).unwrap_err();
    line.cut(false);
    // The late answer is read, and nobody waits for it.
    assert!(ask(write(2, 4))[0].done);
    assert_eq!([read(1), read(2)].map(|it| value(&ask(it)[0])), [3, 4]);
    client.close().unwrap();
}
