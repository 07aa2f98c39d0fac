//! A disk with a changed bit, or with a part replayed from before, never gives wrong data.

use crate::sequential_run::{Run, config, paged};
use oblivio_engine::sequential::{Flush, SequentialConfig};
use oblivio_engine::{Extent, Lost};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{every, scaled};

/// Every read of an intact disk is right. A read of a changed one is right or refused.
fn never_wrong(run: &mut Run) -> u32 {
    let mut refused = 0;
    for block in run.blocks() {
        match run.disk.read(&mut run.engine, vec![block]) {
            Ok(read) if read[0] == Err(Lost) => refused += 1,
            read => assert_eq!(read.ok(), Some(run.expected(&[block])), "{block:?} is wrong"),
        }
    }
    refused
}

fn uncached() -> SequentialConfig {
    SequentialConfig { cached_nodes: 0, cached_leaves: 0, ..config(30, 2, 2, 3, 100) }
}

#[test]
fn no_flipped_bit_gives_wrong_data() {
    for pages in [0, 1] {
        flip_every_byte(Run::new(paged(uncached(), pages)));
    }
}

fn flip_every_byte(mut run: Run) {
    let mut dice = Dice::new(5);
    for _ in 0..700 {
        let write = run.any_write(&mut dice);
        run.apply(write);
    }
    let (mut found, mut tried) = (0, 0);
    for at in (0..run.disk.bytes.len()).step_by(every(7)) {
        tried += 1;
        let bit = 1 << dice.below(8);
        run.disk.bytes[at] ^= bit;
        found += u32::from(never_wrong(&mut run) > 0);
        run.disk.bytes[at] ^= bit;
    }
    assert_eq!(never_wrong(&mut run), 0);
    // Current data is a large part of the disk.
    assert!(found > tried / 6, "{found} of {tried}");
}

#[test]
fn no_part_replayed_from_before_gives_wrong_data() {
    let mut run = Run::new(uncached());
    let mut dice = Dice::new(6);
    let mut old: Vec<Vec<u8>> = Vec::new();
    let mut refused = 0;
    let rounds = scaled(20);
    for _ in 0..rounds {
        for _ in 0..37 {
            let write = run.any_write(&mut dice);
            run.apply(write);
        }
        let now = run.disk.bytes.clone();
        for old in &old {
            // Each part that a flush writes at once, then whole levels, then everything.
            let flushes = run.engine.flushes().0.saturating_sub(12)..run.engine.flushes().0;
            let layout = run.engine.layout();
            let mut parts: Vec<Extent> =
                flushes.flat_map(|flush| layout.writes(Flush(flush))).collect();
            let mut offset = 0;
            for level in layout.schedule().levels() {
                let bytes = layout.level_bytes(level);
                parts.push(Extent { offset, bytes });
                offset += bytes;
            }
            parts.push(Extent { offset: 0, bytes: now.len() as u64 });
            for part in parts {
                let range = part.offset as usize..part.end() as usize;
                run.disk.bytes[range.clone()].copy_from_slice(&old[range.clone()]);
                refused += never_wrong(&mut run);
                run.disk.bytes[range.clone()].copy_from_slice(&now[range]);
            }
        }
        old.push(now);
        if old.len() > 4 {
            old.remove(0);
        }
    }
    assert!(u64::from(refused) > 20 * rounds, "only {refused} reads refused");
    assert_eq!(never_wrong(&mut run), 0);
}

/// A flush that a crash undid is repeated in the same places, for the same generation. Remains of
/// the first must not pass for the second, whatever they hold: the maps name exact bytes.
#[test]
fn what_a_crash_left_behind_does_not_come_back() {
    let mut run = Run::new(uncached());
    let mut dice = Dice::new(8);
    let mut refused = 0;
    let mut write = |run: &mut Run, count: u64| {
        for _ in 0..count {
            let write = run.any_write(&mut dice);
            run.apply(write);
        }
    };
    for _ in 0..100 {
        // To the start of a turn of two flushes of two writes.
        write(&mut run, 12);
        let state = run.engine.state().expect("idle");
        let (durable, newest) = (run.log.len(), run.newest.clone());
        write(&mut run, 2);
        let undone = run.disk.bytes.clone();
        let extents = run.engine.layout().writes(Flush(run.engine.flushes().0 - 1));
        run.log.truncate(durable);
        run.newest = newest;
        run.restore(&state, None);
        // Until the generation of these flushes is read.
        write(&mut run, 4);
        let now = run.disk.bytes.clone();
        for part in extents {
            let range = part.offset as usize..part.end() as usize;
            run.disk.bytes[range.clone()].copy_from_slice(&undone[range.clone()]);
            refused += never_wrong(&mut run);
            run.disk.bytes[range.clone()].copy_from_slice(&now[range]);
        }
        assert_eq!(never_wrong(&mut run), 0);
    }
    assert!(refused > 100, "only {refused} reads refused");
}
