//! Blocks that wait to move after a roll-over of their group's counters (Freecursive section
//! 5.2.2).
//!
//! An entry holds a whole group: the map block as it was, and which of its blocks still lie where
//! the old counters say.

use super::shape::{Block, Shape};
use oblivio_engine::Address;
use oblivio_engine::tree::MapFormat;

/// Blocks of a group.
const GROUP: usize = 32;

/// The old and the new count of a block that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Where it lies.
    pub old: u64,
    /// Where it goes.
    pub new: u64,
}

/// A group that rolled over.
#[derive(Clone, Copy)]
struct Entry {
    /// Its first block.
    group: Address,
    /// A bit for each block that waits.
    waiting: u32,
    /// Roll-overs since the old counters.
    rolls: u64,
    old: Block,
}

/// The groups that wait.
pub struct Backlog {
    map: MapFormat,
    individual_bits: u32,
    entries: Vec<Option<Entry>>,
}

impl Backlog {
    /// Nothing waits.
    pub fn new(shape: &Shape) -> Self {
        let entries = vec![None; shape.backlog];
        Self { map: shape.map, individual_bits: shape.individual_bits(), entries }
    }

    /// Entries that are free.
    pub fn free(&self) -> usize {
        self.entries.iter().filter(|entry| entry.is_none()).count()
    }

    /// Takes a block out if it waits.
    pub fn take(&mut self, id: Address) -> Option<Move> {
        let (group, bit) = split(id);
        let at = self.find(group, bit)?;
        Some(self.take_from(at, bit))
    }

    /// Takes out the block with the lowest address.
    pub fn take_first(&mut self) -> Option<(Address, Move)> {
        let first = |entry: &Entry| entry.group.plus(entry.waiting.trailing_zeros() as usize);
        let (at, id) = (0..self.entries.len())
            .filter_map(|at| self.entries[at].as_ref().map(|entry| (at, first(entry))))
            .min_by_key(|&(_, id)| id)?;
        Some((id, self.take_from(at, split(id).1)))
    }

    /// Notes that a group rolled over: its blocks wait, but for those that `elsewhere` names and
    /// those that wait already. False if no entry is free.
    pub fn rolled_over(&mut self, group: Address, old: Block, elsewhere: u32) -> bool {
        let mut waiting = !elsewhere;
        for entry in self.entries.iter_mut().flatten().filter(|entry| entry.group == group) {
            entry.rolls += 1;
            waiting &= !entry.waiting;
        }
        if waiting == 0 {
            return true;
        }
        let Some(free) = self.entries.iter_mut().find(|entry| entry.is_none()) else {
            return false;
        };
        *free = Some(Entry { group, waiting, rolls: 1, old });
        true
    }

    fn find(&self, group: Address, bit: usize) -> Option<usize> {
        let holds = |entry: &Entry| entry.group == group && entry.waiting >> bit & 1 == 1;
        self.entries.iter().position(|entry| entry.as_ref().is_some_and(holds))
    }

    fn take_from(&mut self, at: usize, bit: usize) -> Move {
        let Some(entry) = &mut self.entries[at] else { unreachable!("an entry that was found") };
        entry.waiting &= !(1 << bit);
        let counter = u64::from_le_bytes(entry.old[..8].try_into().expect("8 bytes"));
        let old = self.map.get(&entry.old, bit);
        let new = (counter + entry.rolls) << self.individual_bits;
        if entry.waiting == 0 {
            self.entries[at] = None;
        }
        Move { old, new }
    }
}

/// A block's group, and its place there.
fn split(id: Address) -> (Address, usize) {
    let place = id.index() as usize % GROUP;
    (id.minus(place), place)
}
