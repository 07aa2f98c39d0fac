//! A merge: a partition's tables down to some height, and blocks of the stash, become one table.

use super::history::Merged;
use super::ids::{Height, Home, Name, Partition, Spot};
use super::oram::{Entry, PyramidOram};
use super::schedule::Turn;
use super::slot::Held;
use super::table::{MergeSet, Table};
use crate::{EngineError, Result};
use oblivio_crypto::{TableKeys, TableSealer};
use std::collections::HashMap;

/// A merge that was begun. The slots to read are fixed: a merge that is begun again from the same
/// state reads the same ones. Otherwise two such sets would tell blocks from fillers.
pub(super) struct Merge {
    pub partition: Partition,
    pub height: Height,
    /// The tables that it replaces, and what to read of each.
    sets: Vec<(Home, MergeSet)>,
    /// The blocks of the new table, the oldest first.
    names: Vec<Name>,
    /// Blocks beyond its places. They wait in the stash: nothing that is shown changes.
    left: Vec<Name>,
    contents: HashMap<Name, Vec<u8>>,
}

impl Merge {
    /// The slots to read.
    pub fn spots(&self) -> impl Iterator<Item = Spot> {
        let of_table = |(home, set): &(Home, MergeSet)| {
            let home = *home;
            set.iter().map(move |&(slot, _)| Spot { home, slot }).collect::<Vec<_>>()
        };
        self.sets.iter().flat_map(of_table)
    }
}

/// A new table, to be stored.
pub(super) struct Made {
    merge: Merge,
    table: Table,
    /// Its slots, one after the other.
    pub sealed: Vec<u8>,
}

impl Made {
    /// Its place.
    pub fn home(&self) -> Home {
        self.table.home
    }

    /// The tables that it replaces.
    pub fn replaced(&self) -> Vec<Home> {
        self.merge.sets.iter().map(|(home, _)| *home).collect()
    }

    /// What a later session must know of it.
    pub fn merged(&self) -> Merged {
        let content = |name| self.merge.contents.get(name).cloned().unwrap_or_default();
        let left = self.merge.left.iter().map(content).collect();
        Merged { attempt: self.table.keys.attempt(), left }
    }
}

impl PyramidOram {
    /// The next merge that is due: that of a turn, or an early one.
    pub(super) fn due(&mut self) -> Option<Merge> {
        if self.turns < self.config.turns_due(self.asks) {
            let turn = self.config.turn(self.turns);
            self.turns += 1;
            let taken = self.stash.take_oldest(turn.partition, self.config.taken() as usize);
            return Some(self.begin(turn, taken));
        }
        while let Some(partition) = self.touched.pop() {
            let tables = &self.tables[partition.0 as usize];
            if tables.iter().any(|table| table.reads >= self.config.early_reads(table.height)) {
                // It takes no blocks from the stash, and the schedule does not advance.
                let turn = Turn { partition, height: Height::Base };
                return Some(self.begin(turn, Vec::new()));
            }
        }
        None
    }

    fn begin(&mut self, turn: Turn, taken: Vec<(Name, Option<Vec<u8>>)>) -> Merge {
        let Turn { partition, height } = turn;
        let tables = self.tables[partition.0 as usize].iter();
        // A base replaces the old one too.
        let replaced = tables.filter(|table| table.height < height || height == Height::Base);
        let here = |name, spot| self.index.get(&name).is_some_and(|entry| entry.at == Some(spot));
        let set =
            |table: &Table| (table.home, table.merge_set(self.config.capacity(table.height), here));
        let sets: Vec<(Home, MergeSet)> = replaced.map(set).collect();
        let mut names: Vec<Name> =
            sets.iter().flat_map(|(_, set)| set.iter().filter_map(|entry| entry.1)).collect();
        let mut contents = HashMap::new();
        for (name, content) in taken {
            match content {
                Some(content) => {
                    contents.insert(name, content);
                    names.push(name);
                }
                // It was removed.
                None => drop(self.index.remove(&name)),
            }
        }
        names.sort_unstable_by_key(|name| self.index[name].stamp);
        let capacity = self.config.capacity(height) as usize;
        let left = names.split_off(names.len().min(capacity));
        Merge { partition, height, sets, names, left, contents }
    }

