//! What was accepted and is not yet durable, or not yet carried out.

use crate::records::deferred::{Deferred, Writes};
use oblivio_engine::BlockOp;

/// The writes that wait.
#[derive(Default)]
pub(super) struct Waiting {
    /// Accepted and not yet carried out. Fewer than accesses are left to the next window, so that
    /// none waits when it commits.
    pub deferred: Deferred,
    /// What no record has.
    pub unsynced: Writes,
    /// The root of the last record or commit.
    pub synced_root: Vec<u8>,
}

impl Waiting {
    /// Accepts a write.
    pub fn accept(&mut self, op: BlockOp) {
        self.unsynced.add(&op);
        self.deferred.add(op);
    }

    /// Notes a commit, which has everything.
    pub fn committed(&mut self, root: &[u8]) {
        self.unsynced.clear();
        self.synced_root = root.to_vec();
    }
}
