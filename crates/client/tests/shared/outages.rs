//! A scribe that dies, a server that is started anew, and one that stays away.

use super::{Options, World, add_one, clock, get, write};
use oblivio_store::share::{Share, StoredShare};
use oblivio_volume::Error;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn another_client_takes_the_place_of_a_scribe_that_died() {
    let world = World::in_memory();
    let mut last = None;
    for round in 0..3 {
        let (client, line) = world.client();
        for _ in 0..10 {
            add_one(&client, 5).unwrap();
        }
        // Nobody hears of it again.
        line.cut(true);
        last = Some((client, round));
    }
    let (client, _) = world.client();
    assert_eq!(get(&client, 5), 30);
    drop(last);
    client.close().unwrap();
}

#[test]
fn clients_go_on_when_the_scribe_dies_under_load() {
    let world = World::in_memory();
    let (first, line) = world.client();
    add_one(&first, 0).unwrap();
    let others: Vec<_> = (0..3).map(|_| world.client().0).collect();
    thread::scope(|scope| {
        for client in &others {
            scope.spawn(move || (0..20).for_each(|_| add_one(client, 0).unwrap()));
        }
        thread::sleep(Duration::from_millis(300));
        line.cut(true);
    });
    assert_eq!(get(&others[0], 0), 61);
    drop(first);
}

#[test]
fn a_server_that_is_started_anew_has_everything_that_was_answered() {
    let dir = tempfile::tempdir().unwrap();
    let open = || -> Arc<dyn Share> {
        loop {
            match StoredShare::open(dir.path(), clock()) {
                Ok(share) => return Arc::new(share),
                Err(error) => assert!(error.to_string().contains("in use"), "{error}"),
            }
            thread::sleep(Duration::from_millis(50));
        }
    };
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
    let client = world.client_over(&line, Options { timeout, ..World::options() });
    client.carry_out(&[write(1, 2)]).unwrap();
    world.line.lead(None);
    let begin = Instant::now();
    let failed = client.carry_out(&[write(1, 3)]);
    assert!(matches!(failed, Err(Error::Store(_))), "{failed:?}");
    assert!((timeout..timeout * 4).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    let begin = Instant::now();
    (0..10).for_each(|_| drop(client.carry_out(&[write(1, 3)]).unwrap_err()));
    assert!(begin.elapsed() < timeout * 4, "one wait in vain is enough: {:?}", begin.elapsed());
    let begin = Instant::now();
    client.close().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
}

#[test]
fn what_waited_in_vain_does_not_hold_up_what_comes_later() {
    let world = World::in_memory();
    let (first, line) = world.client();
    first.close().unwrap();
    let timeout = Duration::from_secs(1);
    let client = world.client_over(&line, Options { timeout, ..World::options() });
    client.carry_out(&[write(1, 2)]).unwrap();
    line.cut(true);
    client.carry_out(&[write(1, 3)]).unwrap_err();
    line.cut(false);
    // The late answer is read, and nobody waits for it.
    let begin = Instant::now();
    let later = loop {
        match client.carry_out(&[write(2, 4)]) {
            Ok(answers) => break answers,
            Err(_) => assert!(begin.elapsed() < Duration::from_secs(20)),
        }
    };
    assert!(later[0].done);
    assert_eq!((get(&client, 1), get(&client, 2)), (3, 4));
    client.close().unwrap();
}
