//! What a later session must know, to go on where this one was cut off.
//!
//! Everything that a pyramid shows follows from its keys and from these events, in their order. An
//! [`Intent`] must be durable before its slots are read, a [`Settle`] before its asks are answered,
//! a [`Merged`] after its table is stored and before the tables that it replaces are gone. A round
//! that was cut off between the first two is read again, slot for slot ([`PyramidOram::resume`]):
//! its labels were shown, so its blocks must move on. Its writes were not acknowledged and are
//! dropped. A merge that was cut off begins again with the same slots.

use super::ids::Name;
use super::oram::{PyramidOram, Seed, Shown, Unsettled};
use crate::{EngineError, Result};
use oblivio_crypto::Attempt;

/// A round of asks, before it reads anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The seed of its draws.
    pub seed: Seed,
    /// Each ask's block, and whether it creates it.
    pub asks: Vec<(Name, bool)>,
}

/// What the asks of a round left: each one's block, or none if it does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settle(pub Vec<Option<Vec<u8>>>);

/// A merge, once its table is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The number of its table's keys.
    pub attempt: Attempt,
    /// The content of blocks that went back to the stash.
    pub left: Vec<Vec<u8>>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Before a round reads.
    Intent(Intent),
    /// After a round.
    Settle(Settle),
    /// After a merge.
    Merged(Merged),
}

impl Unsettled {
    /// Its intent.
    pub fn intent(&self) -> Intent {
        Intent { seed: self.seed, asks: self.asks.clone() }
    }
}

impl PyramidOram {
    /// Shows the asks of a round, in groups of these sizes. It ends when a group might read a table
    /// more often than it has slots for.
    pub(super) fn show_round(
        &mut self,
        mut asks: Vec<(Name, bool)>,
        groups: &[usize],
    ) -> Unsettled {
        let seed = self.draw_seed();
        self.begin_reads();
        let mut shown = Vec::with_capacity(asks.len());
        for &size in groups {
            let (first, end) = (shown.len(), asks.len().min(shown.len() + size));
            if !self.has_room(end - first) {
                break;
            }
            self.show_all(&asks[first..end], seed, &mut shown);
        }
        asks.truncate(shown.len());
        Unsettled { seed, asks, shown }
    }

    fn show_all(&mut self, asks: &[(Name, bool)], seed: Seed, shown: &mut Vec<Shown>) {
        for &(name, creates) in asks {
            let Some(one) = self.show(name, creates, seed, shown.len() as u64) else { break };
            shown.push(one);
        }
    }

    /// What a round left, once it is served.
    pub(super) fn settled(&self, asks: &[(Name, bool)]) -> Settle {
        Settle(asks.iter().map(|(name, _)| self.stash.content(*name).cloned()).collect())
    }

    /// Repeats an event of an earlier session, without reading anything.
    ///
    /// # Errors
    /// `State` for an event that cannot follow the ones before it.
    pub fn replay(&mut self, event: Event) -> Result<()> {
        self.expect_idle()?;
        match event {
            Event::Intent(Intent { seed, asks }) if self.unsettled.is_none() => {
                self.begin_reads();
                let mut shown = Vec::new();
                self.show_all(&asks, seed, &mut shown);
                if shown.len() != asks.len() {
                    return Err(EngineError::State("a round has too many asks"));
                }
                self.unsettled = Some(Unsettled { seed, asks, shown });
                Ok(())
            }
            Event::Settle(Settle(contents)) => {
                let unsettled = self.unsettled.take();
                let Some(Unsettled { asks, .. }) =
                    unsettled.filter(|unsettled| unsettled.asks.len() == contents.len())
                else {
                    return Err(EngineError::State("no such round was shown"));
                };
                for ((name, _), content) in asks.into_iter().zip(contents) {
                    self.set_content(name, content)?;
                }
                Ok(())
            }
            Event::Merged(merged) if self.unsettled.is_none() => self.repeat_merge(merged),
            _ => Err(EngineError::State("a round was not settled")),
        }
    }

    fn set_content(&mut self, name: Name, content: Option<Vec<u8>>) -> Result<()> {
        let Some(entry) = self.index.get(&name) else {
            let absent = content.is_none();
            return if absent { Ok(()) } else { Err(EngineError::State("an unknown block")) };
        };
        debug_assert_eq!(entry.at, None, "it was asked for");
        match content {
            Some(content) if content.len() != self.config.block_bytes => {
                return Err(EngineError::State("a block has another length"));
            }
            Some(content) => self.stash.put(name, content),
            None => drop(self.stash.drop_content(name)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pyramid::config::PyramidConfig;
    use crate::pyramid::ids::{Height, Home};
    use crate::pyramid::oram::PyramidKeys;
    use crate::pyramid::table::Table;
    use oblivio_crypto::TableKeys;

    /// An engine of one partition whose table has slots for `reads` more reads.
    fn with_room(reads: u32) -> PyramidOram {
        let config =
            PyramidConfig { block_bytes: 64, log_blocks: 6, log_stash: 4, log_partitions: 0 };
        let mut oram = PyramidOram::new(config, PyramidKeys::from_seed(1)).expect("sound");
        let height = Height::Level(0);
        let keys = TableKeys::new(&oram.root, oram.volume, Attempt([0; 16]));
        let order = keys.order(config.slots(height));
        let mut table = Table::new(Home(0), height, keys, &order, &[]);
        table.reads = config.most_reads(height) - reads;
        oram.tables[0].push(table);
        oram
    }

    #[test]
    fn a_round_ends_before_a_table_runs_out_of_slots_and_the_partition_is_merged() {
        let ask = |n: u8| (Name([n; 16]), false);
        let asks: Vec<_> = (0..8).map(ask).collect();
        let mut oram = with_room(3);
        assert_eq!(oram.show_round(asks.clone(), &[1; 8]).shown.len(), 3);
        assert_eq!(oram.due().map(|merge| merge.height), Some(Height::Base));
        // A transaction is not parted.
        let mut oram = with_room(12);
        assert_eq!(oram.show_round([&asks[..], &asks[..]].concat(), &[8, 8]).shown.len(), 8);
        assert_eq!(oram.due().map(|merge| merge.height), Some(Height::Base));
    }
}
