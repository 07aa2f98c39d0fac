//! Deferred writes: accepted, not yet carried out.

use crate::ranges::Ranges;
use crate::records::writes::{WriteEntry, op};
use oblivio_engine::{Action, BlockOp, BlockOutcome};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// What is known of a block beneath the ranges written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// Only the engine's content.
    Stored,
    /// Zeros: all of it was written.
    Zeros,
    /// The block was removed and not written since.
    Absent,
}

/// The deferred writes of one block.
#[derive(Clone)]
struct Pending {
    base: Base,
    /// Where `data` begins in the block.
    start: usize,
    /// From the first byte written to the last. The next record has the same bytes, and they are
    /// copied only when a block is written again before that.
    data: Arc<Vec<u8>>,
    /// The written parts, unless the base is known.
    written: Ranges,
}

/// The deferred writes, oldest block first.
///
/// Two writes to one block are carried out as one, so the accesses reveal how often blocks were
/// rewritten. To hide that, every operation can have a *turn* of its own: the second write's turn
/// is empty, and a dummy serves it.
#[derive(Clone, Default)]
pub struct Deferred {
    blocks: HashMap<u64, Pending>,
    /// The turns; an empty one is `None`.
    order: VecDeque<Option<u64>>,
    bytes: usize,
    /// Whether each operation has a turn.
    each: bool,
}

impl Deferred {
    /// Defers nothing yet. With `each`, every operation has a turn, else every block.
    pub fn new(each: bool) -> Self {
        Self { each, ..Self::default() }
    }

    /// Whether each operation has a turn, of any kind.
    pub fn has_turn_for_each(&self) -> bool {
        self.each
    }

    /// Deferred bytes, each block's from its front on.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing is deferred.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Adds what one operation changes, all of it in one block. A read changes nothing, but takes a
    /// turn if each operation has one.
    pub fn add(&mut self, entries: &[WriteEntry]) {
        let id = entries.first().and_then(WriteEntry::block);
        let new = id.filter(|id| !self.blocks.contains_key(id));
        if new.is_some() || self.each {
            self.order.push_back(new);
        }
        let Some(id) = id else { return };
        let pending = self.blocks.entry(id).or_insert_with(Pending::nothing);
        self.bytes -= pending.end();
        entries.iter().for_each(|entry| pending.apply(entry));
        self.bytes += pending.end();
    }

    /// A block after its deferred writes, given the engine's outcome of a read of it. A lost block
    /// stays lost under writes of parts of it.
    pub fn overlay(&self, id: u64, block_bytes: usize, outcome: BlockOutcome) -> BlockOutcome {
        let Some(pending) = self.blocks.get(&id) else { return outcome };
        let mut block = match pending.base {
            Base::Absent => return Ok(None),
            _ if pending.replaces(block_bytes) => Vec::new(),
            _ => outcome?.unwrap_or_default(),
        };
        block.resize(block_bytes, 0);
        match pending.base {
            Base::Stored => pending.written.iter().for_each(|(start, end)| {
                block[start..end].copy_from_slice(pending.part(start, end));
            }),
            _ => block[pending.start..pending.end()].copy_from_slice(&pending.data),
        }
        Ok(Some(block))
    }

    /// Takes out the operations of the oldest turns, up to `most`.
    pub fn drain(&mut self, most: usize) -> Vec<BlockOp> {
        let count = most.min(self.order.len());
        let ids: Vec<u64> = self.order.drain(..count).flatten().collect();
        ids.into_iter().filter_map(|id| self.take(id)).collect()
    }

    /// Whether a block has deferred writes.
    pub fn waits(&self, id: u64) -> bool {
        self.blocks.contains_key(&id)
    }

    /// Whether the deferred writes of a block leave nothing of what is stored.
    pub fn replaces(&self, id: u64, block_bytes: usize) -> bool {
        self.blocks.get(&id).is_some_and(|pending| pending.replaces(block_bytes))
    }

    /// Whether a block will exist after its deferred writes; `None` if it has none.
    pub fn exists(&self, id: u64) -> Option<bool> {
        self.blocks.get(&id).map(|pending| pending.base != Base::Absent)
    }

    /// How many blocks the deferred writes will add to those of which `is_live` holds.
    pub fn coming(&self, is_live: impl Fn(u64) -> bool) -> u64 {
        let comes = |id: &u64| self.exists(*id) == Some(true) && !is_live(*id);
        self.ids().filter(comes).count() as u64
    }

    /// The blocks with deferred writes.
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        self.blocks.keys().copied()
    }

    /// The number of turns.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Forgets a block's deferred writes. Its turn stays if each operation has one.
    pub fn forget(&mut self, id: u64) {
        let found = self.take(id).is_some();
        if found && self.each {
            let turn = self.order.iter_mut().find(|turn| **turn == Some(id));
            turn.into_iter().for_each(|turn| *turn = None);
        } else if found {
            self.order.retain(|&turn| turn != Some(id));
        }
    }

    fn take(&mut self, id: u64) -> Option<BlockOp> {
        let pending = self.blocks.remove(&id)?;
        self.bytes -= pending.end();
        Some(op(id, pending.into_action()))
    }
}

impl Pending {
    fn nothing() -> Self {
        Self { base: Base::Stored, start: 0, data: Arc::default(), written: Ranges::default() }
    }

    /// All of a block that is absent, or begins with these bytes and then has zeros.
    fn whole(base: Base, data: Arc<Vec<u8>>) -> Self {
        Self { base, data, ..Self::nothing() }
    }

