//! The virtual line: messages on their way, and what the clients ask.

use super::scribe::BLOCKS;
use crate::share_audit::record::{AskId, Merge};
use oblivio_splitmix::SplitMix64;
use std::collections::BTreeMap;

/// Clients of a run, and the asks that each has under way.
pub(super) const CLIENTS: u64 = 8;
pub(super) const WINDOW: u64 = 4;
/// Microseconds of the line, one way: a client's, and the scribe's.
pub(super) const CLIENT_LINE: u64 = 10_000;
pub(super) const SCRIBE_LINE: u64 = 5_000;
/// The scribe takes together what comes within this time of the first.
pub(super) const BATCH_WAIT: u64 = 2_000;
/// The server reads a batch in this time, and a merge's slot.
pub(super) const READ_BATCH: u64 = 200;
pub(super) const READ_SLOT: u64 = 60;
/// Blocks that the clients write first. The others do not exist.
pub(super) const EXISTING: u64 = BLOCKS / 4 * 3;

/// What the clients ask for, once the volume is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Any block, of which a quarter do not exist.
    Uniform,
    /// All clients one block.
    OneBlock,
    /// All blocks in turn.
    Scan,
    /// 64 blocks in turn: each again after a quarter of a round of turns.
    Quarter,
    /// Blocks that do not exist.
    Absent,
}

impl Workload {
    /// All of them.
    pub const ALL: [Workload; 5] = [
        Workload::Uniform,
        Workload::OneBlock,
        Workload::Scan,
        Workload::Quarter,
        Workload::Absent,
    ];

    /// The block of an ask, and whether it writes.
    pub(super) fn block(self, ask: AskId, seed: u64) -> (u64, bool) {
        let number = ask.seq * CLIENTS + ask.session;
        let mut rng = SplitMix64::new(seed ^ number << 8);
        let write = rng.below(3) == 0;
        match self {
            _ if number < EXISTING => (number, true),
            Workload::Uniform => {
                let block = rng.below(BLOCKS);
                (block, write && block < EXISTING)
            }
            Workload::OneBlock => (7, write),
            Workload::Scan => (number % EXISTING, write),
            Workload::Quarter => (number % 64, write),
            Workload::Absent => (EXISTING + rng.below(BLOCKS - EXISTING), false),
        }
    }
}

/// The pause of a client before an ask. It depends on nothing that is asked.
pub(super) fn pause(ask: AskId) -> u64 {
    SplitMix64::new(ask.session << 32 | ask.seq).below(3_000)
}

/// A message that arrives, or a time that comes.
#[derive(Clone, Debug)]
pub(super) enum Arrival {
    AskAtServer(AskId),
    AskAtScribe(AskId),
    /// The scribe takes what waits.
    Batch,
    ShowAtServer(u64),
    SumsLeave(u64),
    SumsAtScribe(u64),
    TurnAtServer(Merge),
    SlotsLeave(u32),
    SlotsAtScribe(u32),
    BuildAtServer(u32, u64),
    SwitchAtServer(u64, Vec<u64>),
    TellAtServer(u64, Vec<(AskId, u64)>),
    AnswerAtClient(AskId),
    Kill,
    Claim,
}

/// Messages in the order in which they arrive; at one time, in the order in which they were sent.
#[derive(Default)]
pub(super) struct Line {
    pub now: u64,
    sent: u64,
    /// Each with the number of the scribe who sent it or waits for it.
    queue: BTreeMap<(u64, u64), (u64, Arrival)>,
}

impl Line {
    pub fn send(&mut self, after: u64, scribe: u64, arrival: Arrival) {
        self.sent += 1;
        self.queue.insert((self.now + after, self.sent), (scribe, arrival));
    }

    pub fn next(&mut self) -> Option<(u64, Arrival)> {
        let ((at, _), next) = self.queue.pop_first()?;
        self.now = at;
        Some(next)
    }
}
