//! Changes of blocks that wait until they are asked for, together with others.

use super::names::{change, data};
use oblivio_engine::Action;
use oblivio_engine::pyramid::share::Ask;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes that a record needs for each of several patches.
const PATCH_HEAD: usize = 8;

/// What becomes of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockChange {
    /// It is absent.
    Remove,
    /// All of it is replaced.
    Whole(Vec<u8>),
    /// Parts are replaced, which lie apart and in order; the other bytes mean nothing.
    Parts(Vec<u8>, Vec<Range<usize>>),
}

impl BlockChange {
    /// What an action does to a block of this length; none if it changes nothing.
    pub fn of(action: Action, block_bytes: usize) -> Option<Self> {
        let patches = match action {
            Action::Read => return None,
            Action::Remove => return Some(Self::Remove),
            Action::Write(mut bytes) => {
                bytes.resize(block_bytes, 0);
                return Some(Self::Whole(bytes));
            }
            Action::Patch { offset, bytes } => vec![(offset, bytes)],
            Action::Patches(patches) => patches,
        };
        let (mut block, mut parts) = (vec![0; block_bytes], Vec::new());
        for (offset, bytes) in patches {
            let part = offset..offset + bytes.len();
            block[part.clone()].copy_from_slice(&bytes);
            join(&mut parts, part);
        }
        Some(Self::Parts(block, parts).simple())
    }

    /// This change, and a newer one after it.
    pub fn then(self, newer: Self) -> Self {
        let (bytes, parts) = match newer {
            Self::Parts(bytes, parts) => (bytes, parts),
            newer => return newer,
        };
        let (mut block, before) = match self {
            // An absent block counts as zeros.
            Self::Remove => (vec![0; bytes.len()], None),
            Self::Whole(block) => (block, None),
            Self::Parts(block, before) => (block, Some(before)),
        };
        for part in &parts {
            block[part.clone()].copy_from_slice(&bytes[part.clone()]);
        }
        match before {
            None => Self::Whole(block),
            Some(mut all) => {
                parts.into_iter().for_each(|part| join(&mut all, part));
                Self::Parts(block, all).simple()
            }
        }
    }

    fn simple(self) -> Self {
        match self {
            Self::Parts(block, parts) if covers(&parts, block.len()) => Self::Whole(block),
            other => other,
        }
    }

    /// Whether what the block held does not count.
    pub fn is_whole(&self) -> bool {
        !matches!(self, Self::Parts(..))
    }

    /// What the block holds after it.
    pub fn after(&self, before: Option<Vec<u8>>) -> Option<Vec<u8>> {
        match self {
            Self::Remove => None,
            Self::Whole(block) => Some(block.clone()),
            Self::Parts(bytes, parts) => {
                let mut block = before.unwrap_or_else(|| vec![0; bytes.len()]);
                for part in parts {
                    block[part.clone()].copy_from_slice(&bytes[part.clone()]);
                }
                Some(block)
            }
        }
    }

    /// The asks for it: one, unless the parts do not fit a record together.
    pub fn asks(&self, block: u64) -> Vec<Ask> {
        let actions = match self {
            Self::Remove => vec![Action::Remove],
            Self::Whole(bytes) => vec![Action::Write(bytes.clone())],
            Self::Parts(bytes, parts) => {
                let cut = |part: &Range<usize>| (part.start, bytes[part.clone()].to_vec());
                let len: usize = parts.iter().map(|part| PATCH_HEAD + part.len()).sum();
                match parts.len() {
                    2.. if len <= bytes.len() => {
                        vec![Action::Patches(parts.iter().map(cut).collect())]
                    }
                    _ => {
                        let one = |(offset, bytes)| Action::Patch { offset, bytes };
                        parts.iter().map(cut).map(one).collect()
                    }
                }
            }
        };
        actions.into_iter().map(|action| change(data(block), action)).collect()
    }
}

fn covers(parts: &[Range<usize>], block_bytes: usize) -> bool {
    parts.first().is_some_and(|part| part.len() == block_bytes)
}

/// Adds a part, as one with those that it touches.
fn join(parts: &mut Vec<Range<usize>>, mut part: Range<usize>) {
    parts.retain(|other| {
        let touches = other.start <= part.end && part.start <= other.end;
        if touches {
            part = part.start.min(other.start)..part.end.max(other.end);
        }
        !touches
    });
    parts.push(part);
    parts.sort_by_key(|part| part.start);
}

/// Changes by block.
#[derive(Default)]
pub struct WaitingChanges {
    /// Not asked for yet.
    new: BTreeMap<u64, BlockChange>,
    /// Asked for, without an answer.
    leaving: BTreeMap<u64, BlockChange>,
}

