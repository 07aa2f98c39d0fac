//! The blocks that were asked for and have not had their turn: each partition's, the oldest first.
//! A block that was removed waits too, without content: it is gone at its turn.

use super::ids::{Name, Partition, Stamp};
use std::collections::{BTreeMap, HashMap};

/// Blocks outside of all tables.
pub(super) struct Stash {
    /// By partition: the blocks in the order of their last asks.
    waiting: Vec<BTreeMap<Stamp, Name>>,
    /// Their content, once it is there.
    contents: HashMap<Name, Vec<u8>>,
    peak: usize,
}

impl Stash {
    pub fn new(partitions: u32) -> Self {
        let waiting = (0..partitions).map(|_| BTreeMap::new()).collect();
        Self { waiting, contents: HashMap::new(), peak: 0 }
    }

    /// Adds a block. Its content follows.
    pub fn add(&mut self, partition: Partition, stamp: Stamp, name: Name) {
        self.waiting[partition.0 as usize].insert(stamp, name);
    }

    /// Takes a block out of its partition. Its content stays: it will be added again, or dropped.
    pub fn take_out(&mut self, partition: Partition, stamp: Stamp) {
        self.waiting[partition.0 as usize].remove(&stamp);
    }

    /// The content of a block.
    pub fn content(&self, name: Name) -> Option<&Vec<u8>> {
        self.contents.get(&name)
    }

    /// The same, to change.
    pub fn content_mut(&mut self, name: Name) -> Option<&mut Vec<u8>> {
        self.contents.get_mut(&name)
    }

    /// Sets the content of a block.
    pub fn put(&mut self, name: Name, content: Vec<u8>) {
        self.contents.insert(name, content);
        self.peak = self.peak.max(self.contents.len());
    }

    /// Forgets a block's content.
    pub fn drop_content(&mut self, name: Name) -> Option<Vec<u8>> {
        self.contents.remove(&name)
    }

    /// Takes the oldest `most` blocks of a partition, with their contents.
    pub fn take_oldest(
        &mut self,
        partition: Partition,
        most: usize,
    ) -> Vec<(Name, Option<Vec<u8>>)> {
        let waiting = &mut self.waiting[partition.0 as usize];
        let mut taken = Vec::with_capacity(most.min(waiting.len()));
        while taken.len() < most
            && let Some((_, name)) = waiting.pop_first()
        {
            taken.push((name, self.contents.remove(&name)));
        }
        taken
    }

    /// All blocks in it, by partition and age, with their contents.
    pub fn iter(&self) -> impl Iterator<Item = (Name, Option<&Vec<u8>>)> {
        let names = self.waiting.iter().flat_map(|waiting| waiting.values());
        names.map(|&name| (name, self.contents.get(&name)))
    }

    /// Blocks in it now, removed ones too.
    pub fn len(&self) -> usize {
        self.waiting.iter().map(BTreeMap::len).sum()
    }

    /// Blocks in it that were removed.
    pub fn removed(&self) -> usize {
        self.len() - self.contents.len()
    }

    /// The most that had content at a time.
    pub fn peak(&self) -> usize {
        self.peak
    }
}
