//! A merge: a partition's tables down to some height, and blocks of the stash, become one table.

use super::ids::{Height, Home, Name, Partition, Spot};
use super::oram::{Entry, PyramidOram};
use super::schedule::Turn;
use super::slot::Held;
use super::table::{MergeSet, Table};
use crate::Result;
use oblivio_crypto::TableSealer;

/// A merge that was begun. The slots to read are fixed: a merge that is begun again reads the same
/// ones (designs: the third trap).
pub(super) struct Merge {
    pub partition: Partition,
    pub height: Height,
    /// The tables that it replaces, and what to read of each.
    sets: Vec<(Home, MergeSet)>,
    blocks: Vec<Held>,
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
    table: Table,
    pub home: Home,
    /// Its slots, one after the other.
    pub sealed: Vec<u8>,
    replaced: Vec<Home>,
    partition: Partition,
}

impl Made {
    /// The tables that it replaces.
    pub fn replaced(&self) -> &[Home] {
        &self.replaced
    }
}

impl PyramidOram {
    /// The next merge that is due: that of a turn, or an early one.
    pub(super) fn due(&mut self, touched: &mut Vec<Partition>) -> Option<Merge> {
        if self.turns < self.config.turns_due(self.asks) {
            let turn = self.config.turn(self.turns);
            self.turns += 1;
            let taken = self.stash.take_oldest(turn.partition, self.config.taken() as usize);
            let blocks = taken.into_iter().map(|(stamp, name, content)| {
                let label = self.index[&name].label;
                Held { name, label, stamp, content }
            });
            let blocks = blocks.collect();
            return Some(self.begin_merge(turn, blocks));
        }
        while let Some(partition) = touched.pop() {
            let tables = &self.tables[partition.0 as usize];
            if tables.iter().any(|table| table.reads >= self.config.early_reads(table.height)) {
                // It takes no blocks from the stash, and the schedule does not advance.
                let turn = Turn { partition, height: Height::Base };
                return Some(self.begin_merge(turn, Vec::new()));
            }
        }
        None
    }

    fn begin_merge(&self, turn: Turn, blocks: Vec<Held>) -> Merge {
        let Turn { partition, height } = turn;
        let tables = self.tables[partition.0 as usize].iter();
        // A base replaces the old one too.
        let replaced = tables.filter(|table| table.height < height || height == Height::Base);
        let here = |name, spot| self.index.get(&name).is_some_and(|entry| entry.at == Some(spot));
        let sets = replaced
            .map(|table| (table.home, table.merge_set(self.config.capacity(table.height), here)));
        Merge { partition, height, sets: sets.collect(), blocks }
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
                    merge.blocks.push(held);
                }
            }
        }
        Ok(())
    }

    /// Makes the table. Blocks beyond its places wait in the stash: nothing that is shown changes.
    ///
    /// # Errors
    /// Those of the sealer.
    pub(super) fn make(&mut self, merge: Merge) -> Result<Made> {
        let Merge { partition, height, sets, mut blocks } = merge;
        let (capacity, slots) = (self.config.capacity(height), self.config.slots(height));
        // The newest stay behind.
        blocks.sort_unstable_by_key(|held| held.stamp);
        for held in blocks.drain(blocks.len().min(capacity as usize)..) {
            self.stash.add(partition, held.stamp, held.name);
            self.index.insert(held.name, Entry { label: held.label, stamp: held.stamp, at: None });
            self.stash.put(held.name, held.content);
        }
        let mut sealer = TableSealer::new(&self.root, self.volume, &mut *self.entropy);
        let order = sealer.keys().order(slots);
        let mut block_at: Vec<Option<usize>> = vec![None; slots as usize];
        for (index, slot) in order.iter().take(blocks.len()).enumerate() {
            block_at[*slot as usize] = Some(index);
        }
        let slot_bytes = self.config.slot_bytes();
        let mut sealed = vec![0; slots as usize * slot_bytes];
        for (bytes, index) in sealed.chunks_exact_mut(slot_bytes).zip(block_at) {
            match index {
                None => sealer.seal_empty(bytes)?,
                Some(index) => {
                    let plain = slot_bytes - oblivio_crypto::SLOT_OVERHEAD;
                    blocks[index].write_to(&mut bytes[..plain]);
                    sealer.seal(bytes)?;
                }
            }
        }
        let names: Vec<Name> = blocks.iter().map(|held| held.name).collect();
        let home = self.homes.take();
        let table = Table::new(home, height, slots, sealer.into_keys(), &names);
        let replaced = sets.into_iter().map(|(home, _)| home).collect();
        Ok(Made { table, home, sealed, replaced, partition })
    }

    /// Uses a table that is stored, in the place of those that it replaces.
    pub(super) fn switch(&mut self, made: Made) {
        let Made { table, replaced, partition, home, .. } = made;
        for &(name, slot) in table.members() {
            if let Some(entry) = self.index.get_mut(&name) {
                entry.at = Some(Spot { home, slot });
            }
        }
        let tables = &mut self.tables[partition.0 as usize];
        tables.retain(|table| !replaced.contains(&table.home));
        let at = tables.partition_point(|other| other.height < table.height);
        tables.insert(at, table);
        replaced.into_iter().for_each(|home| self.homes.give(home));
    }
}
