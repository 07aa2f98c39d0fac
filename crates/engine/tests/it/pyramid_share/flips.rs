//! Bits of stored slots that change right before somebody reads them, for the time of that read:
//! each is found at it, the same slots are read a second time, and nothing is lost. `just
//! pyramid-flips` tries more of them.

use super::*;
use oblivio_engine::pyramid::share::BatchNumber;
use oblivio_testkit::campaign::{scaled, seed};

/// Flips in the life of one volume.
const FLIPS_OF_VOLUME: u64 = 25;

/// What reads the slot that was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// The asks of a batch: the server adds up the slots of each.
    Batch(BatchNumber),
    /// The merge that makes the table of this place.
    Merge(TableHome),
}

/// Who reads for a duty, and which slots.
fn reads(duty: &Duty) -> Option<(Reader, Vec<TableSpot>)> {
    match duty {
        Duty::Show(show) => {
            let spots = show.asks.iter().flat_map(|(_, _, spots)| spots.clone()).collect();
            Some((Reader::Batch(show.batch), spots))
        }
        Duty::Turn(turn) => Some((Reader::Merge(turn.home), turn.spots.clone())),
        _ => None,
    }
}

/// Goes on until slots are read, and changes a bit of one of them for the time of the read. None
/// if nothing more is to be done.
fn flip(world: &mut World, rng: &mut SplitMix64) -> Option<Reader> {
    let slot_bytes = world.config.slot_bytes();
    loop {
        for record in world.server.asks() {
            world.scribe.take(&record).expect("an honest server");
        }
        let duty = world.scribe.duty().expect("an honest server");
        if duty == Duty::Wait {
            let number = rng.below((world.server.waiting() as u64).max(1));
            world.server.reply(number as usize)?.give(&mut world.scribe).expect("honest");
            continue;
        }
        let read = reads(&duty).filter(|(_, spots)| !spots.is_empty() && rng.below(4) == 0);
        let Some((reader, spots)) = read else {
            world.carry_out(duty).expect("its term");
            continue;
        };
        let spot = spots[rng.below(spots.len() as u64) as usize];
        let at = spot.slot.0 as usize * slot_bytes + rng.below(slot_bytes as u64) as usize;
        let bit = 1 << rng.below(8);
        world.server.tables.get_mut(&spot.home).expect("it lives")[at] ^= bit;
        world.carry_out(duty).expect("its term");
        world.server.tables.get_mut(&spot.home).expect("it lives")[at] ^= bit;
        return Some(reader);
    }
}

/// What was read arrives: it is found, and read again before an answer or a table is made of it.
fn must_be_found(world: &mut World, reader: Reader) {
    let from = world.server.trace.len();
    let again = |recorded: &Recorded| match (recorded, reader) {
        (Recorded::Look(batch, _), Reader::Batch(read)) => *batch == read,
        (Recorded::Turn(home, ..), Reader::Merge(read)) => *home == read,
        _ => false,
    };
    let used = |recorded: &Recorded| match (recorded, reader) {
        (Recorded::Build(home, _), Reader::Merge(read)) => *home == read,
        _ => false,
    };
    while !world.server.trace[from..].iter().any(again) {
        assert!(!world.server.trace[from..].iter().any(used), "a table was made of it");
        assert!(world.step().expect("an honest server"), "it was not found");
    }
}

/// A volume whose slots change at some reads. After some, another client becomes the scribe. Counts
/// the flips in reads of asks and of merges.
fn volume(seed: u64, flips: u64) -> [u64; 2] {
    let (mut world, mut rng) = (World::new(7, 3, seed), SplitMix64::new(seed));
    let mut found = [0, 0];
    for id in 0..100 {
        world.ask(0, ask(id, Action::Write(vec![id as u8; BYTES]), false));
    }
    world.settle().expect("an honest server");
    while found[0] + found[1] < flips {
        for _ in 0..1 + rng.below(12) {
            let (client, asks) = (rng.below(3) as usize, any_group(&mut rng, 100));
            world.transaction(client, asks);
        }
        if let Some(reader) = flip(&mut world, &mut rng) {
            must_be_found(&mut world, reader);
            found[usize::from(matches!(reader, Reader::Merge(_)))] += 1;
            world.fetch().expect("what was answered before is right");
            if rng.below(3) == 0 {
                let taking = world.begin_take_over(world.clients[0].head());
                world.take_over(taking.expect("an honest state")).expect("honest records");
            }
        }
    }
    world.settle().expect("an honest server");
    assert!(world.answers == replay(&world), "seed {seed}");
    assert_eq!(broken(&world.server.trace, &world.config), None, "seed {seed}");
    found
}

#[test]
fn every_bit_that_changes_for_one_read_is_found_at_it_and_nothing_is_lost() {
    let (flips, first) = (scaled(100), seed(0));
    let mut found = [0, 0];
    for seed in first..first + flips.div_ceil(FLIPS_OF_VOLUME) {
        let left = flips - found[0] - found[1];
        let more = volume(seed, left.min(FLIPS_OF_VOLUME));
        found.iter_mut().zip(more).for_each(|(all, more)| *all += more);
    }
    let [asks, merges] = found;
    println!("{flips} flips: {asks} in reads of asks and {merges} in those of merges found");
    assert_eq!(asks + merges, flips);
    assert!(asks > flips / 20 && merges > flips / 20, "{asks} and {merges}");
}
