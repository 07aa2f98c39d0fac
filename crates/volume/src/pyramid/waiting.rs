//! What was accepted and is not yet carried out: writes that no record has yet, and those that one
//! has.

use super::policy::is_much;
use crate::records::deferred::{Deferred, Entry, Writes};
use oblivio_engine::{BlockAnswer, BlockOp};

/// The writes that wait.
#[derive(Default)]
pub struct Waiting {
    /// Not in the journal yet. None of it may enter the engine.
    fresh: Deferred,
    /// The same, as the next record has them.
    unsynced: Writes,
    /// In the journal. The same rounds carry them out, also after a crash.
    logged: Deferred,
    /// Whether the root was changed since the last record.
    pub root_changed: bool,
}

impl Waiting {
    /// Accepts a write.
    pub fn accept(&mut self, op: BlockOp) {
        self.unsynced.add(&op);
        self.fresh.add(op);
    }

    /// Accepts writes that are in the journal.
    pub fn replay(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            // There are no others.
            if let Entry::Op(op) = entry {
                self.logged.add(op);
            }
        }
    }

    /// The writes that no record has.
    pub fn unsynced(&self) -> &Writes {
        &self.unsynced
    }

    /// Whether a record has all.
    pub fn is_synced(&self) -> bool {
        self.unsynced.bytes().is_empty() && !self.root_changed
    }

    /// Whether enough writes wait for a record that one should be made.
    pub fn wants_record(&self, memory_bytes: usize) -> bool {
        is_much(self.fresh.len(), self.fresh.bytes(), memory_bytes)
    }

    /// Whether more writes wait to be carried out than should.
    pub fn wants_round(&self, memory_bytes: usize) -> bool {
        is_much(self.logged.len(), self.logged.bytes(), memory_bytes)
    }

    /// A record has all writes, these.
    pub fn recorded(&mut self, entries: Vec<Entry>) {
        self.fresh = Deferred::default();
        self.unsynced.clear();
        self.root_changed = false;
        self.replay(entries);
    }

    /// Takes out the oldest recorded writes.
    pub fn take_logged(&mut self, most: usize) -> Vec<BlockOp> {
        self.logged.drain(most)
    }

    /// Whether recorded writes wait.
    pub fn has_logged(&self) -> bool {
        !self.logged.is_empty()
    }

    /// A block after all that waits, given the engine's answer to a read of it.
    pub fn overlay(&self, id: u64, block_bytes: usize, answer: BlockAnswer) -> BlockAnswer {
        let answer = self.logged.overlay(id, block_bytes, answer);
        self.fresh.overlay(id, block_bytes, answer)
    }

    /// Whether a block will exist; `None` if nothing waits for it.
    pub fn exists(&self, id: u64) -> Option<bool> {
        self.fresh.exists(id).or_else(|| self.logged.exists(id))
    }
}
