//! After a session that did not end well: what it showed is shown again, and what it made durable
//! is carried out again.
//!
//! A replay gives a block the labels that the session gave it, but not what the session wrote to it
//! and did not sync. Buckets of that session may still be in the store, and a label is what proves
//! a block beside damage. So each access that was shown again is made once more, as one of its own:
//! then a block has a label that the session never gave it.

use super::ledger::{Core, Ledger, Policy};
use crate::records::record::Record;
use crate::records::writes::{WriteEntry, Writes};
use crate::{Error, Result};
use oblivio_engine::tree::Intent;
use std::collections::VecDeque;

/// The batches that were shown again and must still be made once more. Those have intents of their
/// own. After another crash the next replay knows them by their seeds: each follows from that of
/// the batch that it repeats. So they are not repeated themselves.
#[derive(Default)]
struct Renewals(VecDeque<Intent>);

impl Renewals {
    /// Notes a batch that was shown again.
    fn shown_again(&mut self, intent: &Intent) {
        if self.0.front().map(renewal).as_ref() == Some(intent) {
            self.0.pop_front();
        } else if !intent.ids.is_empty() {
            self.0.push_back(intent.clone());
        }
    }

    /// The next batch to be made.
    fn next(&mut self) -> Option<Intent> {
        self.0.pop_front().as_ref().map(renewal)
    }
}

/// The batch that repeats one.
fn renewal(of: &Intent) -> Intent {
    Intent { seed: of.seed.wrapping_add(0x9e37_79b9_7f4a_7c15), ids: of.ids.clone() }
}

impl<L: Ledger> Core<L>
where
    Self: Policy,
{
    /// Replays the records since the last commit, in order, makes their accesses once more, and
    /// commits.
    pub(crate) fn replay(&mut self, records: impl IntoIterator<Item = Record>) -> Result<()> {
        let mut renewals = Renewals::default();
        for record in records {
            match record {
                Record::Intent(intent) => {
                    self.replay_intent(&intent)?;
                    renewals.shown_again(&intent);
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
        // First, so that they find what the commit had, as those of a crashed replay did.
        while let Some(next) = renewals.next() {
            self.renew(&next)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_engine::BlockId;
    use proptest::prelude::*;

    /// All batches that are still to be made after this log.
    fn rest(log: &[Intent]) -> Vec<Intent> {
        let mut renewals = Renewals::default();
        log.iter().for_each(|intent| renewals.shown_again(intent));
        std::iter::from_fn(|| renewals.next()).collect()
    }

    proptest! {
        /// However often a replay crashes among them, each batch is made once more, in order.
        #[test]
        fn what_was_made_once_more_is_not_made_again(
            batches in proptest::collection::vec(
                (any::<u64>(), proptest::collection::vec(0u64..3, 0..9)), 0..6),
            crashes in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let batch = |(seed, ids): &(u64, Vec<u64>)| {
                Intent { seed: *seed, ids: ids.iter().copied().map(BlockId).collect() }
            };
            let shown: Vec<Intent> = batches.iter().map(batch).collect();
            let (mut made, mut log) = (Vec::<Intent>::new(), shown.clone());
            for until in crashes {
                let mut rest = rest(&log);
                rest.truncate(until.index(rest.len() + 1));
                log.extend_from_slice(&rest);
                made.extend(rest);
            }
            made.extend(rest(&log));
            let of_blocks = shown.iter().filter(|intent| !intent.ids.is_empty());
            prop_assert_eq!(made, of_blocks.map(renewal).collect::<Vec<_>>());
        }
    }
}
