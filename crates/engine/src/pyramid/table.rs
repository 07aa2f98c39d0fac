//! A table: an immutable run of sealed slots in an order that nobody else knows. Some hold blocks,
//! the others nothing. Each is read at most once, by an ask or by a merge.

use super::ids::{Height, Name, TableHome, TableSlot, TableSpot};
use oblivio_crypto::TableKeys;
use std::sync::Arc;

/// What a slot that a merge reads holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// This block.
    Block(Name),
    /// A block that was asked for between the place of the table's merge and its switch: what it
    /// holds is old.
    Stale,
    /// Nothing.
    Nothing,
}

/// The slots of a table that a merge reads, ascending.
pub(super) type MergeSet = Vec<(TableSlot, Holds)>;

/// A slot that was sealed with a block.
struct Member {
    slot: TableSlot,
    /// None for one that was old from the begin, in a later session.
    name: Option<Name>,
    /// Whether it was read.
    shown: bool,
}

const NONE: u32 = u32::MAX;

/// What its maker knows of a table.
pub(super) struct Table {
    pub home: TableHome,
    pub height: Height,
    pub keys: Arc<TableKeys>,
    members: Vec<Member>,
    /// Which member stands in each slot; `NONE` if it holds nothing.
    at: Vec<u32>,
    /// The slots that hold nothing, in random order.
    empty: Vec<TableSlot>,
    /// How many of these were shown to asks, from the front.
    used: usize,
    /// Asks that read from it.
    pub reads: u32,
}

impl Table {
    /// A table whose first `made_with` slots in the `order` of its keys were sealed with blocks.
    pub fn new(
        home: TableHome,
        height: Height,
        keys: TableKeys,
        order: &[u32],
        made_with: usize,
    ) -> Self {
        let (places, empty) = order.split_at(made_with.min(order.len()));
        let member = |&slot| Member { slot: TableSlot(slot), name: None, shown: false };
        let mut at = vec![NONE; order.len()];
        for (&slot, member) in places.iter().zip(0..) {
            at[slot as usize] = member;
        }
        Self {
            home,
            height,
            keys: Arc::new(keys),
            members: places.iter().map(member).collect(),
            at,
            empty: empty.iter().copied().map(TableSlot).collect(),
            used: 0,
            reads: 0,
        }
    }

    /// Names its blocks, the first one first.
    pub fn named(mut self, names: &[Name]) -> Self {
        for (member, &name) in self.members.iter_mut().zip(names) {
            member.name = Some(name);
        }
        self
    }

    /// Takes up the counters of an earlier session; false if they make no sense. `shown` tells
    /// which members were read.
    pub fn read_before(&mut self, reads: u32, shown: impl Fn(usize) -> bool) -> bool {
        for (index, member) in self.members.iter_mut().enumerate() {
            member.shown = shown(index);
        }
        let real = self.members.iter().filter(|member| member.shown).count();
        let used = (reads as usize).checked_sub(real);
        self.reads = reads;
        self.used = used.unwrap_or(0);
        used.is_some_and(|used| used <= self.empty.len())
    }

    /// Names the block that is still in this slot; false if none can be there.
    pub fn restore_member(&mut self, name: Name, slot: TableSlot) -> bool {
        let member = self.member(slot).filter(|member| !member.shown && member.name.is_none());
        member.map(|member| member.name = Some(name)).is_some()
    }

    fn member(&mut self, slot: TableSlot) -> Option<&mut Member> {
        let at = *self.at.get(slot.0 as usize)?;
        self.members.get_mut(at as usize)
    }

    /// The slots that were sealed with blocks.
    pub fn made_with(&self) -> usize {
        self.members.len()
    }

    /// Whether each of these was read.
    pub fn shown(&self) -> impl Iterator<Item = bool> {
        self.members.iter().map(|member| member.shown)
    }

    /// The blocks that it was made with.
    pub fn blocks(&self) -> impl Iterator<Item = (Name, TableSlot)> {
        self.members.iter().filter_map(|member| Some((member.name?, member.slot)))
    }

    /// Counts a read: of this slot, if a block is there, or else of the next one without a block.
    /// None if there is none: it was read more often than it has slots for.
    pub fn read(&mut self, block: Option<TableSlot>) -> Option<TableSlot> {
        self.reads += 1;
        if let Some(slot) = block {
            self.member(slot)?.shown = true;
            return Some(slot);
        }
        let slot = self.empty.get(self.used).copied()?;
        self.used += 1;
        Some(slot)
    }

    /// The slots that a merge reads: as many as the table has places for blocks (`capacity`), none
    /// of which was shown. All blocks that are `here` are among them, and all that are old; the
    /// rest hold nothing. So what asks may still be shown holds nothing.
    pub fn merge_set(&self, capacity: u32, here: impl Fn(Name, TableSpot) -> bool) -> MergeSet {
        let home = self.home;
        let holds = |member: &Member| match member.name {
            Some(name) if here(name, TableSpot { home, slot: member.slot }) => Holds::Block(name),
            _ => Holds::Stale,
        };
        let unread = self.members.iter().filter(|member| !member.shown);
        let mut set: Vec<_> = unread.map(|member| (member.slot, holds(member))).collect();
        let fillers = (capacity as usize).saturating_sub(set.len());
        let left = &self.empty[self.used..];
        debug_assert!(fillers <= left.len(), "it was not read more often than it has slots for");
        set.extend(left.iter().rev().take(fillers).map(|&slot| (slot, Holds::Nothing)));
        set.sort_unstable_by_key(|entry| entry.0);
        set
    }
}
