//! What was accepted and is not yet durable, or not yet carried out.

use super::deferred::Deferred;
use crate::records::writes::{WriteEntry, Writes};
use oblivio_engine::BlockOp;
use std::collections::VecDeque;

/// The writes that wait. Their bytes are held once: for the next record and for their batch.
pub(crate) struct Waiting {
    /// Accepted and not yet carried out.
    pub deferred: Deferred,
    /// What no record and no checkpoint has; `None` if it is too much for a record.
    pub unsynced: Option<Writes>,
    /// What checkpoints have that are not confirmed, and no record.
    unconfirmed: VecDeque<Unconfirmed>,
    /// The root of the last record or commit.
    synced_root: Vec<u8>,
}

/// What a checkpoint has that may not stand yet.
struct Unconfirmed {
    number: u64,
    writes: Writes,
    root: Vec<u8>,
}

impl Waiting {
    /// Nothing waits, after a record or commit with this root. With `each`, every operation has a
    /// turn.
    pub fn after(root: &[u8], each: bool) -> Self {
        Self {
            deferred: Deferred::new(each),
            unsynced: Some(Writes::default()),
            unconfirmed: VecDeque::new(),
            synced_root: root.to_vec(),
        }
    }

    /// Accepts a write.
    pub fn accept(&mut self, op: BlockOp) {
        let entries = WriteEntry::of(op);
        self.deferred.add(&entries);
        self.note(entries);
    }

    /// Notes what a sync must make durable.
    pub fn note(&mut self, entries: impl IntoIterator<Item = WriteEntry>) {
        if let Some(writes) = &mut self.unsynced {
            entries.into_iter().for_each(|entry| writes.push(entry));
        }
    }

    /// Bytes of it in a record; 0 if it is too much for one.
    pub fn unsynced_bytes(&self) -> usize {
        self.unsynced.as_ref().map_or(0, Writes::len)
    }

    /// Notes a checkpoint, which has everything, and is not confirmed.
    pub fn checkpoint(&mut self, number: u64, root: &[u8]) {
        let writes = self.unsynced.replace(Writes::default()).unwrap_or_default();
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
        all.append(&self.unsynced.replace(Writes::default()).unwrap_or_default());
        all
    }

    /// Notes that everything is durable.
    pub fn synced(&mut self, root: &[u8]) {
        self.unsynced = Some(Writes::default());
        self.unconfirmed.clear();
        self.root_synced(root);
    }

    /// Notes that a record has this root.
    pub fn root_synced(&mut self, root: &[u8]) {
        self.synced_root.clear();
        self.synced_root.extend_from_slice(root);
    }

    /// The root of the last record or commit.
    pub fn synced_root(&self) -> &[u8] {
        &self.synced_root
    }

    /// Whether there is anything that the last checkpoint has not, but for records.
    pub fn is_ahead(&self, root: &[u8]) -> bool {
        let last = self.unconfirmed.back().map_or(&self.synced_root, |last| &last.root);
        self.unsynced_bytes() > 0 || last != root
    }

    /// Whether there is anything that is not durable.
    pub fn has_news(&self, root: &[u8]) -> bool {
        self.unsynced_bytes() > 0
            || self.unconfirmed.iter().any(|some| !some.writes.is_empty())
            || self.synced_root != root
    }
}
