//! A store of blocks, one transaction after the other.

use std::collections::BTreeMap;
use todc_utils::Specification;

/// What must hold of a block before a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Nothing.
    Always,
    /// It does not exist.
    Absent,
    /// It exists.
    Exists,
    /// It exists, with these bytes at this offset.
    Bytes(usize, Vec<u8>),
}

/// What happens to a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing. It is answered.
    Read,
    /// It is this.
    Write(Vec<u8>),
    /// It has these bytes at this offset. One that did not exist is zeros before, of this length.
    Patch(usize, Vec<u8>, usize),
    /// It exists no more.
    Remove,
}

/// What a transaction does with one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The block.
    pub block: u64,
    /// What must hold of it before.
    pub compare: Compare,
    /// What happens to it, if all comparisons of the transaction hold.
    pub change: Change,
    /// Whether the content before is answered, whatever happens.
    pub and_read: bool,
}

/// The answer to a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether all comparisons held.
    pub done: bool,
    /// The content, if it was asked for and there is some.
    pub content: Option<Vec<u8>>,
}

impl Part {
    /// Whether it may change its block.
    pub(super) fn changes(&self) -> bool {
        self.change != Change::Read
    }

    fn holds(&self, content: Option<&Vec<u8>>) -> bool {
        match (&self.compare, content) {
            (Compare::Always, _) | (Compare::Absent, None) | (Compare::Exists, Some(_)) => true,
            (Compare::Bytes(at, bytes), Some(content)) => {
                content.get(*at..).is_some_and(|rest| rest.starts_with(bytes))
            }
            _ => false,
        }
    }

    fn change(&self, state: &mut State) {
        match &self.change {
            Change::Read => {}
            Change::Write(content) => drop(state.insert(self.block, content.clone())),
            Change::Patch(at, bytes, length) => {
                let content = state.entry(self.block).or_insert_with(|| vec![0; *length]);
                if let Some(part) = content.get_mut(*at..*at + bytes.len()) {
                    part.copy_from_slice(bytes);
                }
            }
            Change::Remove => drop(state.remove(&self.block)),
        }
    }
}

/// The blocks that exist.
type State = BTreeMap<u64, Vec<u8>>;

/// Carries out a transaction, and answers it.
pub fn carry_out(state: &mut State, parts: &[Part]) -> Vec<Answer> {
    let done = parts.iter().all(|part| part.holds(state.get(&part.block)));
    let one = |part: &Part| {
        let before = state.get(&part.block).cloned();
        if done {
            part.change(state);
        }
        let read = part.and_read || done && !part.changes();
        Answer { done, content: before.filter(|_| read) }
    };
    parts.iter().map(one).collect()
}

/// A transaction and its answers; none if it was not answered.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub parts: Vec<Part>,
    pub answers: Option<Vec<Answer>>,
}

/// The sequential rule.
pub(super) struct StoreSpec;

impl Specification for StoreSpec {
    type State = State;
    type Operation = Done;

    fn init() -> State {
        State::new()
    }

    fn apply(done: &Done, state: &State) -> (bool, State) {
        let mut after = state.clone();
        let answers = carry_out(&mut after, &done.parts);
        let as_seen = done.answers.as_ref().is_none_or(|seen| *seen == answers);
        if as_seen { (true, after) } else { (false, state.clone()) }
    }
}
