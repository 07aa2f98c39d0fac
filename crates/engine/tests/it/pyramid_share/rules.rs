//! What must hold of everything that a server sees.

use oblivio_crypto::SEAL_OVERHEAD;
use oblivio_engine::pyramid::share::{Recorded, Seq, Session};
use oblivio_engine::pyramid::{
    Height, MOST_ROUNDS, Partition, PyramidConfig, TableHome, TableSlot, TableSpot,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

type Asks = Vec<(Session, Seq, Vec<TableSpot>)>;

/// What is public of the tables that live, of the batches under way and of the open merges.
#[derive(Default)]
struct Public {
    /// Each table's partition, its height, and the slots of it that were read.
    tables: BTreeMap<TableHome, (Partition, Height, BTreeSet<TableSlot>)>,
    /// The batches that were shown and not answered: the number of each, its asks, and the
    /// partitions that they show.
    shown: VecDeque<(u64, Asks, BTreeSet<Partition>)>,
    batches: u64,
    asks: u64,
    /// The open merges, by the place of their tables.
    turns: BTreeMap<TableHome, Turn>,
}

struct Turn {
    partition: Partition,
    height: Height,
    spots: Vec<TableSpot>,
    /// Batches and asks before it.
    batches: u64,
    asks: u64,
    /// Whether the scribe has its slots.
    arrived: bool,
}

/// What must hold of every list of records: S1, S2, S3, S5, S7 and S8 of the design. The first
/// record that breaks a rule, and which.
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

/// Whether these are the slots of some asks of a batch, in its order.
fn is_of_whole_asks(spots: &[TableSpot], asks: &Asks) -> bool {
    let mut rest = spots;
    for (_, _, shown) in asks {
        rest = rest.strip_prefix(&shown[..]).unwrap_or(rest);
    }
    rest.is_empty()
}

impl Public {
    fn follow(&mut self, recorded: &Recorded, config: &PyramidConfig) -> Result<(), &'static str> {
        match recorded {
            Recorded::Ask(..) | Recorded::Refuse(_) | Recorded::Save(..) => {}
            Recorded::Show(asks) => self.show(asks, config)?,
            Recorded::Tell(notice, answers) => self.tell(*notice, answers)?,
            Recorded::Turn(home, partition, height, spots) => {
                self.turn(*home, *partition, *height, spots, config)?;
            }
            Recorded::Slots(home) => {
                self.turns.get_mut(home).ok_or("slots without a turn")?.arrived = true;
            }
            Recorded::Look(_, spots) => {
                let whole = |asks: &Asks| is_of_whole_asks(spots, asks);
                let some = self.shown.iter().any(|(_, asks, _)| whole(asks));
                must(some, "S8: what is looked at was shown, each ask with all of its slots")?;
            }
            Recorded::Build(home, bytes) => {
                let height = self.turns.get(home).ok_or("a table without a turn")?.height;
                let whole = *bytes == config.slots(height) as usize * config.slot_bytes();
                must(whole && !self.tables.contains_key(home), "S3: the size of a table")?;
            }
            Recorded::Switch(home, replaced) => {
                let turn = self.turns.remove(home).ok_or("a table without a turn")?;
                must(turn.arrived, "S7: a table without the slots of its turn")?;
                replaced.iter().for_each(|home| drop(self.tables.remove(home)));
                self.tables.insert(*home, (turn.partition, turn.height, BTreeSet::new()));
            }
        }
        Ok(())
    }

    fn show(&mut self, asks: &Asks, config: &PyramidConfig) -> Result<(), &'static str> {
        if self.shown.iter().any(|(_, before, _)| before == asks) {
            return Ok(());
        }
        must(self.shown.len() < MOST_ROUNDS, "S8: so many batches are under way")?;
        let late = |turn: &Turn| self.asks >= turn.asks + config.open_asks();
        must(!self.turns.values().any(late), "S3: asks wait for a merge that is late")?;
        let mut partitions = BTreeSet::new();
        for (_, _, spots) in asks {
            partitions.extend(self.ask(spots)?);
        }
        self.shown.push_back((self.batches, asks.clone(), partitions));
        self.batches += 1;
        self.asks += asks.len() as u64;
        Ok(())
    }

    fn tell(
        &mut self,
        notice: usize,
        answers: &[(Session, Seq, usize)],
    ) -> Result<(), &'static str> {
        // A head and two numbers; then three numbers and an owner for each ask.
        must(notice == SEAL_OVERHEAD + 40 * (1 + answers.len()), "S3: the size of a notice")?;
        let told = answers.iter().map(|&(session, seq, _)| (session, seq));
        let (batch, shown, partitions) = self.shown.pop_front().ok_or("S7: no batch")?;
        let right = told.eq(shown.iter().map(|ask| (ask.0, ask.1)));
        must(right, "S7: answers in the order of their batch, and batches in theirs")?;
        let same = answers.iter().all(|answer| answer.2 == answers[0].2);
        must(same, "S7: answers of one length")?;
        let waits = |turn: &Turn| {
            turn.batches <= batch && !turn.arrived && partitions.contains(&turn.partition)
        };
        must(!self.turns.values().any(waits), "S7: answers wait for the slots of a merge")
    }

    fn turn(
        &mut self,
        home: TableHome,
        partition: Partition,
        height: Height,
        spots: &[TableSpot],
        config: &PyramidConfig,
    ) -> Result<(), &'static str> {
        if let Some(turn) = self.turns.get_mut(&home) {
            // A new scribe does not have what the old one read.
            turn.arrived = false;
            let same = turn.partition == partition && turn.height == height && turn.spots == spots;
            return must(same, "S8: a merge reads again what it read");
        }
        let other = self.turns.values().any(|turn| turn.partition == partition);
        must(!other, "S3: a merge waits for that of its partition")?;
        let mut counts: BTreeMap<TableHome, u32> = BTreeMap::new();
        for spot in spots {
            self.read(spot.home, spot.slot)?;
            *counts.entry(spot.home).or_default() += 1;
        }
        let merged = self.tables.iter().filter(|(_, table)| {
            table.0 == partition && (table.1 < height || height == Height::Base)
        });
        let whole = merged.map(|(home, table)| (*home, config.capacity(table.1)));
        must(whole.eq(counts), "S2: a merge reads C of each table")?;
        let (batches, asks, spots) = (self.batches, self.asks, spots.to_vec());
        let turn = Turn { partition, height, spots, batches, asks, arrived: false };
        self.turns.insert(home, turn);
        Ok(())
    }

    /// One slot of each table of one partition.
    fn ask(&mut self, spots: &[TableSpot]) -> Result<Option<Partition>, &'static str> {
        let Some(first) = spots.first() else { return Ok(None) };
        let partition = self.tables.get(&first.home).ok_or("no such table")?.0;
        let homes: BTreeSet<_> = spots.iter().map(|spot| spot.home).collect();
        let live = self.tables.iter().filter(|(_, table)| table.0 == partition);
        let all = live.map(|(home, _)| *home).collect::<BTreeSet<_>>() == homes;
        must(all && homes.len() == spots.len(), "S2: one slot of each table of a partition")?;
        let merging = |spot: &TableSpot| self.turns.values().any(|turn| turn.spots.contains(spot));
        must(!spots.iter().any(merging), "S5: asks read outside of an open merge")?;
        spots.iter().try_for_each(|spot| self.read(spot.home, spot.slot))?;
        Ok(Some(partition))
    }

    fn read(&mut self, home: TableHome, slot: TableSlot) -> Result<(), &'static str> {
        let table = self.tables.get_mut(&home).ok_or("no such table")?;
        must(table.2.insert(slot), "S1: a slot is read once")
    }
}
