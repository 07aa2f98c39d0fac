//! The blocks that were asked for and have not had their turn: each partition's, the oldest first;
//! and the content of all blocks that are outside of tables or on the way between them. A block
//! that was removed waits too, without content: it is gone at its turn. So does one whose content
//! is lost to damage: it exists, and is written to its next table as lost.

use super::ids::{Name, Partition, Stamp};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Blocks outside of all tables.
pub(super) struct Stash {
    /// By partition: the blocks in the order of their last asks.
    waiting: Vec<BTreeMap<Stamp, Name>>,
    /// How many there are.
    count: usize,
    peak: usize,
    /// Their content and that of the blocks of open merges, once it is there.
    contents: HashMap<Name, Vec<u8>>,
    /// Those of them that are known to be absent.
    absent: HashSet<Name>,
    /// Those of them whose content is lost.
    lost: HashSet<Name>,
}

/// What is known of a block outside of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Its content.
    Content(Vec<u8>),
    /// It exists, and its content is lost.
    Lost,
    /// It is absent, or nothing is known of it.
    Nothing,
}

impl Stash {
    pub fn new(partitions: u32) -> Self {
        Self {
            waiting: (0..partitions).map(|_| BTreeMap::new()).collect(),
            count: 0,
            peak: 0,
            contents: HashMap::new(),
            absent: HashSet::new(),
            lost: HashSet::new(),
        }
    }

    /// Adds a block. Its content is there, or follows.
    pub fn add(&mut self, partition: Partition, stamp: Stamp, name: Name) {
        if self.waiting[partition.0 as usize].insert(stamp, name).is_none() {
            self.count += 1;
            self.peak = self.peak.max(self.count);
        }
    }

    /// Takes a block out of its partition. Its content stays: it will be added again.
    pub fn take_out(&mut self, partition: Partition, stamp: Stamp) {
        let gone = self.waiting[partition.0 as usize].remove(&stamp);
        self.count -= usize::from(gone.is_some());
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
        self.absent.remove(&name);
        self.lost.remove(&name);
        self.contents.insert(name, content);
    }

    /// The block is absent from now on.
    pub fn remove(&mut self, name: Name) {
        self.contents.remove(&name);
        self.lost.remove(&name);
        self.absent.insert(name);
    }

    /// The content of the block is lost.
    pub fn lose(&mut self, name: Name) {
        self.contents.remove(&name);
        self.absent.remove(&name);
        self.lost.insert(name);
    }

    /// Sets what is known of a block that exists.
    pub fn keep(&mut self, name: Name, content: Option<Vec<u8>>) {
        match content {
            Some(content) => self.put(name, content),
            None => self.lose(name),
        }
    }

    /// Whether the content of the block is lost.
    pub fn is_lost(&self, name: Name) -> bool {
        self.lost.contains(&name)
    }

    /// What is known of a block.
    pub fn known(&self, name: Name) -> Known {
        match self.contents.get(&name) {
            Some(content) => Known::Content(content.clone()),
            None if self.is_lost(name) => Known::Lost,
            None => Known::Nothing,
        }
    }

    /// Whether the block is known to be absent.
    pub fn is_absent(&self, name: Name) -> bool {
        self.absent.contains(&name)
    }

    /// Knows nothing of the block any more: it is in a table, or gone.
    pub fn clear(&mut self, name: Name) {
        self.contents.remove(&name);
        self.absent.remove(&name);
        self.lost.remove(&name);
    }

    /// Takes the oldest `most` blocks of a partition. Their contents stay.
    pub fn take_oldest(&mut self, partition: Partition, most: usize) -> Vec<Name> {
        let waiting = &mut self.waiting[partition.0 as usize];
        let mut taken = Vec::with_capacity(most.min(waiting.len()));
        while taken.len() < most
            && let Some((_, name)) = waiting.pop_first()
        {
            taken.push(name);
        }
        self.count -= taken.len();
        taken
    }

    /// All blocks that wait, by partition and age.
    pub fn iter(&self) -> impl Iterator<Item = (Stamp, Name)> {
        let all = self.waiting.iter().flat_map(|waiting| waiting.iter());
        all.map(|(&stamp, &name)| (stamp, name))
    }

    /// Blocks that wait now, removed ones too.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Blocks that are known to be absent.
    pub fn removed(&self) -> usize {
        self.absent.len()
    }

    /// The most that waited at a time.
    pub fn peak(&self) -> usize {
        self.peak
    }
}
