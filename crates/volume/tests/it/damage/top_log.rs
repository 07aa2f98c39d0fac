//! The log of the top of a tree, after a session that did not end well: damage to it costs the
//! blocks whose entries it hit, and a smaller memory costs nothing.

use super::around::{expect, inspected, reopened};
use super::world::{SAMPLE, Scale, World, content, passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{Held, Log, MemoryStore, Objects};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_volume::{BlockSpace, MemoryKeeper, OpenOptions, TopLogs, Volume};
use std::sync::Arc;

const LOG: &str = "top-log";
/// Enough for the whole tree.
const MEMORY: usize = 1 << 20;

/// A volume whose last session died after commits with the top in a log.
fn logged() -> World {
    let mut world = World::make(Scale { memory_bytes: MEMORY, ..SAMPLE });
    let store = Arc::new(world.disk.snapshot());
    let keeper = Box::new(MemoryKeeper::knowing(world.known));
    let options = OpenOptions {
        memory_bytes: MEMORY,
        keeper: Some(keeper),
        top_logs: TopLogs::Always,
        ..OpenOptions::default()
    };
    let mut volume = Volume::open(store.clone(), &passphrase(), options).expect("sound");
    for round in 100..103 {
        let mut write = |volume: &mut Volume, id: u64| {
            let data = content(id, round, world.scale.block_bytes);
            volume.access(vec![BlockOp { id: BlockId(id), action: Action::Write(data) }])?;
            world.versions.insert(id, round);
            Ok::<_, oblivio_volume::Error>(())
        };
        // Enough writes for a long journal, which makes a commit due.
        for at in 0..1200 {
            write(&mut volume, at * 7 % world.scale.blocks).expect("room");
        }
        let epoch = volume.known().epoch;
        volume.commit().expect("memory");
        assert!(volume.known().epoch > epoch, "the log was in a commit");
    }
    world.known = volume.known();
    drop(volume);
    world.disk = store.snapshot();
    world
}

fn log_bytes(disk: &MemoryStore) -> u64 {
    disk.len(LOG).expect("memory").unwrap_or(0)
}

#[test]
fn damage_to_the_log_costs_blocks_and_is_named() {
    let world = logged();
    let len = log_bytes(&world.disk);
    assert!(len > 0);
    let (mut lost_blocks, first) = (0, seed(1));
    for seed in first..first + scaled(8) {
        let mut dice = Dice::new(seed);
        let disk = Arc::new(world.disk.snapshot());
        match seed % 4 {
            0 => disk.delete(&[LOG]).expect("memory"),
            1 => disk.truncate(LOG, dice.below(len)).expect("memory"),
            _ => (0..20).for_each(|_| {
                let bit = 1 << dice.below(8);
                disk.corrupt(LOG, dice.below(len), |byte| *byte ^= bit).expect("in range");
            }),
        }
        let mut volume = world.open(disk.clone()).expect("it opens");
        let named = volume.damaged().len();
        assert!(volume.damaged().iter().all(|place| place.object == LOG));
        let (_, lost) = inspected(&mut volume);
        let gone = seed % 4 == 0;
        assert!(gone || lost.len() <= named, "{} blocks of {named} entries", lost.len());
        lost_blocks += lost.len();
        expect(&world, &mut volume, &lost, LOG);
        volume.finish().expect("it commits");
        assert_eq!(log_bytes(&disk), 0, "a clean end has no log");
        let known = volume.known();
        drop(volume);
        let mut again = reopened(&world, disk.into(), known);
        assert_eq!(again.damaged(), []);
        expect(&world, &mut again, &lost, "later");
    }
    assert!(lost_blocks > 100, "{lost_blocks} blocks");
}

/// Then the log ends with the next commit.
#[test]
fn a_log_fits_into_a_smaller_memory_later() {
    let world = logged();
    for memory_bytes in [MEMORY / 16, MEMORY / 2, MEMORY] {
        let disk = Arc::new(world.disk.snapshot());
        let options = OpenOptions {
            memory_bytes,
            keeper: Some(Box::new(MemoryKeeper::knowing(world.known))),
            ..OpenOptions::default()
        };
        let mut volume = Volume::open(disk.clone(), &passphrase(), options).expect("it opens");
        assert_eq!(volume.damaged(), []);
        expect(&world, &mut volume, &Default::default(), "a smaller memory");
        volume.verify(&mut |_, _| {}).expect("it is whole");
        assert_eq!(log_bytes(&disk), 0, "everything is in buckets");
    }
}
