//! Clients at the same time: nothing is lost, nothing is done twice.

use super::{BLOCKS, World, add_one, get, read, value, write};
use oblivio_splitmix::SplitMix64;
use std::sync::Arc;
use std::thread;

#[test]
fn four_clients_count_together() {
    let world = World::in_memory();
    let clients: Vec<_> = (0..4).map(|_| world.client().0).collect();
    thread::scope(|scope| {
        for (number, client) in clients.iter().enumerate() {
            scope.spawn(move || {
                let mut rng = SplitMix64::new(number as u64);
                for _ in 0..40 {
                    add_one(client, rng.below(4)).unwrap();
                }
            });
        }
    });
    let sum: u64 = (0..4).map(|index| get(&clients[0], index)).sum();
    assert_eq!(sum, 160);
    for client in clients {
        client.close().unwrap();
    }
}

#[test]
fn many_transactions_of_one_client_are_in_flight_together() {
    let world = World::in_memory();
    let client = Arc::new(world.client().0);
    let writes: Vec<_> = (0..BLOCKS / 2).map(|index| vec![write(index, index + 1)]).collect();
    assert!(client.carry_out_many(&writes).unwrap().iter().all(|answers| answers[0].done));
    let reads: Vec<_> = (0..BLOCKS / 8)
        .map(|at| (0..4).map(|part| read(at * 4 + part)).collect::<Vec<_>>())
        .collect();
    let got = client.carry_out_many(&reads).unwrap();
    let got: Vec<u64> = got.iter().flatten().map(value).collect();
    assert_eq!(got, (1..=BLOCKS / 2).collect::<Vec<_>>());
}

#[test]
fn a_client_whose_session_was_ended_goes_on_in_another_one() {
    let world = World::in_memory();
    let (one, _) = world.client();
    let (two, _) = world.client();
    two.carry_out(&[write(3, 33)]).unwrap();
    let session = two.session();
    one.end(session).unwrap();
    assert_eq!(get(&two, 3), 33);
    assert_ne!(two.session(), session);
    two.carry_out(&[write(3, 34)]).unwrap();
    assert_eq!(get(&one, 3), 34);
}

#[test]
fn a_full_volume_says_so_and_goes_on() {
    let world = World::in_memory();
    let (client, _) = world.client();
    let writes: Vec<_> = (0..BLOCKS).map(|index| vec![write(index, 1)]).collect();
    client.carry_out_many(&writes).unwrap();
    let full = client.carry_out(&[write(BLOCKS, 1)]);
    assert!(matches!(full, Err(oblivio_volume::Error::Full(_))), "{full:?}");
    client.carry_out(&[write(0, 2)]).unwrap();
    assert_eq!(get(&client, 0), 2);
}
