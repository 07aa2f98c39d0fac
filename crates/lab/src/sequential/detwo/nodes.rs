//! The map on the disk: a trie whose leaves are blocks of a DetWoORAM of their own.
//!
//! **As published.** The map is a trie over the blocks' numbers. Its nodes are blocks of a second,
//! smaller write-only ORAM of the same kind, with a main area and a holding area of its own: each
//! written node is written twice. A node's parent holds its place. Which nodes are written depends
//! only on the number of writes.
//!
//! **Chosen in its favour.**
//!
//! - *Large nodes.* The authors' code (github.com/dsroche/detworam) has two children a node by
//!   default, and a read then goes down some twenty nodes. Here a node is a block: 1,024 entries of
//!   four bytes (682 of six where reads compare). Two levels do for 4 GiB, three for 4 TiB.
//! - *Inner nodes in memory*: four bytes for a leaf, a thousandth of the whole map.
//! - *Turns instead of paths.* There each write also writes the nodes from the leaf to the root.
//!   Here every 16th write also writes one leaf, round and round, whatever it holds, like our own
//!   map on the disk. Changes since a leaf's last turn wait in memory: at most 16 entries for each
//!   leaf.
//! - *No second read*, unless requested: see [`Reads`].
//! - *A cache* of the leaves read last: 4 MiB, about as much as ours has for the nodes and leaves
//!   of its own maps together. Up to 4 GiB it comes to hold every leaf.

use super::areas::{Areas, Reads, TwoAreas};
use super::clock::{ABSENT, Clock, HOLDING, MAIN};
use super::map::{Entry, Map, Memory};
use crate::sequential::area::BLOCK;
use crate::sequential::waiting::{ENOUGH, Scheme};
use crate::sequential::writes::Writes;
use oblivio_store::Store;
use oblivio_volume::{Error, Result};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

const OBJECT: &str = "nodes";

/// The parameters of the map.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Limit of a leaf's entries; never more than a block has room for.
    pub fan_out: u64,
    /// Writes per leaf written.
    pub step: u64,
    /// Limit of the leaves in the cache.
    pub cached: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Self { fan_out: BLOCK as u64, step: 16, cached: 1024 }
    }
}

type Leaf = Arc<Vec<u8>>;

/// The map.
pub struct Nodes {
    areas: Areas,
    /// Bytes of an entry.
    width: usize,
    shape: Shape,
    leaves: TwoAreas<Memory>,
    /// For each leaf, the entries that changed since its last turn.
    fresh: Vec<HashMap<u64, Entry>>,
    cache: BTreeMap<u64, Leaf>,
    /// The cached leaves, the oldest first.
    order: VecDeque<u64>,
    /// A bit for each block: whether it was written. The server needs it without a wait.
    written: Vec<u64>,
}

/// An entry from its bytes: the place, then the bit if there is room for it.
fn decoded(bytes: &[u8]) -> Entry {
    let place = bytes.first_chunk().map_or(ABSENT, |place| u32::from_le_bytes(*place));
    let bit = bytes.get(4..).and_then(<[u8]>::first_chunk).map(|bit| u16::from_le_bytes(*bit));
    if place == ABSENT { Entry::ABSENT } else { Entry { place, bit: bit.unwrap_or(0) } }
}

fn encode(entry: Entry, bytes: &mut [u8]) {
    let (place, bit) = (entry.place.to_le_bytes(), entry.bit.to_le_bytes());
    bytes.iter_mut().zip(place.into_iter().chain(bit)).for_each(|(to, from)| *to = from);
}

impl Nodes {
    /// The map of empty areas.
    ///
    /// # Errors
    /// `Invalid` when there are too many blocks, or when the main area is renewed too seldom for
    /// the number of writes to show which blocks were.
    pub fn create(store: Arc<dyn Store>, areas: Areas, shape: Shape) -> Result<Self> {
        let width = match areas.reads {
            Reads::Known => 4,
            Reads::Compared => 6,
        };
        let fan_out = shape.fan_out.min((BLOCK / width) as u64);
        let count = areas.blocks.div_ceil(fan_out);
        let mut shape = Shape { fan_out, ..shape };
        if areas.reads == Reads::Known {
            shape.step = shape.step.min(Self::slack(&areas) / count.max(1));
        }
        if shape.step == 0 {
            let why = "no leaf is written in time to mark what was renewed";
            return Err(Error::Invalid(why.into()));
        }
        // The places of its leaves are in memory, so reads need not compare there.
        let leaves = Areas { blocks: count, reads: Reads::Known, ..areas };
        Ok(Self {
            areas,
            width,
            shape,
            leaves: TwoAreas::create(store, OBJECT, leaves, Memory::new(count))?,
            fresh: vec![HashMap::new(); count as usize],
            cache: BTreeMap::new(),
            order: VecDeque::new(),
            written: vec![0; areas.blocks.div_ceil(64) as usize],
        })
    }

