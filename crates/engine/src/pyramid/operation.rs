//! What an ask does to its block.

use crate::Action;
pub use oblivio_privatefs::Operation;

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

impl Effect {
    /// What an action may do to the existence of its block.
    pub fn of(action: &Action) -> Self {
        match action {
            Action::Read | Action::Remove => Self::Keeps,
            Action::Write(_) | Action::Patch { .. } | Action::Patches(_) => Self::Creates,
        }
    }
}
