//! The engine's memory, serialized, at a moment when no round is under way. Its size follows from
//! the parameters, and from the merges that are open. All numbers are little-endian:
//!
//! ```text
//! version 8 = 2 | asks 8 | turns 8 | places of tables so far 8 |
//! for each partition: asks before its newest base 8 | tables 8, and for each of them
//!     place 8 | height 8 (2^64 - 1: base) | attempt 16 | blocks when made 8 | reads 8 |
//!     for each place for a block, whether it was read: a bit, in words of 64
//! blocks 8, then owner 16 | number 8 | label 8 | stamp 8 | whereabouts 8 | place 4 | slot 4 each,
//!     padded to n + q of them. Whereabouts: 0 stash, 1 with a merge, from the stash, 2 table,
//!     3 with a merge, from a table
//! stash 8, then exists 8 | block each, by partition and age, padded to a multiple of q. Exists: 0
//!     no, 1 yes, 2 yes, and its content is lost
//! open merges 8, and for each of them
//!     partition 8 | height 8 | place 8 | asks before it 8 | of a turn 8 | blocks 8 | left 8 |
//!     owner 16, number 8 of each block, padded to the places of its table, and 16
//!     of a turn: blocks from the stash 8, then exists 8 | block each, padded to u of them
//! removed owners 8, then owner 16 | number 8 | stamp 8 each, padded to n/4 of them
//! ```

mod merges;

use super::homes::Homes;
use super::ids::{Height, Name, Partition, Stamp, TableHome, TableSlot, TableSpot};
use super::oram::{Entry, PyramidOram, Whereabouts};
use super::table::Table;
use crate::wire::{Reader, Writer};
use crate::{EngineError, Label, Result};
use oblivio_crypto::{Attempt, TableKeys};

const VERSION: u64 = 2;
const BASE: u64 = u64::MAX;
const ENTRY: usize = 24 + 4 * 8;
const STASH: u64 = 0;
const MERGE_OF_STASH: u64 = 1;
const TABLE: u64 = 2;
const MERGE_OF_TABLE: u64 = 3;
/// No counter reaches this: beyond it, sums would overflow.
const MOST_COUNT: u64 = 1 << 56;

fn wrong(why: &'static str) -> EngineError {
    EngineError::State(why)
}

fn write_name(out: &mut Writer<'_>, name: Name) {
    out.bytes(&name.owner);
    out.u64(name.index);
}

fn read_name(input: &mut Reader<'_>) -> Result<Name> {
    let mut owner = [0; 16];
    owner.copy_from_slice(input.bytes(16)?);
    Ok(Name { owner, index: input.u64()? })
}

fn height_to_word(height: Height) -> u64 {
    match height {
        Height::Level(level) => u64::from(level),
        Height::Base => BASE,
    }
}

impl PyramidOram {
    /// Appends everything that is only in memory. [`Self::restore`] reads it.
    ///
    /// # Errors
    /// `Invalid` while a round is under way, or waits to be resumed.
    pub fn checkpoint(&self, out: &mut Vec<u8>) -> Result<()> {
        self.expect_open()?;
        if !self.rounds.is_empty() {
            return Err(EngineError::Invalid("a round must come first".into()));
        }
        let mut out = Writer(out);
        out.words(&[VERSION, self.asks, self.turns, u64::from(self.homes.count())]);
        for (tables, based) in self.tables.iter().zip(self.forgets.bases()) {
            out.words(&[*based, tables.len() as u64]);
            tables.iter().for_each(|table| self.write_table(&mut out, table));
        }
        self.write_index(&mut out);
        let waiting: Vec<Name> = self.stash.iter().map(|(_, name)| name).collect();
        self.write_contents(
            &mut out,
            &waiting,
            waiting.len().max(1).next_multiple_of(self.stash_asks()),
        );
        self.write_merges(&mut out)?;
        self.write_forgets(&mut out);
        Ok(())
    }

    fn stash_asks(&self) -> usize {
        1 << self.config.log_stash
    }

    fn write_table(&self, out: &mut Writer<'_>, table: &Table) {
        out.words(&[u64::from(table.home.0), height_to_word(table.height)]);
        out.bytes(&table.keys.attempt().0);
        out.words(&[table.made_with() as u64, u64::from(table.reads)]);
        let mut words = vec![0u64; self.config.capacity(table.height).div_ceil(64) as usize];
        for (at, shown) in table.shown().enumerate() {
            words[at / 64] |= u64::from(shown) << (at % 64);
        }
        out.words(&words);
    }

