//! A table of the planted scribe: places without content.

use super::flaw::Flaw;
use crate::share_audit::record::{Spot, TableSizes};
use oblivio_splitmix::SplitMix64;
use std::collections::BTreeMap;

/// A table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub name: u64,
    pub height: u32,
    /// Blocks that are here, and their slots.
    pub blocks: BTreeMap<u64, u32>,
    /// Slots of blocks that were asked for while the table was made. Asks never read them.
    stale: Vec<u32>,
    /// Slots that hold nothing, in random order.
    empty: Vec<u32>,
    used: usize,
    pub reads: u32,
}

/// Numbers below `count`, in random order.
pub(super) fn any_order(rng: &mut SplitMix64, count: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order
}

impl Table {
    /// A table made of these blocks; each says whether it is still to be found here.
    pub fn new(
        name: u64,
        height: u32,
        sizes: &TableSizes,
        made_of: &[(u64, bool)],
        rng: &mut SplitMix64,
    ) -> Self {
        let order = any_order(rng, sizes.slots);
        let (places, empty) = order.split_at(made_of.len());
        let (mut blocks, mut stale) = (BTreeMap::new(), Vec::new());
        for (&(block, here), &slot) in made_of.iter().zip(places) {
            if here {
                blocks.insert(block, slot);
            } else {
                stale.push(slot);
            }
        }
        Self { name, height, blocks, stale, empty: empty.to_vec(), used: 0, reads: 0 }
    }

    /// The slot that an ask reads, and whether it is its block's.
    pub fn read(&mut self, own: Option<u64>, flaw: Option<Flaw>, rng: &mut SplitMix64) -> Spot {
        self.reads += 1;
        let own = own.and_then(|block| self.blocks.remove(&block));
        let slot = own.unwrap_or_else(|| self.next_empty(flaw, rng));
        Spot { table: self.name, slot }
    }

    fn next_empty(&mut self, flaw: Option<Flaw>, rng: &mut SplitMix64) -> u32 {
        self.used += 1;
        match flaw {
            Some(Flaw::Replacement) => self.empty[rng.below(self.empty.len() as u64) as usize],
            _ => self.empty[self.used - 1],
        }
    }

    /// The next slot that holds nothing, to read in place of another one.
    pub fn another_empty(&mut self) -> u32 {
        self.used += 1;
        self.empty[self.used - 1]
    }

    /// The slots that a merge reads.
    pub fn merge_set(
        &self,
        capacity: u32,
        anew: Option<&mut SplitMix64>,
        blocks_only: bool,
    ) -> Vec<Spot> {
        let mut slots: Vec<u32> = self.blocks.values().chain(&self.stale).copied().collect();
        let mut left = self.empty[self.used..].to_vec();
        if let Some(rng) = anew {
            let order = any_order(rng, left.len() as u32);
            left = order.into_iter().map(|at| left[at as usize]).collect();
        }
        if !blocks_only {
            let fillers = (capacity as usize).saturating_sub(slots.len());
            slots.extend(left.iter().rev().take(fillers));
        }
        slots.sort_unstable();
        slots.into_iter().map(|slot| Spot { table: self.name, slot }).collect()
    }
}
