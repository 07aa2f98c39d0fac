//! What opening does with the journal of a session that did not end well: the same again.

use super::journal::{Merge, Record, What};
use super::volume::PyramidVolume;
use crate::{Error, Result};
use oblivio_engine::pyramid::{Event, Intent, Name, Seed};
use oblivio_engine::{Action, BlockId, BlockOp};

impl PyramidVolume {
    /// Repeats the records in their order. The last round, or the last merge, may not have been
    /// carried out: it is now, with the same slots.
    pub(super) fn replay(&mut self, records: Vec<Record>) -> Result<()> {
        for Record { merges, what } in records {
            for Merge { place, merged } in merges {
                let home = merged.home;
                self.ledger.engine.replay(Event::Merged(merged))?;
                self.ledger.place_again(home, place)?;
            }
            match what {
                What::Sync { root, writes } => {
                    let config = self.ledger.engine.config();
                    let entries = writes.entries(config.blocks(), config.block_bytes);
                    self.waiting.replay(entries.ok_or_else(nonsense)?);
                    self.ledger.root = root;
                }
                What::Intent { seed, writes, ids } => self.show_again(seed, writes, &ids)?,
            }
        }
        self.merge_due()
    }

    fn show_again(&mut self, seed: Seed, writes: bool, ids: &[BlockId]) -> Result<()> {
        let ops: Vec<BlockOp> = match writes {
            true => self.waiting.take_logged(ids.len()),
            false => ids.iter().map(|&id| BlockOp { id, action: Action::Read }).collect(),
        };
        let blocks = self.ledger.engine.config().blocks();
        let known = ids.iter().all(|id| id.0 < blocks);
        if !known || !ops.iter().map(|op| op.id).eq(ids.iter().copied()) {
            return Err(nonsense());
        }
        let asks = ops.iter().map(|op| (Name::from(op.id), op.action.effect())).collect();
        self.ledger.engine.replay(Event::Intent(Intent { seed, asks }))?;
        if let Some(mut round) = self.ledger.engine.resume_with(ops)? {
            self.ledger.run_round(&mut round)?;
            self.replayed += 1;
        }
        Ok(())
    }
}

fn nonsense() -> Error {
    Error::Tampered("the journal does not follow from its commit".into())
}
