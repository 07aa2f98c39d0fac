//! A server whose tables are in a store somewhere else.

use super::{
    Line, World, add_one, clock, eventually, free, get, name, passphrase, read, value, write,
};
use oblivio_client::{Client, NewShared, create};
use oblivio_crypto::KdfParams;
use oblivio_engine::Action;
use oblivio_engine::pyramid::Operation;
use oblivio_engine::pyramid::share::Ask;
use oblivio_share::{StoredShare, Tables};
use oblivio_store::share::{LEASE, Share};
use oblivio_store::{Held, MemoryStore, Objects};
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_testkit::latency::Latency;
use oblivio_testkit::share::TestClock;
use oblivio_testkit::{LatencyStore, SplitMix64};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

fn open(dir: &Path, store: Arc<dyn Objects>, part_bytes: u64) -> Arc<dyn Share> {
    let tables = || Tables { store: Arc::clone(&store), random: [7; 16], part_bytes };
    let clock = TestClock::default();
    let share = eventually("the folder is free", || {
        free(StoredShare::with_tables(dir, clock.clock(), tables()))
    });
    clock.pass(LEASE);
    Arc::new(share)
}

#[test]
fn a_server_with_tables_elsewhere_is_started_anew_and_has_everything() {
    let (dir, store) = (tempfile::tempdir().unwrap(), Arc::new(MemoryStore::new()));
    let world = World::over(open(dir.path(), store.clone(), 3000));
    let (client, _) = world.client();
    let (other, _) = world.client();
    for start in 1..=3 {
        thread::scope(|scope| {
            scope
                .spawn(|| (0..40).for_each(|at| drop(client.carry_out(&[write(at, at)]).unwrap())));
            (0..10).for_each(|_| add_one(&other, 100).unwrap());
        });
        world.line.lead(None);
        world.line.lead(Some(open(dir.path(), store.clone(), 3000)));
        assert_eq!((get(&other, 39), get(&client, 100)), (39, start * 10));
    }
    client.close().unwrap();
    other.close().unwrap();
    let tables = store.list().unwrap().iter().filter(|(name, _)| name.starts_with("t-")).count();
    assert!(tables > 0, "they are there");
    let notes = dir.path().join("tables").read_dir().unwrap();
    assert!(notes.into_iter().all(|note| note.unwrap().metadata().unwrap().len() < 100));
}

/// Blocks of the measured volume, their bytes, and asks of a round.
const LARGE: u64 = 1 << 12;
const LARGE_BYTES: usize = 4096;
const ASKS: u64 = 512;

/// Writes its number into a block of that volume.
fn write_large(at: u64) -> Ask {
    let mut content = vec![0; LARGE_BYTES];
    content[..8].copy_from_slice(&at.to_le_bytes());
    Ask::new(name(at), Operation { action: Action::Write(content), and_read: false })
}

/// A volume with a client, half of whose blocks were written.
fn filled(share: Arc<dyn Share>) -> (World, Client) {
    let capacity_bytes = LARGE * LARGE_BYTES as u64;
    let new = NewShared { block_bytes: LARGE_BYTES, capacity_bytes, kdf: KdfParams::TEST };
    let keyed = create(&*share, &new, &passphrase()).unwrap();
    let world = World { line: Line::to(share), keyed };
    let (client, _) = world.client();
    for some in (0..LARGE / 2).collect::<Vec<_>>().chunks(64) {
        let asks: Vec<_> = some.iter().map(|at| vec![write_large(*at)]).collect();
        client.carry_out_many(&asks).unwrap();
    }
    (world, client)
}

/// Asks, half of them writes, 64 under way: how many a second.
fn round(client: &Client, dice: &mut SplitMix64) -> f64 {
    let begun = Instant::now();
    for _ in 0..ASKS / 64 {
        let blocks: Vec<u64> = (0..64).map(|_| dice.below(LARGE / 2)).collect();
        let asks: Vec<Vec<Ask>> = blocks
            .iter()
            .map(|at| if dice.below(2) == 0 { vec![write_large(*at)] } else { vec![read(*at)] })
            .collect();
        for (at, answers) in blocks.iter().zip(client.carry_out_many(&asks).unwrap()) {
            let found = answers[0].content.is_some().then(|| value(&answers[0]));
            assert!(found.is_none_or(|found| found == *at), "block {at}");
        }
    }
    ASKS as f64 / begun.elapsed().as_secs_f64()
}

/// `just share-tables`: tables in the server's folder and behind a line, by turns.
#[test]
#[ignore = "long: a measurement"]
fn long_speed_beside_tables_in_the_folder() {
    let (rounds, delay) = (scaled(5), Duration::from_millis(20));
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let far = LatencyStore::new(MemoryStore::new(), Latency::new(delay, 12_500_000));
    let there = open(dirs[1].path(), Arc::new(far), 4 << 20);
    let here: Arc<dyn Share> = Arc::new(StoredShare::open(dirs[0].path(), clock()).unwrap());
    let worlds = [filled(here), filled(there)];
    let mut dice = SplitMix64::new(seed(5));
    let mut speeds = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (at, (_, client)) in worlds.iter().enumerate() {
            speeds[at].push(round(client, &mut dice));
        }
    }
    let [here, there] = speeds.map(|mut speeds| {
        speeds.sort_by(f64::total_cmp);
        speeds[speeds.len() / 2]
    });
    println!(
        "tables in the folder: {here:.0} asks a second; behind {delay:?} and 100 Mbit/s: \
         {there:.0}; {:.2} of it (medians of {rounds} rounds by turns)",
        there / here
    );
    for (_, client) in worlds {
        client.close().unwrap();
    }
}
