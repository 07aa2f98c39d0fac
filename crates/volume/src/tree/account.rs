//! What the tree's policy remembers between two commits.

use crate::pacer::Pacer;

/// The account of a commit interval, of the caller's operation, and of the pace.
pub struct TreeAccount {
    /// The last commit, and what came since.
    pub(crate) since: Since,
    /// The constant rate of accesses, if any.
    pub(crate) pacer: Option<Pacer>,
    /// Accesses of the caller's current operation.
    pub(crate) accesses: u64,
    /// What that operation has shown.
    pub(crate) padding: Padding,
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

impl TreeAccount {
    /// Of a volume that is not open yet.
    pub(crate) fn new(pacer: Option<Pacer>) -> Self {
        Self { since: Since::default(), pacer, accesses: 0, padding: Padding::default() }
    }
}

/// The last commit, and what came since.
pub(crate) struct Since {
    /// Scheduled paths at the commit.
    pub paths: u64,
    /// Bytes in the slab then.
    pub stored: u64,
    /// Whether the store had much room then.
    pub roomy: bool,
    /// Scheduled paths from there to the next commit; a new volume begins with a commit.
    pub interval: u64,
    /// Whether a sweep ended since.
    pub commit_wanted: bool,
    /// Parts of the next commit's buckets that idle steps flushed since.
    pub flushed_ahead: u64,
}

impl Default for Since {
    fn default() -> Self {
        Self {
            paths: 0,
            stored: 0,
            roomy: true,
            interval: 1,
            commit_wanted: false,
            flushed_ahead: 0,
        }
    }
}
