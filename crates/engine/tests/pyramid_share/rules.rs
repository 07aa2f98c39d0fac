//! What must hold of everything that a server sees.

use oblivio_engine::pyramid::share::{Recorded, Seq, Session};
use oblivio_engine::pyramid::{Height, Home, Partition, PyramidConfig, Slot, Spot};
use std::collections::{BTreeMap, BTreeSet};

/// What is public of the tables that live.
#[derive(Default)]
struct Public {
    /// Each table's partition, its height, and the slots of it that were read.
    tables: BTreeMap<Home, (Partition, Height, BTreeSet<Slot>)>,
    /// The batch that was shown and not answered.
    shown: Vec<(Session, Seq, Vec<Spot>)>,
    /// The merge under way, and its slots.
    turn: Option<(Partition, Height, Vec<Spot>)>,
}

/// What must hold of every list of records: S1, S2 and S7 of the design. The first record that
/// breaks a rule, and which.
pub fn broken(trace: &[Recorded], config: &PyramidConfig) -> Option<(usize, &'static str)> {
    let mut public = Public::default();
    trace
        .iter()
        .enumerate()
        .find_map(|(at, recorded)| public.follow(recorded, config).err().map(|rule| (at, rule)))
}

fn must(holds: bool, rule: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(rule) }
}

impl Public {
    fn follow(&mut self, recorded: &Recorded, config: &PyramidConfig) -> Result<(), &'static str> {
        match recorded {
            Recorded::Ask(..) => {}
            Recorded::Show(asks) => {
                if self.shown != *asks {
                    must(self.shown.is_empty(), "S8: a batch is shown again as it was")?;
                    asks.iter().try_for_each(|(_, _, spots)| self.ask(spots))?;
                    self.shown = asks.clone();
                }
            }
            Recorded::Tell(answers) => {
                let told = answers.iter().map(|&(session, seq, _)| (session, seq));
                let shown = std::mem::take(&mut self.shown);
                must(
                    told.eq(shown.iter().map(|ask| (ask.0, ask.1))),
                    "S7: answers in the order of their batch, right after it",
                )?;
                let same = answers.iter().all(|answer| answer.2 == answers[0].2);
                must(same, "S7: answers of one length")?;
            }
            Recorded::Turn(partition, height, spots) => {
                let turn = Some((*partition, *height, spots.clone()));
                if self.turn == turn {
                    return Ok(());
                }
                must(self.turn.is_none(), "S8: a merge reads again what it read")?;
                self.turn = turn;
                let mut counts: BTreeMap<Home, u32> = BTreeMap::new();
                for spot in spots {
                    self.read(spot.home, spot.slot)?;
                    *counts.entry(spot.home).or_default() += 1;
                }
                let merged = self.tables.iter().filter(|(_, table)| {
                    table.0 == *partition && (table.1 < *height || *height == Height::Base)
                });
                let whole = merged.map(|(home, table)| (*home, config.capacity(table.1)));
                must(whole.eq(counts), "S2: a merge reads C of each table")?;
            }
            Recorded::Build(home, bytes) => {
                let (_, height, _) = self.turn.as_ref().ok_or("a table without a turn")?;
                let whole = *bytes == config.slots(*height) as usize * config.slot_bytes();
                must(whole && !self.tables.contains_key(home), "S3: the size of a table")?;
            }
            Recorded::Switch(home, replaced) => {
                let (partition, height, _) = self.turn.take().ok_or("a table without a turn")?;
                replaced.iter().for_each(|home| drop(self.tables.remove(home)));
                self.tables.insert(*home, (partition, height, BTreeSet::new()));
            }
        }
        Ok(())
    }

    /// One slot of each table of one partition.
    fn ask(&mut self, spots: &[Spot]) -> Result<(), &'static str> {
        let Some(first) = spots.first() else { return Ok(()) };
        let partition = self.tables.get(&first.home).ok_or("no such table")?.0;
        let homes: BTreeSet<_> = spots.iter().map(|spot| spot.home).collect();
        let live = self.tables.iter().filter(|(_, table)| table.0 == partition);
        let all = live.map(|(home, _)| *home).collect::<BTreeSet<_>>() == homes;
        must(all && homes.len() == spots.len(), "S2: one slot of each table of a partition")?;
        spots.iter().try_for_each(|spot| self.read(spot.home, spot.slot))
    }

    fn read(&mut self, home: Home, slot: Slot) -> Result<(), &'static str> {
        let table = self.tables.get_mut(&home).ok_or("no such table")?;
        must(table.2.insert(slot), "S1: a slot is read once")
    }
}