    fn end(&self) -> usize {
        self.start + self.data.len()
    }

    fn replaces(&self, block_bytes: usize) -> bool {
        self.base != Base::Stored || self.written.covers(0, block_bytes)
    }

    fn part(&self, start: usize, end: usize) -> &[u8] {
        &self.data[start - self.start..end - self.start]
    }

    fn apply(&mut self, entry: &WriteEntry) {
        match entry {
            WriteEntry::Whole(_, bytes) => *self = Self::whole(Base::Zeros, Arc::clone(bytes)),
            WriteEntry::Part(_, offset, bytes) => self.patch(*offset, bytes),
            WriteEntry::Removed(_) => *self = Self::whole(Base::Absent, Arc::default()),
            WriteEntry::Discarded(..) => {}
        }
    }

    fn patch(&mut self, offset: usize, bytes: &Arc<Vec<u8>>) {
        let end = offset + bytes.len();
        if self.data.is_empty() {
            (self.start, self.data) = (offset, Arc::clone(bytes));
        } else {
            let data = Arc::make_mut(&mut self.data);
            if offset < self.start {
                data.splice(..0, std::iter::repeat_n(0, self.start - offset));
                self.start = offset;
            }
            data.resize(data.len().max(end - self.start), 0);
            data[offset - self.start..end - self.start].copy_from_slice(bytes);
        }
        match self.base {
            Base::Stored => self.written.add(offset, end),
            _ => self.base = Base::Zeros,
        }
    }

    fn into_action(self) -> Action {
        match self.base {
            Base::Absent => Action::Remove,
            Base::Zeros if self.start == 0 => Action::Write(Arc::unwrap_or_clone(self.data)),
            Base::Zeros => {
                let mut bytes = vec![0; self.start];
                bytes.extend_from_slice(&self.data);
                Action::Write(bytes)
            }
            Base::Stored => self.into_patches(),
        }
    }

    fn into_patches(self) -> Action {
        let parts: Vec<_> = self.written.iter().collect();
        match parts[..] {
            // One range is all of the data.
            [(offset, _)] => Action::Patch { offset, bytes: Arc::unwrap_or_clone(self.data) },
            _ => {
                let part = |&(start, end): &(usize, usize)| (start, self.part(start, end).to_vec());
                Action::Patches(parts.iter().map(part).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::writes::Writes;
    use proptest::prelude::*;

    const BYTES: usize = 16;

    fn apply(block: &mut Option<Vec<u8>>, action: &Action) {
        let patch = |block: &mut Option<Vec<u8>>, offset: usize, bytes: &[u8]| {
            let block = block.get_or_insert_with(|| vec![0; BYTES]);
            block[offset..offset + bytes.len()].copy_from_slice(bytes);
        };
        match action {
            Action::Read => {}
            Action::Write(bytes) => {
                *block = Some(bytes.clone());
                block.iter_mut().for_each(|block| block.resize(BYTES, 0));
            }
            Action::Patch { offset, bytes } => patch(block, *offset, bytes),
            Action::Patches(patches) => {
                patches.iter().for_each(|(offset, bytes)| patch(block, *offset, bytes));
            }
            Action::Remove => *block = None,
        }
    }

    fn any_action() -> impl Strategy<Value = Action> {
        let bytes = || proptest::collection::vec(any::<u8>(), 1..=4);
        let patch = || (0..BYTES - 4, bytes());
        prop_oneof![
            bytes().prop_map(Action::Write),
            patch().prop_map(|(offset, bytes)| Action::Patch { offset, bytes }),
            proptest::collection::vec(patch(), 1..3).prop_map(Action::Patches),
            Just(Action::Remove),
        ]
    }

    proptest! {
        #[test]
        fn what_waits_and_what_is_recorded_is_what_was_written(
            stored in proptest::option::of(proptest::collection::vec(any::<u8>(), BYTES)),
            actions in proptest::collection::vec(any_action(), 1..6),
            each in any::<bool>(),
        ) {
            let (mut deferred, mut writes) = (Deferred::new(each), Writes::default());
            let turns = if each { actions.len() } else { 1 };
            let mut model = stored.clone();
            for action in actions {
                apply(&mut model, &action);
                let entries = WriteEntry::of(op(3, action));
                deferred.add(&entries);
                entries.into_iter().for_each(|entry| writes.push(entry));
            }
            prop_assert_eq!(&deferred.overlay(3, BYTES, Ok(stored.clone())), &Ok(model.clone()));
            prop_assert_eq!(deferred.len(), turns);
            let mut padded = Vec::new();
            writes.write_to(&mut padded);
            prop_assert_eq!(padded.len(), writes.len());
            padded.extend_from_slice(&[0; 40]);
            let parsed = Writes::parse(&padded).expect("as written");
            prop_assert_eq!(&parsed, &writes, "what waits is still as it was recorded");
            let mut replay = Deferred::new(each);
            for entry in parsed.entries(4, BYTES).expect("in range") {
                replay.add(std::slice::from_ref(entry));
            }
            for mut waits in [deferred, replay] {
                let mut drained = stored.clone();
                for op in waits.drain(99) {
                    apply(&mut drained, &op.action);
                }
                prop_assert_eq!(&drained, &model);
                prop_assert!(waits.is_empty() && waits.bytes() == 0);
            }
            prop_assert!(parsed.entries(3, BYTES).is_none());
            let mut rest = parsed.clone();
            let mut front = rest.take_front(30);
            prop_assert!(!front.is_empty());
            front.append(&rest);
            prop_assert_eq!(front, parsed);
        }
    }
}
