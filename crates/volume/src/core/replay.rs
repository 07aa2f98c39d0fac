//! After a session that did not end well: what it showed is shown again, and what it made durable
//! is carried out again.

use super::ledger::{Core, Ledger, Policy};
use crate::records::record::Record;
use crate::records::writes::{WriteEntry, Writes};
use crate::{Error, Result};

impl<L: Ledger> Core<L>
where
    Self: Policy,
{
    /// Replays the records since the last commit, in order, and commits.
    pub(crate) fn replay(&mut self, records: impl IntoIterator<Item = Record>) -> Result<()> {
        for record in records {
            match record {
                Record::Intent(intent) => {
                    self.replay_intent(&intent)?;
                    self.replayed += 1;
                }
                Record::Resize { blocks, class } => {
                    self.ledger.engine_mut().grow(blocks)?;
                    self.ledger.engine_mut().set_size_class(class)?;
                    self.report_rule();
                }
                Record::Sync { root, writes } => {
                    self.replay_writes(&writes)?;
                    self.ledger.set_root(root);
                }
            }
        }
        self.end_replay()
    }

    fn replay_writes(&mut self, writes: &Writes) -> Result<()> {
        let (blocks, block_bytes) =
            (self.ledger.engine().capacity(), self.ledger.engine().block_bytes());
        let entries = writes.entries(blocks, block_bytes);
        for entry in entries.ok_or_else(|| Error::Tampered("a record of writes".into()))? {
            match entry {
                WriteEntry::Discarded(_, 0) => self.waiting.deferred.add(&[]),
                WriteEntry::Discarded(first, count) => self.drop_blocks(*first..first + count)?,
                write => self.waiting.deferred.add(std::slice::from_ref(write)),
            }
        }
        Ok(())
    }
}
