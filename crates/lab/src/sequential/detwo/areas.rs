//! The two areas and the turns of their blocks, over a map of either kind.

use super::clock::{Clock, HOLDING, MAIN};
use super::map::{Entry, Map};
use crate::sequential::area::{Area, AreaReader, BLOCK, MOST, Wanted, block_of};
use crate::sequential::beside::Places;
use crate::sequential::waiting::Scheme;
use crate::sequential::writes::Writes;
use oblivio_engine::BlockAnswer;
use oblivio_store::Store;
use oblivio_volume::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The size of the areas, and how often the main one is renewed.
#[derive(Clone, Copy, Debug)]
pub struct Areas {
    /// Blocks of the main area.
    pub blocks: u64,
    /// Writes per write to the main area: 1 to 3.
    pub every: u64,
    pub reads: Reads,
}

/// How a read knows whether the main area has a block's newest version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// As published: it reads the main area, and compares a bit in the map.
    Compared,
    /// By the number of writes since: it reads one area.
    Known,
}

impl Areas {
    /// The clock before the first write.
    pub fn clock(&self) -> Clock {
        Clock { blocks: self.blocks, every: self.every, written: 0 }
    }
}

/// Main and holding area, one behind the other.
pub struct TwoAreas<M> {
    area: Area,
    map: M,
    reads: Reads,
    clock: Clock,
    /// The clock's count of writes, for other threads.
    written: Arc<AtomicU64>,
    /// Buffers for the main and the holding area; kept, because fresh memory costs more than
    /// filling it.
    main: Vec<u8>,
    held: Vec<u8>,
}

impl<M: Map> TwoAreas<M> {
    /// Empty areas in an object of this name.
    ///
    /// # Errors
    /// `Invalid` if the holding area or the map's entries are too small.
    pub fn create(
        store: Arc<dyn Store>,
        object: &'static str,
        areas: Areas,
        map: M,
    ) -> Result<Self> {
        let Areas { blocks, every, reads } = areas;
        if blocks == 0 || !(1..=HOLDING).contains(&every) {
            let why = format!("{blocks} blocks, one written anew with every {every} writes");
            return Err(Error::Invalid(why));
        }
        if blocks * HOLDING >= u64::from(MAIN) {
            return Err(Error::Invalid(format!(
                "{blocks} blocks; the map has four bytes for each"
            )));
        }
        let area = Area::new(store, object, blocks * (1 + HOLDING));
        let (written, main, held) = Default::default();
        Ok(TwoAreas { area, map, reads, clock: areas.clock(), written, main, held })
    }

    /// Puts the newest versions of blocks to their places in `bytes`, sorted by those; zeros for
    /// absent ones. Returns which of them exist.
    fn fetch(&mut self, wanted: &[(usize, u64)], bytes: &mut [u8]) -> Result<Vec<bool>> {
        let ids: Vec<u64> = wanted.iter().map(|(_, id)| *id).collect();
        let entries = self.map.entries(&ids)?;
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for (&(at, id), entry) in wanted.iter().zip(&entries) {
            match self.clock.slot(id, entry.place) {
                None => block_of(bytes, at).fill(0),
                Some(_) if self.compares(id) => first.push(Wanted { at, slot: id }),
                Some(slot) => first.push(Wanted { at, slot }),
            }
        }
        self.area.reader().read_into(&first, bytes)?;
        for (&(at, id), entry) in wanted.iter().zip(&entries) {
            let there = *entry != Entry::ABSENT && self.compares(id);
            if there && bit_of(block_of(bytes, at), entry.bit / 2) != entry.bit % 2 {
                second.push(Wanted { at, slot: self.clock.blocks + u64::from(entry.place) });
            }
        }
        self.area.reader().read_into(&second, bytes)?;
        Ok(entries.iter().map(|entry| *entry != Entry::ABSENT).collect())
    }

    /// Whether the main area has to be read to find a block: at first it is known to be empty.
    fn compares(&self, id: u64) -> bool {
        self.reads == Reads::Compared && id < self.clock.renewals()
    }

    /// Puts into `bytes` the content of these blocks after the writes.
    fn gather(&mut self, ids: &[u64], writes: &Writes, bytes: &mut Vec<u8>) -> Result<()> {
        bytes.resize(ids.len() * BLOCK, 0);
        let mut kept = Vec::with_capacity(ids.len());
        for (at, &id) in ids.iter().enumerate() {
            match writes.newest(id) {
                Some(Some(block)) => block_of(bytes, at).copy_from_slice(block),
                Some(None) => block_of(bytes, at).fill(0),
                None => kept.push((at, id)),
            }
        }
        self.fetch(&kept, bytes)?;
        Ok(())
    }

    /// The entries that the writes make, while these blocks are renewed.
    fn entries(&mut self, writes: &Writes, renewed: &[u64]) -> Result<Vec<(u64, Entry)>> {
        let bits = match self.reads {
            Reads::Known => HashMap::new(),
            Reads::Compared => self.differences(writes, renewed)?,
        };
        let holding = self.clock.holding();
        let made = (self.clock.written..).zip(writes.all()).map(|(number, (id, block))| {
            let bit = bits.get(id).copied().unwrap_or(0);
            let place = (number % holding) as u32;
            (*id, if block.is_some() { Entry { place, bit } } else { Entry::ABSENT })
        });
        Ok(made.collect())
    }

