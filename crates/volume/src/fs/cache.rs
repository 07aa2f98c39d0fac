//! A small write-back cache of data blocks: shared blocks being filled, and edges of ranges just
//! read.

use std::collections::{BTreeMap, HashMap};

struct Entry {
    /// Its content; `None` if that is lost.
    data: Option<Vec<u8>>,
    dirty: bool,
    stamp: u64,
}

/// Evicts least recently used blocks first.
pub(super) struct DataCache {
    entries: HashMap<u64, Entry>,
    recent: BTreeMap<u64, u64>,
    clock: u64,
    budget: usize,
}

impl DataCache {
    /// A cache of about `budget` blocks.
    pub(super) fn new(budget: usize) -> Self {
        DataCache {
            entries: HashMap::new(),
            recent: BTreeMap::new(),
            clock: 0,
            budget: budget.max(4),
        }
    }

    pub(super) fn contains(&self, block: u64) -> bool {
        self.entries.contains_key(&block)
    }

    /// A block's content, `Some(None)` if it is lost; counts as a use.
    pub(super) fn get(&mut self, block: u64) -> Option<Option<&[u8]>> {
        self.clock += 1;
        let entry = self.entries.get_mut(&block)?;
        self.recent.remove(&entry.stamp);
        entry.stamp = self.clock;
        self.recent.insert(self.clock, block);
        Some(entry.data.as_deref())
    }

    /// Adds a block's content.
    pub(super) fn insert(&mut self, block: u64, data: Vec<u8>, dirty: bool) {
        self.enter(block, Some(data), dirty);
    }

    /// Adds a block that is lost, so that it is asked for as seldom as any other.
    pub(super) fn insert_lost(&mut self, block: u64) {
        self.enter(block, None, false);
    }

    fn enter(&mut self, block: u64, data: Option<Vec<u8>>, dirty: bool) {
        self.remove(block);
        self.clock += 1;
        let stamp = self.clock;
        self.recent.insert(stamp, block);
        self.entries.insert(block, Entry { data, dirty, stamp });
    }

    /// Takes a block out, unwritten content included.
    pub(super) fn remove(&mut self, block: u64) {
        if let Some(entry) = self.entries.remove(&block) {
            self.recent.remove(&entry.stamp);
        }
    }

    /// All dirty blocks, in order of their ids.
    pub(super) fn dirty(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.entries.keys().copied().collect();
        ids.retain(|id| self.entries[id].dirty);
        ids.sort_unstable();
        ids
    }

    /// What to evict to fit the budget, with some to spare; empty within it.
    pub(super) fn victims(&self) -> Vec<u64> {
        if self.entries.len() <= self.budget {
            return Vec::new();
        }
        let count = self.entries.len() - self.budget + self.budget / 4;
        self.recent.values().copied().take(count).collect()
    }

    /// The content of the dirty blocks among `ids`.
    pub(super) fn to_write(&self, ids: &[u64]) -> Vec<(u64, Vec<u8>)> {
        ids.iter()
            .filter_map(|id| Some((*id, self.entries.get(id)?)))
            .filter(|(_, entry)| entry.dirty)
            .filter_map(|(id, entry)| Some((id, entry.data.clone()?)))
            .collect()
    }

    /// Marks these blocks clean.
    pub(super) fn written(&mut self, ids: &[u64]) {
        for id in ids {
            if let Some(entry) = self.entries.get_mut(id) {
                entry.dirty = false;
            }
        }
    }
}
