//! Rounds of asks that were shown: several may be under way, and they are served in order.

use super::ids::{Name, Partition, Stamp, TableSpot};
use super::operation::Effect;
use oblivio_crypto::TableKeys;
use std::collections::VecDeque;
use std::sync::Arc;

/// The most rounds that are shown and not served. A store that shows an old state to a later
/// session can have that many read again.
pub const MOST_ROUNDS: usize = 8;

/// The seed of a round's draws. It is fresh, so two histories that part draw different labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub [u8; 32]);

/// Where the content of an ask's block comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// It is in the stash, or there is no such block.
    Memory,
    /// One of the slots that it shows, by its number among them.
    Slot(usize),
    /// The merge of this number reads it.
    Merge(u64),
}

/// What an ask shows.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    /// Its partition.
    pub partition: Partition,
    /// One slot of each table of its partition.
    pub spots: Vec<TableSpot>,
    /// The keys of each: the table may be gone before the round is served.
    pub keys: Vec<Arc<TableKeys>>,
    pub source: Source,
    /// Its place in the order of all asks.
    pub stamp: Stamp,
    /// That of the ask before it on the same block.
    pub before: Option<Stamp>,
    /// Whether a removal of its owner before it took its content away, and is closed by now.
    pub aged: bool,
}

/// A round that was shown and not settled.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// Its number.
    pub number: u64,
    pub seed: Seed,
    pub asks: Vec<(Name, Effect)>,
    pub shown: Vec<Shown>,
}

/// The rounds under way.
#[derive(Default)]
pub(super) struct Rounds {
    queue: VecDeque<Round>,
    /// How many were shown so far.
    shown: u64,
    /// How many of the queue are of an earlier session, and have no job yet.
    waiting: usize,
}

impl Rounds {
    /// The number of the next one.
    pub fn next(&self) -> u64 {
        self.shown
    }

    /// How many were served.
    pub fn served(&self) -> u64 {
        self.shown - self.queue.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.queue.len() >= MOST_ROUNDS
    }

    /// The first that is not served.
    pub fn first(&self) -> Option<&Round> {
        self.queue.front()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Round> {
        self.queue.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Round> {
        self.queue.iter_mut()
    }

    pub fn push(&mut self, round: Round) {
        self.shown += 1;
        self.queue.push_back(round);
    }

    pub fn pop(&mut self) -> Option<Round> {
        self.waiting = self.waiting.min(self.queue.len().saturating_sub(1));
        self.queue.pop_front()
    }

    /// All of them are of an earlier session.
    pub fn set_waiting(&mut self) {
        self.waiting = self.queue.len();
    }

    /// Whether one of an earlier session has no job yet.
    pub fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// The first that has no job yet. From now on it has one.
    pub fn take_waiting(&mut self) -> Option<&Round> {
        let at = self.queue.len() - self.waiting;
        self.waiting = self.waiting.saturating_sub(1);
        self.queue.get(at)
    }
}
