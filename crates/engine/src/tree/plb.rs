//! The position-map lookaside buffer (Freecursive §4): a set-associative cache of position-map
//! blocks that were read-removed from the tree. Evicted blocks go to the stash.

use super::block_pool::Payload;
use crate::Address;

/// A position-map block outside the tree.
#[derive(Clone, Copy, Debug)]
pub struct PlbEntry {
    /// The block.
    pub id: Address,
    /// Its count, which gives its path when it is appended.
    pub count: u64,
    /// Its content.
    pub payload: Payload,
    used: u64,
}

impl PlbEntry {
    /// A newly fetched entry.
    pub fn new(id: Address, count: u64, payload: Payload) -> Self {
        Self { id, count, payload, used: 0 }
    }
}

/// The buffer: sets of `ways` entries; the least recently used is evicted first.
pub struct Plb {
    sets: Vec<Vec<PlbEntry>>,
    ways: usize,
    clock: u64,
}

impl Plb {
    /// A buffer for `blocks` blocks (at least one), in sets of `ways`.
    pub fn new(blocks: usize, ways: usize) -> Self {
        let ways = ways.clamp(1, blocks.max(1));
        let sets = (blocks / ways).max(1);
        Self { sets: vec![Vec::new(); sets], ways, clock: 0 }
    }

    fn set_of(&self, id: Address) -> usize {
        // Consecutive map blocks go to consecutive sets; levels are spread apart.
        let mixed = id.index().wrapping_add((id.level() as u64).wrapping_mul(0x9e37_79b9));
        (mixed % self.sets.len() as u64) as usize
    }

    /// Takes the block out.
    pub fn take(&mut self, id: Address) -> Option<PlbEntry> {
        let set = self.set_of(id);
        let at = self.sets[set].iter().position(|entry| entry.id == id)?;
        Some(self.sets[set].swap_remove(at))
    }

    /// Whether the block is here.
    pub fn holds(&self, id: Address) -> bool {
        self.sets[self.set_of(id)].iter().any(|entry| entry.id == id)
    }

    /// The block, to change its count.
    pub fn get_mut(&mut self, id: Address) -> Option<&mut PlbEntry> {
        let set = self.set_of(id);
        self.sets[set].iter_mut().find(|entry| entry.id == id)
    }

    /// Inserts a block as the most recently used of its set. Returns the evicted one.
    pub fn insert(&mut self, mut entry: PlbEntry) -> Option<PlbEntry> {
        self.clock += 1;
        entry.used = self.clock;
        let set = self.set_of(entry.id);
        let set = &mut self.sets[set];
        let mut evicted = None;
        if set.len() == self.ways {
            let oldest = (0..set.len()).min_by_key(|&at| set[at].used).unwrap_or(0);
            evicted = Some(set.swap_remove(oldest));
        }
        set.push(entry);
        evicted
    }

    /// Takes all entries out.
    pub fn clear(&mut self) -> Vec<PlbEntry> {
        self.sets.iter_mut().flat_map(std::mem::take).collect()
    }

    /// All entries.
    pub fn entries(&self) -> impl Iterator<Item = &PlbEntry> {
        self.sets.iter().flatten()
    }

    /// The most entries it can hold.
    pub fn capacity(&self) -> usize {
        self.sets.len() * self.ways
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::block_pool::BlockPool;

    #[test]
    fn the_least_recently_used_of_a_full_set_goes() {
        let mut pool = BlockPool::new(64);
        let mut plb = Plb::new(4, 2);
        for id in [0, 2].map(Address) {
            assert!(plb.insert(PlbEntry::new(id, 0, pool.allocate())).is_none());
        }
        let again = plb.take(Address(0)).expect("it was put in");
        assert!(plb.insert(again).is_none());
        let gone =
            plb.insert(PlbEntry::new(Address(4), 0, pool.allocate())).expect("the set was full");
        assert_eq!(gone.id, Address(2));
        let mut there = |id| plb.take(Address(id)).is_some();
        assert!(there(0) && there(4) && !there(2));
        assert_eq!(plb.capacity(), 4);
    }
}
