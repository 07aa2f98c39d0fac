//! At a constant pace every tick looks like every other, and comes on time.

use crate::report::Finding;
use crate::trace::{RequestKind, Trace, TraceRequest};
use std::time::Duration;

const NAME: &str = "constant pace";

/// Extra accesses allowed in a batch: a block that moves after a roll-over of its group's counters,
/// and map blocks when the map recurses.
const MORE: usize = 1;

/// Judges whether each tick has a batch and a record, each of one size, and no tick between two
/// commits is missing. A gap of nearly two intervals means a missing tick. A delay by a commit is
/// no deviation: its time and duration follow from the number of ticks.
pub fn judge_pace(trace: &Trace, interval: Duration, batch: usize) -> Finding {
    let ticks: Vec<&TraceRequest> = trace
        .requests
        .iter()
        .filter(|request| !matches!(request.kind, RequestKind::Maintenance | RequestKind::Sync))
        .collect();
    let odd = ticks.iter().filter(|tick| tick.kind == RequestKind::Batch).filter(|tick| {
        let drawn = tick.parts().0.len();
        !(batch..=batch + MORE).contains(&drawn)
    });
    let odd = odd.count() + odd_records(trace);
    let most = interval.as_micros() * 7 / 4;
    let gaps = || {
        let both =
            |pair: &&[&TraceRequest]| pair.iter().all(|tick| tick.kind == RequestKind::Batch);
        ticks.windows(2).filter(both).map(|pair| pair[1].at.saturating_sub(pair[0].at))
    };
    let late = gaps().filter(|&gap| u128::from(gap) > most).count();
    let explanation = format!(
        "{} ticks {interval:?} apart: {odd} of another size, {late} missing; the longest gap is \
         {:?}",
        ticks.iter().filter(|tick| tick.kind == RequestKind::Batch).count(),
        Duration::from_micros(gaps().max().unwrap_or(0)),
    );
    let mut finding = Finding::exact(NAME, odd + late, explanation);
    finding.passed = odd + late == 0;
    finding
}

/// Records of written bytes that differ in size, or are not one per batch.
fn odd_records(trace: &Trace) -> usize {
    let records = || trace.requests.iter().filter(|request| request.kind == RequestKind::Sync);
    let usual = records().next().map_or(0, |record| record.bytes_written);
    let batches =
        trace.requests.iter().filter(|request| request.kind == RequestKind::Batch).count();
    records().filter(|record| record.bytes_written != usual).count()
        + records().count().abs_diff(batches)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks() -> Trace {
        let tick = |at: u64| {
            let sync = TraceRequest {
                kind: RequestKind::Sync,
                at,
                bytes_written: 65536,
                ..TraceRequest::default()
            };
            let batch = TraceRequest {
                at: at + 90,
                leaves: vec![1; 4],
                depth: 5,
                ..TraceRequest::default()
            };
            [sync, batch]
        };
        Trace { depth: 5, requests: (0..500).flat_map(|n| tick(n * 1000 + n * 37 % 300)).collect() }
    }

    fn passes(trace: &Trace) -> bool {
        judge_pace(trace, Duration::from_millis(1), 4).passed
    }

    #[test]
    fn what_is_out_of_step_is_seen() {
        assert!(passes(&ticks()));
        let mut skipped = ticks();
        skipped.requests.drain(200..202);
        skipped.requests[200..].iter_mut().for_each(|request| request.at += 30);
        assert!(!passes(&skipped));
        let mut large = ticks();
        large.requests[301].leaves.extend([2, 3]);
        assert!(!passes(&large));
        let mut early = ticks();
        early.requests.insert(77, early.requests[76].clone());
        assert!(!passes(&early), "a sync between ticks");
    }
}
