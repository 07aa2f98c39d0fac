//! When merges are opened, and when asks wait for them. All of it follows from public numbers.

use super::ids::{Height, Partition};
use super::open::{Merge, Progress};
use super::oram::PyramidOram;
use super::schedule::PartitionTurn;

impl PyramidOram {
    /// Opens the merges that are due: those of turns, and early ones. A merge waits for an open one
    /// of the same partition. It is called after each round and each switch, so the place of a
    /// merge in the order is fixed.
    pub(super) fn open_due(&mut self) {
        while self.turns < self.config.turns_due(self.asks) {
            let turn = self.config.turn(self.turns);
            if self.is_merging(turn.partition) {
                break;
            }
            self.turns += 1;
            let taken = self.stash.take_oldest(turn.partition, self.config.taken() as usize);
            self.open_merge(turn, Some(taken));
        }
        for partition in std::mem::take(&mut self.touched) {
            let config = &self.config;
            let mut tables = self.tables[partition.0 as usize].iter();
            let often = tables.any(|table| table.reads >= config.early_reads(table.height));
            if often && !self.is_merging(partition) {
                // It takes no blocks from the stash, and the schedule does not advance.
                self.open_merge(PartitionTurn { partition, height: Height::Base }, None);
            }
        }
    }

    fn is_merging(&self, partition: Partition) -> bool {
        self.merges.of_partition(partition).is_some()
    }

    /// How many asks the next round may have: it ends at the next turn, and where the oldest open
    /// merge must be switched. None while a round must wait: for an earlier round, for such a
    /// merge, or for one that keeps a turn from being opened.
    pub(super) fn asks_allowed(&self) -> u64 {
        let next = (self.turns + 1) * u64::from(self.config.turn_asks());
        let until = self.merges.iter().map(|merge| merge.place + self.config.open_asks()).min();
        if self.rounds.is_full() || self.turns < self.config.turns_due(self.asks) {
            return 0;
        }
        next.min(until.unwrap_or(u64::MAX)).saturating_sub(self.asks)
    }

    /// Whether round `number` is the next to be served, and may be: if it shows a partition whose
    /// merge was opened before, the slots of that merge must be there. They are waited for whether
    /// the block is among them or not: else the wait would tell.
    pub(super) fn may_serve(&self, number: u64) -> bool {
        let Some(round) = self.rounds.first().filter(|round| round.number == number) else {
            return false;
        };
        let waits = |partition| {
            let merge = self.merges.of_partition(partition);
            merge.is_some_and(|merge| merge.rounds <= number && !merge.is_read())
        };
        !round.shown.iter().any(|shown| waits(shown.partition))
    }

    /// Whether the table of merge `number` may be made: its slots are there, and all rounds before
    /// it were served, so its blocks have their content.
    pub(super) fn may_make(&self, number: u64) -> bool {
        let merge = self.merges.get(number);
        merge.is_some_and(|merge| merge.is_read() && self.rounds.served() >= merge.rounds)
    }

    /// A merge whose table may be made now.
    pub(super) fn next_to_make(&self) -> Option<u64> {
        let read = |merge: &&Merge| matches!(merge.progress, Progress::Read);
        let mut numbers = self.merges.iter().filter(read).map(|merge| merge.number);
        numbers.find(|&number| self.may_make(number))
    }
}
