//! What a later session must know, to go on where this one was cut off.
//!
//! Everything that a pyramid shows follows from its keys and from these events, in their order:
//! that in which rounds were begun, rounds were served and merges were done. An [`Intent`] must be
//! durable before its slots are read, a [`Settle`] before its asks are answered, a [`Merged`] after
//! its table is stored and before the tables that it replaces are gone; and all of them before the
//! table of a later merge is stored, which may lie where one of those was. Rounds that were cut off
//! between the first two are read again, slot for slot ([`PyramidOram::resume`]): their labels were
//! shown, so their blocks must move on. Their writes were not acknowledged and are dropped. A merge
//! that was cut off begins again with the same slots.

use super::ids::{Name, TableHome};
use super::operation::Effect;
use super::oram::PyramidOram;
use super::shown::{Round, Seed, Shown};
use crate::{EngineError, Result};
use oblivio_crypto::Attempt;

/// A round of asks, before it reads anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundIntent {
    /// The seed of its draws.
    pub seed: Seed,
    /// Each ask's block, and what it may do to its existence.
    pub asks: Vec<(Name, Effect)>,
}

/// What an ask left of its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// It does not exist.
    Absent,
    /// Its content.
    Block(Vec<u8>),
    /// It exists, and its content is lost to damage.
    Lost,
    /// It does not exist, and all later blocks of its owner that were there do not either.
    Forgot,
}

/// What the asks of a round left, one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settle(pub Vec<Left>);

/// A merge, once its table is stored. How many blocks each list has follows from public numbers,
/// but for `left`: pad it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The place of its table.
    pub home: TableHome,
    /// The number of its table's keys.
    pub attempt: Attempt,
    /// The content of blocks that went back to the stash, none of lost ones: at most [`MOST_LEFT`].
    pub left: Vec<Option<Vec<u8>>>,
    /// For each ask of a round under way that showed its partition since its place: its block, if
    /// it is from a table that is gone now.
    pub asked: Vec<AskedBlock>,
}

/// A block that was asked for while its partition's merge had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskedBlock {
    /// It is from elsewhere, or removed.
    Elsewhere,
    /// Its content.
    Block(Vec<u8>),
    /// Its content is lost to damage.
    Lost,
}

/// The most blocks that a merge sends back to the stash. More than one is beyond ten standard
/// deviations.
pub const MOST_LEFT: usize = 16;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskEvent {
    /// Before a round reads.
    Intent(RoundIntent),
    /// After a round.
    Settle(Settle),
    /// After a merge.
    Merged(Merged),
}

impl Round {
    /// Its intent.
    pub fn intent(&self) -> RoundIntent {
        RoundIntent { seed: self.seed, asks: self.asks.clone() }
    }
}

impl PyramidOram {
    /// Shows the asks of a round, in groups of these sizes. It ends when a group might read a table
    /// more often than it has slots for. Then it opens the merges that are due. None if not even
    /// the first group can be shown now.
    pub(super) fn show_round(
        &mut self,
        mut asks: Vec<(Name, Effect)>,
        groups: &[usize],
    ) -> Option<&Round> {
        self.begin_reads();
        let fits = |size: &usize| self.has_room(*size);
        if self.asks_allowed() == 0 || !groups.first().is_some_and(fits) {
            return None;
        }
        let seed = self.draw_seed();
        let mut shown = Vec::with_capacity(asks.len());
        for &size in groups {
            let (first, end) = (shown.len(), asks.len().min(shown.len() + size));
            if !self.has_room(end - first) {
                break;
            }
            self.show_all(&asks[first..end], seed, &mut shown);
        }
        asks.truncate(shown.len());
        self.push_round(seed, asks, shown);
        self.rounds.iter().last()
    }

    fn show_all(&mut self, asks: &[(Name, Effect)], seed: Seed, shown: &mut Vec<Shown>) {
        for &(name, effect) in asks {
            let Some(one) = self.show(name, effect, seed, shown.len() as u64) else { break };
            shown.push(one);
        }
    }

    fn push_round(&mut self, seed: Seed, asks: Vec<(Name, Effect)>, shown: Vec<Shown>) {
        self.rounds.push(Round { number: self.rounds.next(), seed, asks, shown });
        self.open_due();
    }

