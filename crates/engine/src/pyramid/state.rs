//! The engine's memory, serialized, at a moment when no merge is due. Its size follows from the
//! parameters. All numbers are little-endian:
//!
//! ```text
//! version 8 = 1 | asks 8 | turns 8 | places of tables so far 8 |
//! for each partition: tables 8, and for each of them
//!     place 8 | height 8 (2^64 - 1: base) | attempt 16 | blocks when made 8 | empty ones shown 8 |
//!     reads 8
//! blocks 8, then name 16 | label 8 | stamp 8 | place 4 | slot 4 (2^32 - 1: in the stash) each,
//!     padded to n + q of them
//! stash 8, then exists 8 | block each, by partition and age, padded to a multiple of q
//! ```

use super::ids::{Height, Home, Name, Slot, Spot, Stamp};
use super::oram::{Entry, PyramidOram};
use super::table::Table;
use crate::wire::{Reader, Writer};
use crate::{EngineError, Label, Result};
use oblivio_crypto::{Attempt, TableKeys};

const VERSION: u64 = 1;
const BASE: u64 = u64::MAX;
/// In place of a place and a slot.
const IN_STASH: u64 = u64::MAX;
const ENTRY: usize = 16 + 8 + 8 + 8;
/// No counter reaches this: beyond it, sums would overflow.
const MOST_COUNT: u64 = 1 << 56;

fn wrong(why: &'static str) -> EngineError {
    EngineError::State(why)
}

impl PyramidOram {
    /// Appends everything that is only in memory. [`Self::restore`] reads it.
    ///
    /// # Errors
    /// `Invalid` while a job is under way, a merge is due or a round is unsettled.
    pub fn checkpoint(&self, out: &mut Vec<u8>) -> Result<()> {
        self.expect_idle()?;
        let due = self.turns < self.config.turns_due(self.asks) || !self.touched.is_empty();
        if due || self.unsettled.is_some() {
            return Err(EngineError::Invalid("a merge or a round must come first".into()));
        }
        let mut out = Writer(out);
        out.words(&[VERSION, self.asks, self.turns, u64::from(self.homes.count())]);
        for tables in &self.tables {
            out.u64(tables.len() as u64);
            for table in tables {
                let height = match table.height {
                    Height::Level(level) => u64::from(level),
                    Height::Base => BASE,
                };
                out.words(&[u64::from(table.home.0), height]);
                out.bytes(&table.keys.attempt().0);
                out.words(&[table.made_with(), table.used(), u64::from(table.reads)]);
            }
        }
        self.write_index(&mut out);
        self.write_stash(&mut out);
        Ok(())
    }

    fn write_index(&self, out: &mut Writer<'_>) {
        let mut names: Vec<&Name> = self.index.keys().collect();
        names.sort_unstable();
        out.u64(names.len() as u64);
        for name in &names {
            let Entry { label, stamp, at } = self.index[name];
            let at = at.map_or(IN_STASH, |Spot { home, slot }| {
                u64::from(home.0) << 32 | u64::from(slot.0)
            });
            out.bytes(&name.0);
            out.words(&[label.0, stamp.0, at]);
        }
        let room = (self.config.blocks() + (1 << self.config.log_stash)) as usize;
        out.zeros(room.saturating_sub(names.len()) * ENTRY);
    }

    fn write_stash(&self, out: &mut Writer<'_>) {
        let block_bytes = self.config.block_bytes;
        out.u64(self.stash.len() as u64);
        for (_, content) in self.stash.iter() {
            out.u64(u64::from(content.is_some()));
            match content {
                Some(content) => out.bytes(content),
                None => out.zeros(block_bytes),
            }
        }
        out.zeros(self.stash_padding());
    }

    /// Bytes that fill the stash up to a multiple of q blocks.
    fn stash_padding(&self) -> usize {
        let (count, q) = (self.stash.len(), 1 << self.config.log_stash);
        (count.max(1).next_multiple_of(q) - count) * (8 + self.config.block_bytes)
    }

