//! What was accepted and is not yet durable, or not yet carried out.

use crate::records::deferred::{Deferred, Writes};

/// Deferred writes, the bytes of the next record, and the caller's current operation.
pub(crate) struct Waiting {
    /// Writes accepted but not yet carried out.
    pub deferred: Deferred,
    /// The writes since the last sync; `None` if they are too many for the journal.
    pub unsynced: Option<Writes>,
    pub root_changed: bool,
    /// Accesses of the caller's current operation.
    pub accesses: u64,
    /// What that operation has shown.
    pub padding: Padding,
}

/// What the current operation has shown, and what was accepted since the last sync.
#[derive(Default)]
pub(crate) struct Padding {
    /// Turns, since the last `bring_up`.
    pub turns: u64,
    /// Blocks discarded, since then.
    pub discards: u64,
    /// Batches that answered reads, since then.
    pub reads: u64,
    /// The least room of the next record.
    pub noted: usize,
}

impl Waiting {
    /// Nothing. With `each`, every operation has a turn.
    pub fn nothing(each: bool) -> Self {
        Self {
            deferred: Deferred::new(each),
            unsynced: Some(Writes::default()),
            root_changed: false,
            accesses: 0,
            padding: Padding::default(),
        }
    }
}
