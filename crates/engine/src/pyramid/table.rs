//! A table: an immutable run of sealed slots in an order that nobody else knows. Some hold blocks,
//! the others nothing. Each is read at most once, by an ask or by a merge.

use super::ids::{Height, Home, Name, Slot, Spot};
use oblivio_crypto::TableKeys;

/// The slots of a table that a merge reads, ascending, each with the block that is there.
pub(super) type MergeSet = Vec<(Slot, Option<Name>)>;

/// What its maker knows of a table.
pub(super) struct Table {
    pub home: Home,
    pub height: Height,
    pub keys: TableKeys,
    /// The blocks that it held when it was made, and where. Some are elsewhere by now.
    members: Vec<(Name, Slot)>,
    /// The slots that hold nothing, in random order.
    empty: Vec<Slot>,
    slots: u32,
    /// How many of these were shown to asks, from the front.
    used: usize,
    /// Asks that read from it.
    pub reads: u32,
}

impl Table {
    /// A table with these blocks. Its slots are in the order that its keys draw.
    pub fn new(home: Home, height: Height, keys: TableKeys, order: &[u32], names: &[Name]) -> Self {
        let slots = order.len() as u32;
        let (places, empty) = order.split_at(names.len());
        let members = names.iter().copied().zip(places.iter().copied().map(Slot)).collect();
        let empty = empty.iter().copied().map(Slot).collect();
        Self { home, height, keys, members, empty, slots, used: 0, reads: 0 }
    }

    /// A table of an earlier session, and how many blocks it was made with. Those that are still in
    /// it follow by [`Self::restore_member`].
    pub fn again(
        home: Home,
        height: Height,
        slots: u32,
        keys: TableKeys,
        made_with: usize,
        used: usize,
        reads: u32,
    ) -> Self {
        let empty = keys.order(slots).split_off(made_with).into_iter().map(Slot).collect();
        Self { home, height, keys, members: Vec::new(), empty, slots, used, reads }
    }

    /// Adds a block that is still here; false if there is no such slot.
    pub fn restore_member(&mut self, name: Name, slot: Slot) -> bool {
        let fits =
            slot.0 < self.slots && self.members.len() + self.empty.len() < self.slots as usize;
        if fits {
            self.members.push((name, slot));
        }
        fits
    }

    /// The blocks that it was made with.
    pub fn made_with(&self) -> u64 {
        (self.slots as usize - self.empty.len()) as u64
    }

    /// The slots without a block that asks were shown.
    pub fn used(&self) -> u64 {
        self.used as u64
    }

    /// Its blocks when it was made.
    pub fn members(&self) -> &[(Name, Slot)] {
        &self.members
    }

    /// The next slot without a block, to be shown to an ask; none if too many were.
    pub fn next_empty(&mut self) -> Option<Slot> {
        let slot = self.empty.get(self.used).copied();
        self.used += usize::from(slot.is_some());
        slot
    }

    /// The slots that a merge reads: as many as the table has places for blocks (`capacity`), none
    /// of which was shown. All blocks that are `here` are among them; the rest hold nothing, or
    /// what is elsewhere by now.
    pub fn merge_set(&self, capacity: u32, here: impl Fn(Name, Spot) -> bool) -> MergeSet {
        let home = self.home;
        let held =
            self.members.iter().filter(|(name, slot)| here(*name, Spot { home, slot: *slot }));
        let mut set: Vec<_> = held.map(|&(name, slot)| (slot, Some(name))).collect();
        let fillers = (capacity as usize).saturating_sub(set.len());
        let left = &self.empty[self.used..];
        debug_assert!(fillers <= left.len(), "it was not read more often than it has slots for");
        set.extend(left.iter().rev().take(fillers).map(|&slot| (slot, None)));
        set.sort_unstable_by_key(|entry| entry.0);
        set
    }
}
