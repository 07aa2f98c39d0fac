//! The places of tables. That of a table that is gone is free once all rounds that read it are
//! served: a session that is cut off reads them again.

use super::ids::TableHome;
use std::collections::{BTreeSet, VecDeque};

/// The places of tables.
#[derive(Default)]
pub(super) struct Homes {
    free: BTreeSet<TableHome>,
    next: u32,
    /// Places that are free once this number of rounds was served.
    leaving: VecDeque<(u64, Vec<TableHome>)>,
}

impl Homes {
    pub fn take(&mut self) -> TableHome {
        self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            TableHome(self.next - 1)
        })
    }

    /// Gives places back, for when the first `rounds` rounds are served.
    pub fn leave(&mut self, rounds: u64, homes: Vec<TableHome>) {
        self.leaving.push_back((rounds, homes));
    }

    /// The first `rounds` rounds are served.
    pub fn served(&mut self, rounds: u64) {
        while self.leaving.front().is_some_and(|(until, _)| *until <= rounds)
            && let Some((_, homes)) = self.leaving.pop_front()
        {
            self.free.extend(homes);
        }
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.next
    }

    /// `count` places, all free.
    pub fn all(count: u32) -> Self {
        Self { free: (0..count).map(TableHome).collect(), next: count, leaving: VecDeque::new() }
    }

    /// Takes a certain place; false if it is not free.
    pub fn take_this(&mut self, home: TableHome) -> bool {
        self.free.remove(&home)
    }
}