    /// For each block, a bit that distinguishes its newest version from the main area's future
    /// content; any bit, where that will hold this version or nothing.
    fn differences(&mut self, writes: &Writes, renewed: &[u64]) -> Result<HashMap<u64, u16>> {
        let renewed: HashSet<u64> = renewed.iter().copied().collect();
        let ids: HashSet<u64> = writes.all().iter().map(|(id, _)| *id).collect();
        let read = |id: &u64| self.compares(*id) && !renewed.contains(id);
        let mut slots: Vec<u64> = ids.iter().copied().filter(read).collect();
        slots.sort_unstable();
        let main: HashMap<u64, Vec<u8>> =
            slots.iter().copied().zip(self.area.read(&slots)?).collect();
        let block = |id: u64| Some((id, writes.newest(id)?.as_deref()?));
        let bit = |(id, block): (u64, &[u8])| {
            let differs = main.get(&id).and_then(|main| difference(block, main)).unwrap_or(0);
            (id, differs * 2 + bit_of(block, differs))
        };
        Ok(ids.into_iter().filter_map(block).map(bit).collect())
    }
}

/// A bit of a block.
fn bit_of(block: &[u8], number: u16) -> u16 {
    u16::from(block[usize::from(number / 8)] >> (number % 8) & 1)
}

/// The first bit in which two blocks differ; `None` if they are equal.
fn difference(one: &[u8], other: &[u8]) -> Option<u16> {
    let byte = one.iter().zip(other).position(|(one, other)| one != other)?;
    Some((byte * 8) as u16 + (one[byte] ^ other[byte]).trailing_zeros() as u16)
}

/// The places of blocks, from the map in memory and the number of writes.
struct Known {
    map: Arc<[AtomicU32]>,
    clock: Clock,
    written: Arc<AtomicU64>,
}

impl Places for Known {
    fn slot(&self, id: u64) -> Option<u64> {
        let entry = self.map[id as usize].load(Ordering::Acquire);
        let written = self.written.load(Ordering::Acquire);
        Clock { written, ..self.clock }.slot(id, entry)
    }
}

impl<M: Map> Scheme for TwoAreas<M> {
    fn blocks(&self) -> u64 {
        self.clock.blocks
    }

    fn exists(&self, id: u64) -> bool {
        self.map.exists(id)
    }

    fn read(&mut self, ids: &[u64]) -> Result<Vec<BlockAnswer>> {
        let mut found = Vec::with_capacity(ids.len());
        let mut bytes = std::mem::take(&mut self.main);
        for ids in ids.chunks(MOST) {
            let wanted: Vec<(usize, u64)> = ids.iter().copied().enumerate().collect();
            bytes.resize(ids.len() * BLOCK, 0);
            let there = self.fetch(&wanted, &mut bytes)?;
            let blocks = bytes.chunks_exact(BLOCK).zip(there);
            found.extend(blocks.map(|(block, there)| there.then(|| block.to_vec())));
        }
        self.main = bytes;
        Ok(found)
    }

    /// Reads the blocks for the main area before writing to the holding area: these writes may
    /// include a block's last turn before its place there is needed.
    fn write(&mut self, writes: &Writes) -> Result<()> {
        let (blocks, count) = (self.clock.blocks, writes.all().len() as u64);
        let (turns, places) = (self.clock.turns(count), self.clock.places(count));
        let renewed: Vec<u64> =
            turns.iter().flat_map(|&(first, count)| first..first + count as u64).collect();
        let (mut main, mut held) = (std::mem::take(&mut self.main), std::mem::take(&mut self.held));
        self.gather(&renewed, writes, &mut main)?;
        let made = self.entries(writes, &renewed)?;
        held.clear();
        for (_, block) in writes.all() {
            match block {
                Some(block) => held.extend_from_slice(block),
                None => held.resize(held.len() + BLOCK, 0),
            }
        }
        let (first_main, again_main) = main.split_at_mut(turns[0].1 * BLOCK);
        let (first_held, again_held) = held.split_at_mut(places[0].1 * BLOCK);
        let mut runs = vec![
            (turns[0].0, first_main),
            (turns[1].0, again_main),
            (blocks + places[0].0, first_held),
            (blocks + places[1].0, again_held),
        ];
        runs.retain(|(_, data)| !data.is_empty());
        self.area.write(&mut runs)?;
        (self.main, self.held) = (main, held);
        self.map.note(self.clock.written, &made, &renewed)?;
        self.clock = self.clock.after(count);
        self.written.store(self.clock.written, Ordering::Release);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.area.sync()?;
        self.map.sync()
    }

    fn affects(&self, writes: u64) -> Vec<Range<u64>> {
        let blocks = self.clock.blocks;
        let held = self.clock.places(writes).map(|(first, count)| (blocks + first, count));
        let runs = self.clock.turns(writes).into_iter().chain(held);
        runs.map(|(first, count)| first..first + count as u64).collect()
    }

    fn beside(&self) -> Option<(Arc<dyn Places>, AreaReader)> {
        let known = self.map.in_memory().filter(|_| self.reads == Reads::Known)?;
        let found = Known { map: known, clock: self.clock, written: Arc::clone(&self.written) };
        Some((Arc::new(found), self.area.reader().clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bit_that_differs_is_found() {
        let mut one = vec![0; BLOCK];
        assert_eq!(difference(&one, &vec![0; BLOCK]), None);
        one[BLOCK - 1] = 0x80;
        assert_eq!(difference(&one, &vec![0; BLOCK]), Some((BLOCK * 8 - 1) as u16));
        assert_eq!(bit_of(&one, (BLOCK * 8 - 1) as u16), 1);
        one[1] = 0b100;
        assert_eq!(difference(&one, &vec![0; BLOCK]), Some(10));
    }
}