    /// Repeats an event of an earlier session, without reading anything.
    ///
    /// # Errors
    /// `State` for an event that cannot follow the ones before it; then the engine is closed.
    pub fn replay(&mut self, event: AskEvent) -> Result<()> {
        self.expect_open()?;
        let done = self.repeat(event);
        self.rounds.set_waiting();
        self.close_on_error(done)
    }

    fn repeat(&mut self, event: AskEvent) -> Result<()> {
        match event {
            AskEvent::Intent(RoundIntent { seed, asks }) => {
                let mut shown = Vec::new();
                self.begin_reads();
                if self.asks_allowed() > 0 {
                    self.show_all(&asks, seed, &mut shown);
                }
                if shown.len() != asks.len() {
                    return Err(EngineError::State("a round has too many asks"));
                }
                self.push_round(seed, asks, shown);
                Ok(())
            }
            AskEvent::Settle(Settle(left)) => {
                let round = self.rounds.first().filter(|round| round.asks.len() == left.len());
                let round = round.ok_or(EngineError::State("no such round was shown"))?;
                let asks: Vec<_> = round
                    .asks
                    .iter()
                    .zip(&round.shown)
                    .map(|((name, _), shown)| (*name, shown.stamp))
                    .collect();
                for ((name, stamp), left) in asks.into_iter().zip(left) {
                    self.set_left(name, stamp, left)?;
                }
                self.end_round().map(drop)
            }
            AskEvent::Merged(merged) => self.repeat_merge(merged),
        }
    }

    fn set_left(&mut self, name: Name, stamp: super::ids::Stamp, left: Left) -> Result<()> {
        match left {
            Left::Block(content) if content.len() != self.config.block_bytes => {
                return Err(EngineError::State("a block has another length"));
            }
            Left::Block(_) | Left::Lost if !self.index.contains_key(&name) => {
                return Err(EngineError::State("an unknown block"));
            }
            Left::Block(content) => self.stash.put(name, content),
            Left::Lost => self.stash.lose(name),
            Left::Absent => self.stash.remove(name),
            Left::Forgot => {
                self.stash.remove(name);
                self.forgets.add(name, stamp);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pyramid::config::PyramidConfig;
    use crate::pyramid::ids::Height;
    use crate::pyramid::oram::PyramidKeys;
    use crate::pyramid::table::Table;
    use oblivio_crypto::TableKeys;

    /// An engine of one partition whose table has slots for `reads` more reads.
    fn with_room(reads: u32) -> PyramidOram {
        let config =
            PyramidConfig { block_bytes: 64, log_blocks: 6, log_stash: 4, log_partitions: 0 };
        let mut oram = PyramidOram::new(config, PyramidKeys::from_seed(1)).expect("sound");
        let height = Height::Level(0);
        let keys = TableKeys::new(&oram.keys.root, oram.keys.volume, Attempt([0; 16]));
        let order = keys.order(config.slots(height));
        let mut table = Table::new(oram.homes.take(), height, keys, &order, 0);
        assert!(table.read_before(config.most_reads(height) - reads, |_| false));
        oram.tables[0].push(table);
        oram
    }

    fn asks(count: u64) -> Vec<(Name, Effect)> {
        (0..count).map(|index| (Name { owner: [1; 16], index }, Effect::Keeps)).collect()
    }

    fn base_is_open(oram: &PyramidOram) -> bool {
        oram.merges.iter().any(|merge| merge.height == Height::Base)
    }

    #[test]
    fn a_round_ends_before_a_table_runs_out_of_slots_and_the_partition_is_merged() {
        let mut oram = with_room(3);
        assert_eq!(oram.show_round(asks(8), &[1; 8]).expect("some").shown.len(), 3);
        assert!(base_is_open(&oram));
        // No table of a partition that waits for its merge is read too often.
        assert!(oram.show_round(asks(1), &[1]).is_none());
        // A transaction is not parted.
        let mut oram = with_room(12);
        assert_eq!(oram.show_round(asks(16), &[8, 8]).expect("some").shown.len(), 8);
        assert!(base_is_open(&oram));
        assert!(oram.show_round(asks(8), &[8]).is_none(), "eight do not fit any more");
        assert_eq!(oram.show_round(asks(4), &[4]).expect("four do").shown.len(), 4);
    }
}
