//! What a volume asks its pyramid: which blocks exist, where tables lie, and whether a whole table
//! is as it was sealed.

use super::ids::{Height, Home, Name, Slot, Spot};
use super::oram::{PyramidOram, Whereabouts};
use super::table::Holds;
use crate::{BlockId, Result};

/// A table in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its place.
    pub home: Home,
    /// Its height in its partition.
    pub height: Height,
}

impl PyramidOram {
    /// Whether a block exists, as of the rounds that were served.
    pub fn exists(&self, id: BlockId) -> bool {
        let name = Name::from(id);
        let Some(entry) = self.index.get(&name) else { return false };
        // In the stash, a block without content was removed.
        !self.stash.is_absent(name)
            && (entry.at != Whereabouts::Stash || self.stash.content(name).is_some())
    }

    /// Asks so far.
    pub fn asks(&self) -> u64 {
        self.asks
    }

    /// All tables, by partition. The store knows them.
    pub fn tables(&self) -> impl Iterator<Item = Stored> {
        let tables = self.tables.iter().flatten();
        tables.map(|table| Stored { home: table.home, height: table.height })
    }

    /// Checks all slots of a table, one after the other: those that were sealed with a block, and
    /// those that hold nothing. To read all says nothing about any of them.
    ///
    /// # Errors
    /// `TamperedTable` if a slot is not what was sealed there.
    pub fn check_table(&self, home: Home, slots: &mut [u8]) -> Result<()> {
        let table = self.tables.iter().flatten().find(|table| table.home == home);
        let table = table.ok_or_else(|| Self::tampered(home, "there is no such table"))?;
        let (count, slot_bytes) = (self.config.slots(table.height), self.config.slot_bytes());
        if slots.len() != count as usize * slot_bytes {
            return Err(Self::tampered(home, "it has another length"));
        }
        let mut holds = vec![Holds::Nothing; count as usize];
        let order = table.keys.order(count);
        order.iter().take(table.made_with()).for_each(|&at| holds[at as usize] = Holds::Stale);
        for (name, slot) in table.blocks() {
            let here = Whereabouts::Table(Spot { home, slot });
            if self.index.get(&name).is_some_and(|entry| entry.at == here) {
                holds[slot.0 as usize] = Holds::Block(name);
            }
        }
        for ((slot, bytes), holds) in (0..).zip(slots.chunks_exact_mut(slot_bytes)).zip(holds) {
            Self::open_slot(&table.keys, Spot { home, slot: Slot(slot) }, holds, bytes)?;
        }
        Ok(())
    }
}
