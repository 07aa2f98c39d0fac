//! Deferred writes: accepted, not yet carried out. And the bytes that a sync must keep.

use crate::ranges::Ranges;
use oblivio_engine::{Action, BlockAnswer, BlockId, BlockOp};
use std::collections::{HashMap, VecDeque};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

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
    /// As long as the furthest byte written.
    data: Vec<u8>,
    /// The written parts of `data`, unless the base is known.
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

    /// Deferred bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing is deferred.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Adds a write. A read does nothing, but takes a turn if each operation has one.
    pub fn add(&mut self, op: BlockOp) {
        let id = op.id.0;
        let read = op.action == Action::Read;
        let new = !read && !self.blocks.contains_key(&id);
        if new || self.each {
            self.order.push_back(new.then_some(id));
        }
        if read {
            return;
        }
        let nothing =
            || Pending { base: Base::Stored, data: Vec::new(), written: Ranges::default() };
        let pending = self.blocks.entry(id).or_insert_with(nothing);
        self.bytes -= pending.data.len();
        pending.apply(op.action);
        self.bytes += pending.data.len();
    }

    /// Adds an empty turn, if each operation has one.
    pub fn add_empty(&mut self) {
        self.add(BlockOp { id: BlockId(0), action: Action::Read });
    }

    /// A block after its deferred writes, given the engine's answer to a read of it.
    pub fn overlay(&self, id: u64, block_bytes: usize, answer: BlockAnswer) -> BlockAnswer {
        let Some(pending) = self.blocks.get(&id) else { return answer };
        let mut block = match pending.base {
            Base::Absent => return None,
            Base::Zeros => pending.data.clone(),
            Base::Stored => answer.unwrap_or_default(),
        };
        block.resize(block_bytes, 0);
        for (start, end) in pending.written.iter() {
            block[start..end].copy_from_slice(&pending.data[start..end]);
        }
        Some(block)
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

    /// Whether a block will exist after its deferred writes; `None` if it has none.
    pub fn exists(&self, id: u64) -> Option<bool> {
        self.blocks.get(&id).map(|pending| pending.base != Base::Absent)
    }

    /// The blocks with deferred writes.
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        self.blocks.keys().copied()
    }

    /// The number of turns.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Forgets a block's deferred writes; says whether there were any. Its turn stays if each
    /// operation has one.
    pub fn forget(&mut self, id: u64) -> bool {
        let found = self.take(id).is_some();
        if found && self.each {
            let turn = self.order.iter_mut().find(|turn| **turn == Some(id));
            turn.into_iter().for_each(|turn| *turn = None);
        } else if found {
            self.order.retain(|&turn| turn != Some(id));
        }
        found
    }

    fn take(&mut self, id: u64) -> Option<BlockOp> {
        let pending = self.blocks.remove(&id)?;
        self.bytes -= pending.data.len();
        Some(BlockOp { id: BlockId(id), action: pending.into_action() })
    }
}

impl Pending {
    fn apply(&mut self, action: Action) {
        match action {
            Action::Read => {}
            Action::Write(bytes) => {
                *self = Pending { base: Base::Zeros, data: bytes, written: Ranges::default() };
            }
            Action::Patch { offset, bytes } => self.patch(offset, &bytes),
            Action::Patches(patches) => {
                patches.iter().for_each(|(offset, bytes)| self.patch(*offset, bytes));
            }
            Action::Remove => {
                let data = Vec::new();
                *self = Pending { base: Base::Absent, data, written: Ranges::default() };
            }
        }
    }

    fn patch(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if self.data.len() < end {
            self.data.resize(end, 0);
        }
        self.data[offset..end].copy_from_slice(bytes);
        match self.base {
            Base::Stored => self.written.add(offset, end),
            _ => self.base = Base::Zeros,
        }
    }

    fn into_action(self) -> Action {
        match self.base {
            Base::Zeros => Action::Write(self.data),
            Base::Absent => Action::Remove,
            Base::Stored => {
                let part = |(start, end)| (start, self.data[start..end].to_vec());
                let mut patches: Vec<_> = self.written.iter().map(part).collect();
                match patches.len() {
                    1 => match patches.pop() {
                        Some((offset, bytes)) => Action::Patch { offset, bytes },
                        None => Action::Read,
                    },
                    _ => Action::Patches(patches),
                }
            }
        }
    }
}

const WHOLE: u32 = 1;
const PART: u32 = 2;
const REMOVED: u32 = 3;
const DISCARDED: u32 = 4;

/// One entry of a sync's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// An operation that writes.
    Op(BlockOp),
    /// A first block and a count: blocks no longer wanted.
    Discard(u64, u64),
}

/// How an entry begins, as stored; its bytes follow.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    /// Zero: the writes end here.
    kind: U32,
    offset: U32,
    id: U64,
    /// For a discard a number of blocks, and no bytes follow.
    length: U64,
}

/// Writes in order, as in a sync's record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes(Vec<u8>);

impl Writes {
    /// As in a record.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds later ones.
    pub fn append(&mut self, later: &Self) {
        self.0.extend_from_slice(&later.0);
    }

