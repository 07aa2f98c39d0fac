//! What of the scribe's calls tells how far merges are behind.
//!
//! All of it is public: after each r asks of the order a turn is due, and a switch ends one. An
//! early merge has a switch and no turn, so it can only make the count too small, by one each.

use crate::lock::lock;
use oblivio_store::share::{HistoryEntry, Result, Share, ShareCall, ShareError, ShareReply};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Counts since the last look.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Asks that batches had.
    pub asks: u64,
    /// Batches.
    pub batches: u64,
    /// Tables that took their place.
    pub switches: u64,
    /// Slots that merges read.
    pub merged: u64,
    /// Bytes of tables and states that were stored.
    pub stored: u64,
    /// The most turns that were due and not switched.
    pub most_behind: u64,
    /// How long calls took, by kind.
    pub calls: std::collections::BTreeMap<&'static str, (u64, Duration)>,
}

#[derive(Default)]
struct Inside {
    /// Records that were seen: a repeated one counts once.
    records: BTreeSet<u64>,
    asks: u64,
    switches: u64,
    counts: Counts,
}

/// The counts of a scribe.
#[derive(Clone)]
pub struct Meter {
    turn_asks: u64,
    inside: Arc<Mutex<Inside>>,
}

/// A share whose calls are counted.
pub struct Counted<S> {
    below: S,
    meter: Meter,
}

impl Meter {
    /// One for a volume with this number of asks between two turns.
    pub fn new(turn_asks: u32) -> Self {
        Self { turn_asks: u64::from(turn_asks), inside: Arc::default() }
    }

    /// A share with this meter.
    pub fn over<S>(&self, below: S) -> Counted<S> {
        Counted { below, meter: self.clone() }
    }

    /// What was counted since the last look.
    pub fn take(&self) -> Counts {
        std::mem::take(&mut self.inside().counts)
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        lock(&self.inside)
    }

    fn see(&self, call: &ShareCall<'_>) {
        let mut guard = self.inside();
        let inside = &mut *guard;
        match call {
            ShareCall::Append { number, entry, .. } if inside.records.insert(number.0) => {
                match entry {
                    HistoryEntry::Show(show) => {
                        inside.asks += show.fetches.len() as u64;
                        inside.counts.asks += show.fetches.len() as u64;
                        inside.counts.batches += 1;
                    }
                    HistoryEntry::Switch(_) => {
                        inside.switches += 1;
                        inside.counts.switches += 1;
                    }
                    HistoryEntry::Tell(_) | HistoryEntry::Note(_) => {}
                }
            }
            ShareCall::Slots { spots, .. } => inside.counts.merged += spots.len() as u64,
            ShareCall::Upload { piece, .. } => inside.counts.stored += piece.len() as u64,
            _ => {}
        }
        let behind = (inside.asks / self.turn_asks).saturating_sub(inside.switches);
        inside.counts.most_behind = inside.counts.most_behind.max(behind);
    }
}

impl<S: Share> Share for Counted<S> {
    fn device(&self) -> u16 {
        self.below.device()
    }

    fn call(&self, call: ShareCall<'_>) -> Result<ShareReply> {
        self.meter.see(&call);
        let (name, begin) = (name(&call), Instant::now());
        let done: std::result::Result<ShareReply, ShareError> = self.below.call(call);
        let mut inside = self.meter.inside();
        let (count, time) = inside.counts.calls.entry(name).or_default();
        (*count, *time) = (*count + 1, *time + begin.elapsed());
        done
    }
}

fn name(call: &ShareCall<'_>) -> &'static str {
    match call {
        ShareCall::Ask(_) => "ask",
        ShareCall::Answers { .. } => "answers",
        ShareCall::Notices { .. } => "notices",
        ShareCall::Asks { .. } => "asks",
        ShareCall::Append { .. } => "append",
        ShareCall::Durable { .. } => "durable",
        ShareCall::Sums { .. } => "sums",
        ShareCall::Slots { .. } => "slots",
        ShareCall::Upload { .. } => "upload",
        ShareCall::Finish { .. } => "finish",
        ShareCall::Save { .. } => "save",
        _ => "other",
    }
}
