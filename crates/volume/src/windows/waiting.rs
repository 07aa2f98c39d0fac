//! What was accepted and is not yet durable, or not yet carried out.

use crate::records::deferred::{Deferred, Writes};
use oblivio_engine::BlockOp;
use std::collections::VecDeque;

/// The writes that wait.
#[derive(Default)]
pub(super) struct Waiting {
    /// Accepted and not yet carried out. Fewer than accesses are left to the next window, so that
    /// none waits when it commits.
    pub deferred: Deferred,
    /// What no record and no checkpoint has.
    pub unsynced: Writes,
    /// What checkpoints have that are not confirmed, and no record.
    unconfirmed: VecDeque<Unconfirmed>,
    /// The root of the last record or commit.
    pub synced_root: Vec<u8>,
}

/// What a checkpoint has that may not stand yet.
struct Unconfirmed {
    number: u64,
    writes: Writes,
    root: Vec<u8>,
}

impl Waiting {
    /// Nothing waits, after a record or commit with this root.
    pub fn after(root: &[u8]) -> Self {
        Self { synced_root: root.to_vec(), ..Self::default() }
    }

    /// Accepts a write.
    pub fn accept(&mut self, op: BlockOp) {
        self.unsynced.add(&op);
        self.deferred.add(op);
    }

    /// Notes a checkpoint, which has everything, and is not confirmed.
    pub fn checkpoint(&mut self, number: u64, root: &[u8]) {
        let writes = std::mem::take(&mut self.unsynced);
        self.unconfirmed.push_back(Unconfirmed { number, writes, root: root.to_vec() });
    }

    /// Notes that the checkpoints up to this one are commits.
    pub fn confirmed(&mut self, number: u64) {
        while self.unconfirmed.front().is_some_and(|front| front.number <= number)
            && let Some(front) = self.unconfirmed.pop_front()
        {
            self.synced_root = front.root;
        }
    }

    /// Everything that is not durable, in order.
    pub fn take_unsynced(&mut self) -> Writes {
        let mut all = Writes::default();
        self.unconfirmed.iter().for_each(|some| all.append(&some.writes));
        all.append(&std::mem::take(&mut self.unsynced));
        all
    }

    /// Notes that records have everything.
    pub fn synced(&mut self, root: &[u8]) {
        self.unsynced.clear();
        self.unconfirmed.clear();
        self.synced_root = root.to_vec();
    }

    /// Whether there is anything that the last checkpoint has not, but for records.
    pub fn is_ahead(&self, root: &[u8]) -> bool {
        let last = self.unconfirmed.back().map_or(&self.synced_root, |last| &last.root);
        !self.unsynced.bytes().is_empty() || last != root
    }

    /// Whether there is anything that is not durable.
    pub fn has_news(&self, root: &[u8]) -> bool {
        !self.unsynced.bytes().is_empty()
            || self.unconfirmed.iter().any(|some| !some.writes.bytes().is_empty())
            || self.synced_root != root
    }
}