    /// Notes an operation's writes.
    pub fn add(&mut self, op: &BlockOp) {
        match &op.action {
            Action::Read => {}
            Action::Write(bytes) => self.push(WHOLE, op.id.0, 0, bytes),
            Action::Patch { offset, bytes } => self.push(PART, op.id.0, *offset, bytes),
            Action::Patches(patches) => {
                patches.iter().for_each(|(at, bytes)| self.push(PART, op.id.0, *at, bytes));
            }
            Action::Remove => self.push(REMOVED, op.id.0, 0, &[]),
        }
    }

    /// Notes that `count` blocks from `first` on are no longer wanted.
    pub fn discard(&mut self, first: u64, count: u64) {
        self.head(DISCARDED, first, 0, count);
    }

    /// Notes an empty turn, so that a replay has one as well.
    pub fn empty(&mut self) {
        self.discard(0, 0);
    }

    /// Takes the front entries that fit into `most` bytes, one at least.
    pub fn take_front(&mut self, most: usize) -> Self {
        let mut rest = self.bytes();
        while let Some(Some((_, after))) = next(rest) {
            let taken = self.0.len() - after.len();
            if taken > most && rest.len() < self.0.len() {
                break;
            }
            rest = after;
        }
        let rest = rest.to_vec();
        self.0.truncate(self.0.len() - rest.len());
        Self(std::mem::replace(&mut self.0, rest))
    }

    fn push(&mut self, kind: u32, id: u64, offset: usize, bytes: &[u8]) {
        self.head(kind, id, offset, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn head(&mut self, kind: u32, id: u64, offset: usize, length: u64) {
        let (kind, offset) = (U32::new(kind), U32::new(offset as u32));
        let head = Head { kind, offset, id: U64::new(id), length: U64::new(length) };
        self.0.extend_from_slice(head.as_bytes());
    }

    /// Parses the entries at the front of `bytes`; `None` for nonsense.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        while let Some((_, after)) = next(rest)? {
            rest = after;
        }
        Some(Self(bytes[..bytes.len() - rest.len()].to_vec()))
    }

    /// The entries, for blocks below `blocks` of `block_bytes`; `None` if one does not fit.
    pub fn entries(&self, blocks: u64, block_bytes: usize) -> Option<Vec<Entry>> {
        let (mut entries, mut rest) = (Vec::new(), self.bytes());
        while let Some((entry, after)) = next(rest)? {
            let fits = match &entry {
                Entry::Op(op) => op.id.0 < blocks && op.action.end() <= block_bytes,
                Entry::Discard(first, count) => {
                    first.checked_add(*count).is_some_and(|end| end <= blocks)
                }
            };
            if !fits {
                return None;
            }
            entries.push(entry);
            rest = after;
        }
        Some(entries)
    }
}

/// The next write and what follows it: `Some(None)` at the end, `None` for nonsense.
#[expect(clippy::option_option, reason = "an end is not an error")]
fn next(bytes: &[u8]) -> Option<Option<(Entry, &[u8])>> {
    let Ok((head, rest)) = Head::ref_from_prefix(bytes) else {
        return bytes.iter().all(|&byte| byte == 0).then_some(None);
    };
    let (kind, id, length) = (head.kind.get(), BlockId(head.id.get()), head.length.get());
    if kind == 0 {
        return Some(None);
    }
    if kind == DISCARDED {
        return Some(Some((Entry::Discard(id.0, length), rest)));
    }
    let (data, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    let action = match kind {
        WHOLE => Action::Write(data.to_vec()),
        PART => Action::Patch { offset: head.offset.get() as usize, bytes: data.to_vec() },
        REMOVED => Action::Remove,
        _ => return None,
    };
    Some(Some((Entry::Op(BlockOp { id, action }), after)))
}

#[cfg(test)]
mod tests {
    use super::*;
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
                let op = BlockOp { id: BlockId(3), action };
                apply(&mut model, &op.action);
                writes.add(&op);
                deferred.add(op);
            }
            prop_assert_eq!(&deferred.overlay(3, BYTES, stored.clone()), &model);
            prop_assert_eq!(deferred.len(), turns);
            let (mut drained, mut replayed) = (stored.clone(), stored);
            for op in deferred.drain(9) {
                apply(&mut drained, &op.action);
            }
            prop_assert_eq!(&drained, &model);
            prop_assert!(deferred.is_empty() && deferred.bytes() == 0);
            let padded = [writes.bytes(), &[0; 40][..]].concat();
            let parsed = Writes::parse(&padded).expect("as written");
            for entry in parsed.entries(4, BYTES).expect("in range") {
                let Entry::Op(op) = entry else { panic!("nothing was discarded") };
                apply(&mut replayed, &op.action);
            }
            prop_assert_eq!(&replayed, &model);
            prop_assert!(parsed.entries(3, BYTES).is_none());
            let mut rest = parsed.clone();
            let front = rest.take_front(30);
            prop_assert_eq!([front.bytes(), rest.bytes()].concat(), parsed.bytes());
            prop_assert!(!front.bytes().is_empty());
        }
    }
}
