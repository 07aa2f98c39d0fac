//! Blocks that were read, while nothing is known to have changed them.
//!
//! Threads of one client overlap: an answer that was on its way while the same block was written is
//! of no use. So a block is kept only if nothing else happened to it between question and answer.

use crate::transactions::Name;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A block's content.
pub type Block = Arc<[u8]>;

#[derive(Default)]
struct Pending {
    readers: u32,
    writers: u32,
    useless: bool,
}

/// Blocks by name, the least recently used leave first.
pub struct Cache {
    most: usize,
    clock: u64,
    blocks: BTreeMap<Name, (u64, Option<Block>)>,
    ages: BTreeMap<u64, Name>,
    pending: BTreeMap<Name, Pending>,
}

impl Cache {
    pub fn new(most: usize) -> Self {
        let (blocks, ages, pending) = Default::default();
        Self { most, clock: 0, blocks, ages, pending }
    }

    /// The content, or that the block is absent, if either is known.
    pub fn get(&mut self, name: Name) -> Option<Option<Block>> {
        let (age, block) = self.blocks.get_mut(&name)?;
        self.ages.remove(age);
        self.clock += 1;
        *age = self.clock;
        self.ages.insert(self.clock, name);
        Some(block.clone())
    }

    pub fn begin_read(&mut self, name: Name) {
        let pending = self.pending.entry(name).or_default();
        pending.readers += 1;
        pending.useless |= pending.writers > 0;
    }

    pub fn begin_write(&mut self, name: Name) {
        self.remove(name);
        let pending = self.pending.entry(name).or_default();
        pending.useless |= pending.readers + pending.writers > 0;
        pending.writers += 1;
    }

    /// An answer came; `known` is what the block holds now.
    pub fn end(&mut self, name: Name, write: bool, known: Option<Option<Block>>) {
        let Some(pending) = self.pending.get_mut(&name) else { return };
        let count = if write { &mut pending.writers } else { &mut pending.readers };
        *count = count.saturating_sub(1);
        let keep = !pending.useless;
        if pending.readers + pending.writers == 0 {
            self.pending.remove(&name);
        }
        match known {
            Some(block) if keep => self.insert(name, block),
            _ => self.remove(name),
        }
    }

    /// Another client changed it.
    pub fn forget(&mut self, name: Name) {
        self.remove(name);
        if let Some(pending) = self.pending.get_mut(&name) {
            pending.useless = true;
        }
    }

    /// All blocks of the owner from an index on were removed.
    pub fn forget_from(&mut self, from: Name) {
        let last = Name { owner: from.owner, index: u64::MAX };
        let known: Vec<Name> = self.blocks.range(from..=last).map(|(name, _)| *name).collect();
        known.into_iter().for_each(|name| self.remove(name));
        self.pending.range_mut(from..=last).for_each(|(_, pending)| pending.useless = true);
    }

    /// Anything may have changed.
    pub fn clear(&mut self) {
        self.blocks.clear();
        self.ages.clear();
        self.pending.values_mut().for_each(|pending| pending.useless = true);
    }

    fn insert(&mut self, name: Name, block: Option<Block>) {
        self.remove(name);
        self.clock += 1;
        self.blocks.insert(name, (self.clock, block));
        self.ages.insert(self.clock, name);
        if self.blocks.len() > self.most
            && let Some((_, oldest)) = self.ages.pop_first()
        {
            self.blocks.remove(&oldest);
        }
    }

    fn remove(&mut self, name: Name) {
        if let Some((age, _)) = self.blocks.remove(&name) {
            self.ages.remove(&age);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: Name = Name { owner: [1; 16], index: 4 };

    fn block(byte: u8) -> Option<Block> {
        Some(Arc::from([byte].as_slice()))
    }

    #[test]
    fn a_read_that_a_write_overtook_is_not_kept() {
        let mut cache = Cache::new(4);
        cache.begin_read(NAME);
        cache.begin_write(NAME);
        cache.end(NAME, true, Some(block(2)));
        cache.end(NAME, false, Some(block(1)));
        assert_eq!(cache.get(NAME), None);
        cache.begin_read(NAME);
        cache.end(NAME, false, Some(block(2)));
        assert_eq!(cache.get(NAME), Some(block(2)));
    }

    #[test]
    fn a_read_during_another_clients_change_is_not_kept() {
        let mut cache = Cache::new(4);
        cache.begin_read(NAME);
        cache.forget_from(Name { index: 0, ..NAME });
        cache.end(NAME, false, Some(block(1)));
        assert_eq!(cache.get(NAME), None);
    }

    #[test]
    fn the_least_recently_used_leaves() {
        let mut cache = Cache::new(2);
        for index in 0..3 {
            let name = Name { index, ..NAME };
            cache.begin_read(name);
            cache.end(name, false, Some(block(index as u8)));
            cache.get(Name { index: 0, ..NAME });
        }
        assert_eq!(cache.get(Name { index: 1, ..NAME }), None);
        assert_eq!(cache.get(Name { index: 0, ..NAME }), Some(block(0)));
    }
}