impl WaitingChanges {
    /// How many blocks wait.
    pub fn len(&self) -> usize {
        self.new.len()
    }

    /// Whether a further change of this block makes it no more.
    pub fn has(&self, block: u64) -> bool {
        self.new.contains_key(&block)
    }

    /// Adds a change, after those of the block that wait.
    pub fn add(&mut self, block: u64, change: BlockChange) {
        let change = match self.new.remove(&block) {
            Some(before) => before.then(change),
            None => change,
        };
        self.new.insert(block, change);
    }

    /// The changes of a block that wait, in order.
    pub fn of(&self, block: u64) -> Vec<BlockChange> {
        [self.leaving.get(&block), self.new.get(&block)].into_iter().flatten().cloned().collect()
    }

    /// Moves up to `most` changes to those that are asked for, and returns their asks.
    pub fn leave(&mut self, most: usize) -> Vec<Vec<Ask>> {
        while self.leaving.len() < most {
            let Some((block, change)) = self.new.pop_first() else { break };
            self.leaving.insert(block, change);
        }
        let asks = self.leaving.iter().flat_map(|(block, change)| change.asks(*block));
        asks.map(|ask| vec![ask]).collect()
    }

    /// Those that left are carried out; or they wait again, before what came since.
    pub fn left(&mut self, done: bool) {
        for (block, change) in std::mem::take(&mut self.leaving) {
            if !done {
                let change = match self.new.remove(&block) {
                    Some(newer) => change.then(newer),
                    None => change,
                };
                self.new.insert(block, change);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(offset: usize, bytes: &[u8]) -> BlockChange {
        BlockChange::of(Action::Patch { offset, bytes: bytes.to_vec() }, 64).unwrap()
    }

    fn kinds(change: &BlockChange) -> Vec<Action> {
        let action = |ask: Ask| match ask.does {
            oblivio_engine::pyramid::share::Does::Block(operation) => operation.action,
            other => panic!("{other:?}"),
        };
        change.asks(7).into_iter().map(action).collect()
    }

    #[test]
    fn changes_of_a_block_become_one() {
        let before = Some(vec![9; 64]);
        let both = patch(0, &[1; 8]).then(patch(20, &[2; 8]));
        let all = both.clone().then(patch(4, &[3; 8]));
        for change in [&both, &all] {
            assert!(matches!(&kinds(change)[..], [Action::Patches(two)] if two.len() == 2));
        }
        let mut expected = vec![9; 64];
        expected[..8].fill(1);
        expected[20..28].fill(2);
        assert_eq!(both.after(before.clone()), Some(expected.clone()));
        expected[4..12].fill(3);
        assert_eq!(all.after(before.clone()), Some(expected));
        let whole = all.then(patch(0, &[4; 64]));
        assert_eq!(whole, BlockChange::Whole(vec![4; 64]));
        let cut = whole.then(BlockChange::Remove);
        assert_eq!((cut.after(before), cut.is_whole()), (None, true));
        let again = cut.then(patch(63, &[5]));
        assert!(
            matches!(&again, BlockChange::Whole(block) if block[..63] == [0; 63] && block[63] == 5)
        );
    }

    #[test]
    fn parts_that_do_not_fit_a_record_are_asked_for_one_by_one() {
        let many = (0..8).fold(patch(0, &[1]), |all, at| all.then(patch(at * 8, &[1])));
        assert_eq!(kinds(&many).len(), 8, "8 bytes each are as much as the block");
        let few = (0..7).fold(patch(0, &[1]), |all, at| all.then(patch(at * 8, &[1])));
        assert_eq!(kinds(&few).len(), 1);
    }

    #[test]
    fn what_was_not_carried_out_waits_before_what_came_since() {
        let mut waiting = WaitingChanges::default();
        waiting.add(3, BlockChange::Whole(vec![1; 64]));
        waiting.add(5, BlockChange::Remove);
        assert_eq!((waiting.leave(1).len(), waiting.len()), (1, 1));
        waiting.add(3, patch(0, &[2]));
        assert_eq!(waiting.of(3).len(), 2);
        waiting.left(false);
        let [BlockChange::Whole(block)] = &waiting.of(3)[..] else { panic!("one change") };
        assert_eq!((block[0], block[1]), (2, 1));
        assert_eq!(waiting.leave(9).len(), 2);
        waiting.left(true);
        assert_eq!((waiting.len(), waiting.of(3).len()), (0, 0));
    }
}
