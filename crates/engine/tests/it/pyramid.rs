//! The trace of a pyramid as data.

use crate::plain::{BYTES, read, write};
use crate::pyramid_workloads::workloads;
use crate::seeds;
use oblivio_engine::pyramid::{PyramidConfig, PyramidKeys, PyramidOram, WITHIN_TABLE};
use oblivio_engine::{BlockId, Carrier, EngineError, Read, Write};
use oblivio_testkit::SplitMix64;
use oblivio_testkit::campaign::scaled;
use std::collections::{BTreeMap, BTreeSet};

pub const SLOT: u64 = 64 + 56;

/// One event at the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Slots of tables, by the table's place.
    Read(Vec<(u64, u64)>),
    /// A table, and its slots.
    Write(u64, u64),
}

/// Tables in memory, with the trace.
#[derive(Default)]
pub struct Tables {
    pub stored: BTreeMap<u64, Vec<u8>>,
    /// The slots of each that were read.
    read: BTreeMap<u64, BTreeSet<u64>>,
    pub trace: Vec<Seen>,
}

fn place(offset: u64) -> (u64, u64) {
    (offset >> WITHIN_TABLE, offset & ((1 << WITHIN_TABLE) - 1))
}

impl Carrier for Tables {
    type Error = EngineError;

    fn read(&mut self, mut read: Read<'_>) -> Result<(), EngineError> {
        let mut slots = Vec::new();
        for (extent, part) in read.parts() {
            let (home, at) = place(extent.offset);
            assert!(extent.bytes == SLOT && at.is_multiple_of(SLOT), "one slot");
            let slot = at / SLOT;
            assert!(self.read.entry(home).or_default().insert(slot), "slot {slot} twice");
            part.copy_from_slice(&self.stored[&home][at as usize..][..SLOT as usize]);
            slots.push((home, slot));
        }
        self.trace.push(Seen::Read(slots));
        Ok(())
    }

    fn write(&mut self, write: Write<'_>) -> Result<(), EngineError> {
        for piece in write.parts() {
            let (home, at) = place(piece.extent.offset);
            assert_eq!(at, 0, "a whole table");
            self.read.remove(&home);
            self.trace.push(Seen::Write(home, piece.extent.bytes / SLOT));
            self.stored.insert(home, piece.data.to_vec());
        }
        Ok(())
    }
}

fn config(log_blocks: u32) -> PyramidConfig {
    PyramidConfig::new(BYTES, 1 << log_blocks, BYTES << (log_blocks - 2))
}

fn engine(config: PyramidConfig, seed: u64) -> PyramidOram {
    PyramidOram::new(config, PyramidKeys::from_seed(seed)).expect("a sound config")
}

/// What a run shows, but for the partitions: the tables read by each round, and those written.
pub fn sizes(trace: &[Seen]) -> (usize, Vec<(u64, usize)>) {
    let writes = trace.iter().enumerate().filter_map(|(at, seen)| match seen {
        Seen::Write(_, slots) => {
            let Some(Seen::Read(read)) = at.checked_sub(1).map(|at| &trace[at]) else {
                panic!("a merge reads first");
            };
            Some((*slots, read.len()))
        }
        Seen::Read(_) => None,
    });
    (trace.len(), writes.collect())
}

#[test]
fn merges_are_equal_to_the_slot_for_every_workload_and_the_stash_is_bounded() {
    let config = config(10);
    let mut shown: Option<(usize, Vec<(u64, usize)>)> = None;
    for (name, mut next) in workloads(1 << 10) {
        let (mut engine, mut store) = (engine(config, 9), Tables::default());
        for id in 0..1 << 10 {
            engine.access(&mut store, vec![write(id, id as u8)]).expect("sound");
        }
        store.trace.clear();
        for ask in 0..scaled(8_000) {
            let (id, byte) = (next(ask), ask as u8);
            let op = if ask % 3 == 0 { write(id, byte) } else { read(id) };
            engine.access(&mut store, vec![op]).expect("sound");
        }
        let (now, peak) = engine.stash_blocks();
        let most = 1usize << config.log_stash;
        assert!(now <= most && peak * 4 <= most * 3, "{name}: {peak} of {most} in the stash");
        assert!(engine.stored_slots() <= config.most_slots());
        let sizes = sizes(&store.trace);
        assert!(shown.get_or_insert(sizes.clone()) == &sizes, "{name} shows another schedule");
    }
}

/// The partition of an ask is that of the tables that it reads. Here each has one of its own: the
/// places of tables are known from their writes.
#[test]
fn shown_partitions_are_uniform_for_one_block_and_for_many() {
    let config = config(12);
    let partitions = u64::from(config.partitions());
    for hot in [true, false] {
        let (mut engine, mut store) = (engine(config, 4), Tables::default());
        for id in 0..1 << 12 {
            engine.access(&mut store, vec![write(id, 1)]).expect("sound");
        }
        let mut rng = SplitMix64::new(8);
        let mut counts = BTreeMap::<u64, u64>::new();
        let asks = scaled(12_000);
        for _ in 0..asks {
            let id = if hot { 7 } else { rng.below(1 << 12) };
            let shown = engine.partition_shown(BlockId(id)).expect("it exists");
            engine.access(&mut store, vec![read(id)]).expect("sound");
            *counts.entry(u64::from(shown.0)).or_default() += 1;
        }
        let expected = asks as f64 / partitions as f64;
        let square = |partition| {
            let count = counts.get(&partition).copied().unwrap_or(0) as f64;
            (count - expected).powi(2) / expected
        };
        let chi: f64 = (0..partitions).map(square).sum();
        // Mean P - 1, standard deviation sqrt(2P); six of them.
        let most = partitions as f64 + 6.0 * (2.0 * partitions as f64).sqrt();
        assert!(chi < most, "chi square {chi:.1} of at most {most:.1}, hot: {hot}");
    }
}

#[test]
fn every_changed_byte_is_found_at_the_read_that_meets_it() {
    let config = config(8);
    let (mut found, rounds) = (0, seeds(100));
    for round in rounds.clone() {
        let (mut engine, mut store) = (engine(config, round), Tables::default());
        for id in 0..256 {
            engine.access(&mut store, vec![write(id % 200, id as u8)]).expect("sound");
        }
        let mut rng = SplitMix64::new(round);
        // One byte of each slot that was not read yet, whatever it holds.
        for (home, bytes) in &mut store.stored {
            let read = store.read.get(home);
            for slot in 0..bytes.len() as u64 / SLOT {
                if read.is_none_or(|read| !read.contains(&slot)) {
                    let at = (slot * SLOT + rng.below(SLOT)) as usize;
                    bytes[at] ^= 1 << rng.below(8);
                }
            }
        }
        match engine.access(&mut store, vec![read(rng.below(256))]) {
            Err(EngineError::TamperedTable { .. }) => found += 1,
            // A partition without tables shows nothing.
            Ok(_) => assert_eq!(store.trace.last(), Some(&Seen::Read(Vec::new()))),
            Err(error) => panic!("{error}"),
        }
    }
    let tried = rounds.end - rounds.start;
    assert!(found * 6 > tried * 5, "{found} of {tried} met a table");
}
