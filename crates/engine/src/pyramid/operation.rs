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

impl Action {
    /// Whether the block exists afterwards even if it did not.
    pub(super) fn creates(&self) -> bool {
        match self {
            Action::Read | Action::Remove => false,
            Action::Write(_) | Action::Patch { .. } | Action::Patches(_) => true,
        }
    }
}