    /// Writes that a round of the leaves may take. Each leaf needs a turn after its block was
    /// renewed and before another block takes its place in the holding area, with which it would be
    /// confused.
    fn slack(areas: &Areas) -> u64 {
        let together = areas.blocks.min(ENOUGH as u64);
        ((HOLDING - areas.every.min(HOLDING)) * areas.blocks).saturating_sub(together)
    }

    /// The leaves of these numbers, sorted and unique, without changes since their turn.
    fn leaves(&mut self, numbers: &[u64]) -> Result<HashMap<u64, Leaf>> {
        let cached = |number: &u64| Some((*number, self.cache.get(number)?.clone()));
        let mut found: HashMap<u64, Leaf> = numbers.iter().filter_map(cached).collect();
        let missing: Vec<u64> =
            numbers.iter().copied().filter(|number| !found.contains_key(number)).collect();
        let read = self.leaves.read(&missing)?;
        for (number, leaf) in missing.into_iter().zip(read) {
            // A leaf without a turn so far has only absent blocks.
            let leaf = Arc::new(leaf.unwrap_or_else(|| vec![0xff; BLOCK]));
            self.keep(number, leaf.clone());
            found.insert(number, leaf);
        }
        Ok(found)
    }

    /// Entries that are only in memory.
    #[cfg(test)]
    pub fn waits(&self) -> usize {
        self.fresh.iter().map(HashMap::len).sum()
    }

    fn keep(&mut self, number: u64, leaf: Leaf) {
        if self.cache.insert(number, leaf).is_none() {
            self.order.push_back(number);
        }
        if self.order.len() > self.shape.cached
            && let Some(oldest) = self.order.pop_front()
        {
            self.cache.remove(&oldest);
        }
    }

    /// Some leaves, sorted and unique, have their turn after `written` writes. They get their
    /// changes, and renewed blocks are marked, long before the number of a place could be mistaken
    /// for that of a later write.
    fn renew(&mut self, numbers: &[u64], written: u64) -> Result<()> {
        let clock = Clock { written, ..self.areas.clock() };
        let mut found = self.leaves(numbers)?;
        let mut writes = Writes::default();
        for &number in numbers {
            let mut leaf = found.remove(&number).map_or_else(Vec::new, |leaf| leaf.to_vec());
            for (at, entry) in self.fresh[number as usize].drain() {
                encode(entry, &mut leaf[at as usize * self.width..][..self.width]);
            }
            if self.areas.reads == Reads::Known {
                let first = number * self.shape.fan_out;
                for (id, bytes) in (first..).zip(leaf.chunks_exact_mut(self.width)) {
                    let entry = decoded(bytes);
                    if entry.place < MAIN && clock.settled(id, entry.place) {
                        encode(Entry { place: MAIN, ..entry }, bytes);
                    }
                }
            }
            if let Some(cached) = self.cache.get_mut(&number) {
                *cached = Arc::new(leaf.clone());
            }
            writes.push(number, Some(leaf));
        }
        self.leaves.write(&writes)
    }
}

impl Map for Nodes {
    fn entries(&mut self, ids: &[u64]) -> Result<Vec<Entry>> {
        let (fan_out, width) = (self.shape.fan_out, self.width);
        let fresh = |id: u64| self.fresh[(id / fan_out) as usize].get(&(id % fan_out)).copied();
        let known: Vec<Option<Entry>> = ids.iter().map(|&id| fresh(id)).collect();
        let unknown = ids.iter().zip(&known).filter(|(_, known)| known.is_none());
        let mut numbers: Vec<u64> = unknown.map(|(id, _)| id / fan_out).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let leaves = self.leaves(&numbers)?;
        let stored = |id: u64| {
            let leaf = leaves.get(&(id / fan_out));
            let bytes = leaf.and_then(|leaf| leaf.get((id % fan_out) as usize * width..));
            bytes.map_or(Entry::ABSENT, |bytes| decoded(&bytes[..width]))
        };
        Ok(ids.iter().zip(known).map(|(&id, known)| known.unwrap_or_else(|| stored(id))).collect())
    }

    fn exists(&self, id: u64) -> bool {
        self.written[(id / 64) as usize] >> (id % 64) & 1 == 1
    }

    fn note(&mut self, before: u64, made: &[(u64, Entry)], _renewed: &[u64]) -> Result<()> {
        let (fan_out, step) = (self.shape.fan_out, self.shape.step);
        for &(id, entry) in made {
            self.fresh[(id / fan_out) as usize].insert(id % fan_out, entry);
            let (word, bit) = (&mut self.written[(id / 64) as usize], 1 << (id % 64));
            *word = if entry == Entry::ABSENT { *word & !bit } else { *word | bit };
        }
        let (after, all) = (before + made.len() as u64, self.leaves.blocks());
        let turns: Vec<u64> = (before / step..after / step).collect();
        for turns in turns.chunks(all as usize) {
            let mut numbers: Vec<u64> = turns.iter().map(|turn| turn % all).collect();
            numbers.sort_unstable();
            self.renew(&numbers, after)?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.leaves.sync()
    }
}
