//! The account of a padded operation.

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
