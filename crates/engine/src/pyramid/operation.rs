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

/// Whether a block exists after an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// As before.
    Stays,
    /// It does.
    Exists,
    /// It does not.
    Goes,
}

impl Fate {
    pub fn of(action: &Action) -> Self {
        match action {
            Action::Read => Self::Stays,
            Action::Write(_) | Action::Patch { .. } | Action::Patches(_) => Self::Exists,
            Action::Remove => Self::Goes,
        }
    }
}