    fn write_index(&self, out: &mut Writer<'_>) {
        let mut names: Vec<&Name> = self.index.keys().collect();
        names.sort_unstable();
        out.u64(names.len() as u64);
        for name in &names {
            let Entry { label, stamp, at } = self.index[name];
            let (whereabouts, spot) = match at {
                Whereabouts::Stash => (STASH, None),
                Whereabouts::Merge(None) => (MERGE_OF_STASH, None),
                Whereabouts::Table(spot) => (TABLE, Some(spot)),
                Whereabouts::Merge(Some(spot)) => (MERGE_OF_TABLE, Some(spot)),
            };
            let word = |TableSpot { home, slot }| u64::from(home.0) << 32 | u64::from(slot.0);
            write_name(out, **name);
            out.words(&[label.0, stamp.0, whereabouts, spot.map_or(0, word)]);
        }
        out.zeros((self.most_entries() as usize).saturating_sub(names.len()) * ENTRY);
    }

    /// Blocks of the index at most: those that exist, and removed ones in the stash.
    fn most_entries(&self) -> u64 {
        self.config.blocks() + self.stash_asks() as u64
    }

    /// Blocks outside of tables, padded to `room` of them, one at least.
    fn write_contents(&self, out: &mut Writer<'_>, names: &[Name], room: usize) {
        let block_bytes = self.config.block_bytes;
        out.u64(names.len() as u64);
        for name in names {
            let content = self.stash.content(*name);
            out.u64(match content {
                Some(_) => 1,
                None if self.stash.is_lost(*name) => 2,
                None => 0,
            });
            match content {
                Some(content) => out.bytes(content),
                None => out.zeros(block_bytes),
            }
        }
        out.zeros((room - names.len()) * (8 + block_bytes));
    }

    fn read_contents(&mut self, input: &mut Reader<'_>, names: &[Name], room: usize) -> Result<()> {
        if input.u64()? != names.len() as u64 {
            return Err(wrong("another number of blocks outside of tables"));
        }
        for &name in names {
            let exists = input.u64()?;
            let content = input.bytes(self.config.block_bytes)?;
            match exists {
                0 => self.stash.remove(name),
                1 => self.stash.put(name, content.to_vec()),
                2 => self.stash.lose(name),
                _ => return Err(wrong("neither there nor not")),
            }
        }
        let padding = (room - names.len()) * (8 + self.config.block_bytes);
        input.bytes(padding).map(drop)
    }

    fn write_forgets(&self, out: &mut Writer<'_>) {
        out.u64(self.forgets.len());
        for (name, stamp) in self.forgets.iter() {
            write_name(out, name);
            out.u64(stamp.0);
        }
        let room = self.config.most_forgets().saturating_sub(self.forgets.len());
        out.zeros(room as usize * 32);
    }

    fn read_forgets(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let (count, most) = (input.u64()?, self.config.most_forgets());
        if count > most {
            return Err(wrong("too many removed owners"));
        }
        for _ in 0..count {
            let (name, stamp) = (read_name(input)?, Stamp(input.u64()?));
            if stamp.0 >= self.asks {
                return Err(wrong("an owner is removed later"));
            }
            self.forgets.add(name, stamp);
        }
        input.bytes((most - count) as usize * 32).map(drop)
    }

    /// Loads the state of [`Self::checkpoint`]. The engine must be new, of the same parameters.
    ///
    /// # Errors
    /// `State` when the bytes are not such a state.
    pub fn restore(&mut self, state: &[u8]) -> Result<()> {
        let restored = self.read_state(state);
        self.close_on_error(restored)
    }

    fn read_state(&mut self, state: &[u8]) -> Result<()> {
        let mut input = Reader(state);
        if input.u64()? != VERSION {
            return Err(wrong("unknown version"));
        }
        (self.asks, self.turns) = (input.u64()?, input.u64()?);
        if self.asks > MOST_COUNT || self.turns > self.config.turns_due(self.asks) {
            return Err(wrong("a counter is out of range"));
        }
        let homes = u32::try_from(input.u64()?).map_err(|_| wrong("too many tables"))?;
        self.homes = Homes::all(homes.min(self.most_homes()));
        for partition in 0..self.tables.len() {
            let based = input.u64()?.min(self.asks);
            self.forgets.based(Partition(partition as u32), based);
            for _ in 0..input.u64()? {
                let table = self.read_table(&mut input)?;
                let tables = &mut self.tables[partition];
                if tables.last().is_some_and(|above| above.height >= table.height) {
                    return Err(wrong("tables out of order"));
                }
                tables.push(table);
            }
        }
        self.read_index(&mut input)?;
        let waiting: Vec<Name> = self.stash.iter().map(|(_, name)| name).collect();
        let room = waiting.len().max(1).next_multiple_of(self.stash_asks());
        self.read_contents(&mut input, &waiting, room)?;
        self.read_merges(&mut input)?;
        self.read_forgets(&mut input)?;
        if input.0.is_empty() { Ok(()) } else { Err(wrong("too long")) }
    }