    /// Loads the state of [`Self::checkpoint`]. The engine must be new, of the same parameters.
    ///
    /// # Errors
    /// `State` when the bytes are not such a state.
    pub fn restore(&mut self, state: &[u8]) -> Result<()> {
        let mut input = Reader(state);
        if input.u64()? != VERSION {
            return Err(wrong("unknown version"));
        }
        (self.asks, self.turns) = (input.u64()?, input.u64()?);
        if self.asks > MOST_COUNT || self.turns != self.config.turns_due(self.asks) {
            return Err(wrong("a counter is out of range"));
        }
        let homes = u32::try_from(input.u64()?).map_err(|_| wrong("too many tables"))?;
        self.homes = super::oram::Homes::all(homes.min(self.most_homes()));
        for partition in 0..self.tables.len() {
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
        self.read_stash(&mut input)?;
        if input.0.is_empty() { Ok(()) } else { Err(wrong("too long")) }
    }

    /// Tables that can live at a time, and one that is being made.
    fn most_homes(&self) -> u32 {
        self.config.partitions() * (self.config.levels() + 1) + 1
    }

    fn read_table(&mut self, input: &mut Reader<'_>) -> Result<Table> {
        let home = u32::try_from(input.u64()?).map(Home).map_err(|_| wrong("no such place"))?;
        let height = match input.u64()? {
            BASE => Height::Base,
            level if level < u64::from(self.config.levels()) => Height::Level(level as u32),
            _ => return Err(wrong("no such level")),
        };
        if !self.homes.take_this(home) {
            return Err(wrong("two tables in one place"));
        }
        let mut attempt = Attempt([0; 16]);
        attempt.0.copy_from_slice(input.bytes(16)?);
        let (count, used, reads) = (input.u64()?, input.u64()?, input.u64()?);
        let most = self.config.most_reads(height);
        let capacity = u64::from(self.config.capacity(height));
        if count > capacity || used > reads || reads > u64::from(most) {
            return Err(wrong("a table's counters are out of range"));
        }
        let keys = TableKeys::new(&self.root, self.volume, attempt);
        let slots = self.config.slots(height);
        Ok(Table::again(home, height, slots, keys, count as usize, used as usize, reads as u32))
    }

    fn read_index(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let room = self.config.blocks() + (1 << self.config.log_stash);
        let count = input.u64()?;
        if count > room {
            return Err(wrong("too many blocks"));
        }
        let mut last = None;
        for _ in 0..count {
            let mut name = Name([0; 16]);
            name.0.copy_from_slice(input.bytes(16)?);
            let (label, stamp, at) = (Label(input.u64()?), Stamp(input.u64()?), input.u64()?);
            if last >= Some(name) || stamp.0 >= self.asks {
                return Err(wrong("blocks out of order"));
            }
            last = Some(name);
            let partition = self.partition_of(label);
            let spot = Spot { home: Home((at >> 32) as u32), slot: Slot(at as u32) };
            let at = (at != IN_STASH).then_some(spot);
            match at {
                None => self.stash.add(partition, stamp, name),
                Some(Spot { home, slot }) => {
                    let tables = &mut self.tables[partition.0 as usize];
                    let table = tables.iter_mut().find(|table| table.home == home);
                    let table = table.ok_or(wrong("a block in no table"))?;
                    if !table.restore_member(name, slot) {
                        return Err(wrong("a block in no slot"));
                    }
                }
            }
            self.index.insert(name, Entry { label, stamp, at });
        }
        input.bytes((room - count) as usize * ENTRY).map(drop)
    }

    fn read_stash(&mut self, input: &mut Reader<'_>) -> Result<()> {
        if input.u64()? != self.stash.len() as u64 {
            return Err(wrong("another number of blocks in the stash"));
        }
        let names: Vec<Name> = self.stash.iter().map(|(name, _)| name).collect();
        for name in names {
            let exists = input.u64()?;
            let content = input.bytes(self.config.block_bytes)?;
            match exists {
                0 => {}
                1 => self.stash.put(name, content.to_vec()),
                _ => return Err(wrong("neither there nor not")),
            }
        }
        input.bytes(self.stash_padding()).map(drop)
    }
}
