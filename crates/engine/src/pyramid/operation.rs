//! What an ask does to its block.

use crate::Action;

/// What to do with a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The change, if any.
    pub action: Action,
    /// Whether the answer is the content before the change: with a write, the paper's
    /// test-and-set.
    pub and_read: bool,
}

/// What an ask may do to the existence of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// An absent block stays absent.
    Keeps,
    /// Its block exists afterwards.
    Creates,
    /// Its block and all later ones of the same owner may be removed.
    Forgets,
}

impl Action {
    /// What it may do to the existence of its block.
    pub(super) fn effect(&self) -> Effect {
        match self {
            Action::Read | Action::Remove => Effect::Keeps,
            Action::Write(_) | Action::Patch { .. } | Action::Patches(_) => Effect::Creates,
        }
    }
}
