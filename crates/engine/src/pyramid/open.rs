//! Merges that are open: their turn came, and their table does not serve yet.

use super::ids::{Height, Name, Partition, TableHome, TableSpot};
use super::table::{MergeSet, Table};
use oblivio_crypto::Attempt;
use std::collections::HashSet;

/// A merge. Its place in the order, the slots to read and the blocks of its table are fixed when it
/// is opened: one that is begun again from the same history reads the same ones. Otherwise two such
/// sets would tell blocks from fillers.
pub(super) struct Merge {
    pub number: u64,
    pub partition: Partition,
    pub height: Height,
    /// The place of its table.
    pub home: TableHome,
    /// Asks before it.
    pub place: u64,
    /// Rounds before it.
    pub rounds: u64,
    /// The tables that it replaces, and what to read of each.
    pub sets: Vec<(TableHome, MergeSet)>,
    pub blocks: Blocks,
    pub progress: Progress,
    /// Whether it reads a second time, because a slot was not what was sealed there.
    pub again: bool,
}

/// The blocks of a merge.
pub(super) struct Blocks {
    /// Those of the new table, the oldest first. Some may be asked for since, or be absent.
    pub names: Vec<Name>,
    /// Blocks beyond its places. They go back to the stash: nothing that is shown changes.
    pub left: Vec<Name>,
    /// The blocks whose content is read from a table, and that no settled ask had since.
    pub coming: HashSet<Name>,
    /// Whether it took blocks from the stash: a turn did, an early merge did not.
    pub of_turn: bool,
}

/// How far a merge is.
pub(super) enum Progress {
    /// No job has it yet.
    Open,
    /// Its slots are to be read.
    Reads,
    /// They were read and checked.
    Read,
    /// Its table is sealed, and to be stored.
    Made(Box<Table>),
}

impl Merge {
    /// The slots to read.
    pub fn spots(&self) -> impl Iterator<Item = TableSpot> {
        let of_table = |(home, set): &(TableHome, MergeSet)| {
            let home = *home;
            set.iter().map(move |&(slot, _)| TableSpot { home, slot }).collect::<Vec<_>>()
        };
        self.sets.iter().flat_map(of_table)
    }

    /// Whether its slots are there.
    pub fn is_read(&self) -> bool {
        matches!(self.progress, Progress::Read | Progress::Made(_))
    }

    /// The number of its table's keys, once it is made.
    pub fn attempt(&self) -> Option<Attempt> {
        match &self.progress {
            Progress::Made(table) => Some(table.keys.attempt()),
            _ => None,
        }
    }

    /// The tables that it replaces.
    pub fn replaced(&self) -> Vec<TableHome> {
        self.sets.iter().map(|(home, _)| *home).collect()
    }
}

/// All open merges, in their order.
#[derive(Default)]
pub(super) struct Merges {
    open: Vec<Merge>,
    opened: u64,
}

impl Merges {
    /// The number of the next one.
    pub fn next(&self) -> u64 {
        self.opened
    }

    pub fn push(&mut self, merge: Merge) {
        self.opened = merge.number + 1;
        self.open.push(merge);
    }

    pub fn iter(&self) -> impl Iterator<Item = &Merge> {
        self.open.iter()
    }

    /// The first that no job has yet. From now on one has it.
    pub fn take_open(&mut self) -> Option<&Merge> {
        let mut open = self.open.iter_mut();
        let merge = open.find(|merge| matches!(merge.progress, Progress::Open))?;
        merge.progress = Progress::Reads;
        Some(merge)
    }

    pub fn get(&self, number: u64) -> Option<&Merge> {
        self.open.iter().find(|merge| merge.number == number)
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut Merge> {
        self.open.iter_mut().find(|merge| merge.number == number)
    }

    /// Lets a merge read again, once. False if it did.
    pub fn read_again(&mut self, number: u64) -> bool {
        let merge = self.get_mut(number).filter(|merge| !merge.again);
        merge.is_some_and(|merge| {
            (merge.progress, merge.again) = (Progress::Open, true);
            true
        })
    }

    pub fn of_partition(&self, partition: Partition) -> Option<&Merge> {
        self.open.iter().find(|merge| merge.partition == partition)
    }

    pub fn at_home(&self, home: TableHome) -> Option<u64> {
        self.open.iter().find(|merge| merge.home == home).map(|merge| merge.number)
    }

    pub fn remove(&mut self, number: u64) -> Option<Merge> {
        let at = self.open.iter().position(|merge| merge.number == number)?;
        Some(self.open.remove(at))
    }
}
