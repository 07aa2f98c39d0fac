//! Leaks of the layers above the tree: the journal, deferred writes, sweeps, padding, ticks.
//!
//! Each is a pair of traces of two equal amounts of work, or one trace at a pace, made of events
//! alone. The paths are honest.

use super::case::{Case, PlantedTrace};
use crate::trace::{RequestKind, Trace, TraceRequest};
use oblivio_splitmix::SplitMix64;
use std::time::Duration;

const DEPTH: u32 = 10;
/// Files to read or write, one after the other.
const FILES: u64 = 4000;
/// Batches of a padded operation, and accesses in each.
const BATCH: usize = 4;
/// The time between two ticks.
const INTERVAL: Duration = Duration::from_millis(50);

/// The planted flaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    /// A read of one file causes an early sync.
    EarlySync,
    /// An open of one file causes a sweep of the tree.
    EagerSweep,
    /// A deferred write goes with the next read of its file.
    WriteWithRead,
    /// The last dummy of an operation is left out.
    MissingDummy,
    /// A repair evicts the paths of lost blocks only.
    RepairOfLost,
    /// A damaged bucket is read again if the block that was wanted was in it.
    AnotherLook,
}

/// Honest pairs or leaky ones, as `leaks` selects.
pub(super) fn cases(leaks: bool) -> Vec<PlantedTrace> {
    let pair = |name, flaw| PlantedTrace {
        name,
        leaks: flaw != Flaw::None,
        case: Case::Pair(work(flaw, 1, 7), work(flaw, 2, 11)),
    };
    let paced = |name, leaks| PlantedTrace {
        name,
        leaks,
        case: Case::Paced(ticks(leaks), INTERVAL, BATCH),
    };
    if !leaks {
        return vec![
            pair("syncs, sweeps, padding, damage and a repair", Flaw::None),
            paced("work and idleness at a pace", false),
        ];
    }
    vec![
        pair("an early sync that depends on what was read", Flaw::EarlySync),
        pair("a sweep when a certain file was opened", Flaw::EagerSweep),
        pair("a deferred write goes with a read of its file", Flaw::WriteWithRead),
        pair("a missing dummy in a padded operation", Flaw::MissingDummy),
        pair("a repair of the paths of what is lost", Flaw::RepairOfLost),
        pair("another look at a damaged bucket for one file", Flaw::AnotherLook),
        paced("a tick that is skipped when there is no work", true),
    ]
}

/// Reads one file after the other. Sometimes a write is deferred, and from time to time a sync and
/// a round of maintenance are due. One file met damage, so a repair follows. Two seeds read
/// different files.
fn work(flaw: Flaw, seed: u64, certain: u64) -> Trace {
    let mut rng = SplitMix64::new(seed);
    let mut trace = Trace { depth: DEPTH, requests: Vec::new() };
    for at in 0..FILES {
        let file = rng.below(100);
        let wanted = 1 + rng.below(BATCH as u64) as usize;
        let dummies = match flaw {
            Flaw::MissingDummy if wanted == BATCH - 1 => 0,
            _ => BATCH - wanted,
        };
        let waiting = usize::from(flaw == Flaw::WriteWithRead && file == certain);
        let count = wanted + dummies + waiting;
        trace.requests.push(batch(&mut rng, count));
        if at % 50 == 0 || (flaw == Flaw::EarlySync && file == certain) {
            trace.requests.push(event(RequestKind::Sync, 20 << 10));
        }
        if at % 100 == 0 || (flaw == Flaw::EagerSweep && file == certain) {
            trace.requests.push(event(RequestKind::Maintenance, 0));
        }
        if flaw == Flaw::AnotherLook && file == certain {
            trace.requests.push(batch(&mut rng, 1));
        }
    }
    let lost = rng.below(100) as usize;
    let rounds = if flaw == Flaw::RepairOfLost { lost } else { (1 << DEPTH) / BATCH };
    trace.requests.extend((0..rounds).map(|_| event(RequestKind::Maintenance, 0)));
    trace
}

fn batch(rng: &mut SplitMix64, count: usize) -> TraceRequest {
    let leaves = (0..count).map(|_| rng.below(1 << DEPTH)).collect();
    TraceRequest { leaves, depth: DEPTH, ..TraceRequest::default() }
}

fn event(kind: RequestKind, bytes_written: u64) -> TraceRequest {
    TraceRequest { kind, depth: DEPTH, bytes_written, ..TraceRequest::default() }
}

/// Ticks with a little jitter, half of them idle.
fn ticks(skips: bool) -> Trace {
    let mut rng = SplitMix64::new(3);
    let mut trace = Trace { depth: DEPTH, requests: Vec::new() };
    let interval = INTERVAL.as_micros() as u64;
    for tick in 0..FILES {
        let idle = rng.chance(0.5);
        let at = tick * interval + rng.below(interval / 20);
        if skips && idle && tick % 16 == 0 {
            continue;
        }
        let leaves = (0..BATCH).map(|_| rng.below(1 << DEPTH)).collect();
        trace.requests.push(TraceRequest { at, ..event(RequestKind::Sync, 64 << 10) });
        trace.requests.push(TraceRequest { at, leaves, depth: DEPTH, ..TraceRequest::default() });
    }
    trace
}