    /// More tables than can live, be made, or wait for the rounds that read them.
    fn most_homes(&self) -> u32 {
        4 * (self.config.partitions() + 16) * (self.config.levels() + 2)
    }

    fn read_height(&self, input: &mut Reader<'_>) -> Result<Height> {
        match input.u64()? {
            BASE => Ok(Height::Base),
            level if level < u64::from(self.config.levels()) => Ok(Height::Level(level as u32)),
            _ => Err(wrong("no such level")),
        }
    }

    fn read_home(&mut self, input: &mut Reader<'_>) -> Result<TableHome> {
        let home =
            u32::try_from(input.u64()?).map(TableHome).map_err(|_| wrong("no such place"))?;
        if self.homes.take_this(home) { Ok(home) } else { Err(wrong("two tables in one place")) }
    }

    fn read_table(&mut self, input: &mut Reader<'_>) -> Result<Table> {
        let (home, height) = (self.read_home(input)?, self.read_height(input)?);
        let mut attempt = Attempt([0; 16]);
        attempt.0.copy_from_slice(input.bytes(16)?);
        let (count, reads) = (input.u64()?, input.u64()?);
        let (most, capacity) = (self.config.most_reads(height), self.config.capacity(height));
        if count > u64::from(capacity) || reads > u64::from(most) {
            return Err(wrong("a table's counters are out of range"));
        }
        let words = input.words(u64::from(capacity))?;
        let keys = TableKeys::new(&self.keys.root, self.keys.volume, attempt);
        let order = keys.order(self.config.slots(height));
        let mut table = Table::new(home, height, keys, &order, count as usize);
        let shown = |at: usize| words[at / 64] >> (at % 64) & 1 == 1;
        let sound = table.read_before(reads as u32, shown);
        if sound { Ok(table) } else { Err(wrong("more blocks were read than slots")) }
    }

    fn read_index(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let (count, room) = (input.u64()?, self.most_entries());
        if count > room {
            return Err(wrong("too many blocks"));
        }
        let mut last = None;
        for _ in 0..count {
            let name = read_name(input)?;
            let (label, stamp) = (Label(input.u64()?), Stamp(input.u64()?));
            if last >= Some(name) || stamp.0 >= self.asks {
                return Err(wrong("blocks out of order"));
            }
            last = Some(name);
            let (whereabouts, at) = (input.u64()?, input.u64()?);
            let spot = TableSpot { home: TableHome((at >> 32) as u32), slot: TableSlot(at as u32) };
            let at = match whereabouts {
                STASH => Whereabouts::Stash,
                MERGE_OF_STASH => Whereabouts::Merge(None),
                TABLE => Whereabouts::Table(spot),
                MERGE_OF_TABLE => Whereabouts::Merge(Some(spot)),
                _ => return Err(wrong("a block is nowhere")),
            };
            self.restore_block(name, Entry { label, stamp, at })?;
        }
        input.bytes((room - count) as usize * ENTRY).map(drop)
    }

    fn restore_block(&mut self, name: Name, entry: Entry) -> Result<()> {
        let partition = self.partition_of(entry.label);
        match entry.at {
            Whereabouts::Stash => self.stash.add(partition, entry.stamp, name),
            Whereabouts::Merge(None) => {}
            Whereabouts::Table(spot) | Whereabouts::Merge(Some(spot)) => {
                let tables = &mut self.tables[partition.0 as usize];
                let table = tables.iter_mut().find(|table| table.home == spot.home);
                let table = table.ok_or(wrong("a block in no table"))?;
                if !table.restore_member(name, spot.slot) {
                    return Err(wrong("a block in no slot"));
                }
            }
        }
        self.index.insert(name, entry);
        Ok(())
    }
}