    /// Checks and opens what a merge read: the slots of its sets, one after the other.
    ///
    /// # Errors
    /// `TamperedTable` if a slot is not what was sealed there.
    pub(super) fn gather(&self, merge: &mut Merge, read: &mut [u8]) -> Result<()> {
        let mut slots = read.chunks_exact_mut(self.config.slot_bytes());
        for (home, set) in &merge.sets {
            let tables = &self.tables[merge.partition.0 as usize];
            let Some(table) = tables.iter().find(|table| table.home == *home) else { continue };
            for (slot, name) in set {
                let Some(bytes) = slots.next() else { continue };
                if let Some(held) = self.open_slot(table, *slot, *name, bytes)? {
                    merge.contents.insert(held.name, held.content);
                }
            }
        }
        Ok(())
    }

    /// Seals the table.
    ///
    /// # Errors
    /// Those of the sealer.
    pub(super) fn make(&mut self, mut merge: Merge) -> Result<Made> {
        let slots = self.config.slots(merge.height);
        let mut sealer = TableSealer::new(&self.root, self.volume, &mut *self.entropy);
        let order = sealer.keys().order(slots);
        let mut block_at: Vec<Option<Name>> = vec![None; slots as usize];
        for (name, slot) in merge.names.iter().zip(&order) {
            block_at[*slot as usize] = Some(*name);
        }
        let slot_bytes = self.config.slot_bytes();
        let mut sealed = vec![0; slots as usize * slot_bytes];
        for (bytes, name) in sealed.chunks_exact_mut(slot_bytes).zip(block_at) {
            let Some(name) = name else {
                sealer.seal_empty(bytes)?;
                continue;
            };
            let Entry { label, stamp, .. } = self.index[&name];
            let content = merge.contents.remove(&name).unwrap_or_default();
            let plain = slot_bytes - oblivio_crypto::SLOT_OVERHEAD;
            Held { name, label, stamp, content }.write_to(&mut bytes[..plain]);
            sealer.seal(bytes)?;
        }
        let (home, keys) = (self.homes.take(), sealer.into_keys());
        let table = Table::new(home, merge.height, keys, &order, &merge.names);
        Ok(Made { merge, table, sealed })
    }

    /// Uses a table that is stored, in the place of those that it replaces.
    pub(super) fn switch(&mut self, made: Made) {
        let Made { merge, table, .. } = made;
        let Merge { partition, height, sets, left, mut contents, .. } = merge;
        for name in left {
            let Some(entry) = self.index.get_mut(&name) else { continue };
            entry.at = None;
            self.stash.add(partition, entry.stamp, name);
            self.stash.put(name, contents.remove(&name).unwrap_or_default());
        }
        let home = table.home;
        for &(name, slot) in table.members() {
            if let Some(entry) = self.index.get_mut(&name) {
                entry.at = Some(Spot { home, slot });
            }
        }
        let tables = &mut self.tables[partition.0 as usize];
        tables.retain(|table| sets.iter().all(|(gone, _)| table.home != *gone));
        let at = tables.partition_point(|other| other.height < height);
        tables.insert(at, table);
        sets.into_iter().for_each(|(gone, _)| self.homes.give(gone));
    }

    /// Repeats a merge of an earlier session, which stored its table.
    pub(super) fn repeat_merge(&mut self, merged: Merged) -> Result<()> {
        let mut merge = self.due().ok_or(EngineError::State("no merge was due"))?;
        if merged.left.len() != merge.left.len() {
            return Err(EngineError::State("a merge left another number of blocks"));
        }
        merge.contents.extend(merge.left.iter().copied().zip(merged.left));
        let keys = TableKeys::new(&self.root, self.volume, merged.attempt);
        let order = keys.order(self.config.slots(merge.height));
        let table = Table::new(self.homes.take(), merge.height, keys, &order, &merge.names);
        self.switch(Made { merge, table, sealed: Vec::new() });
        Ok(())
    }
}
