//! Judges what the server of a shared volume sees: the checks S1 to S8.
//!
//! A trace is a list of events at the server ([`record`]). [`audit`] judges one, [`compare`] two
//! runs with the same arrivals.
//!
//! | check | what must hold | how it is judged |
//! |---|---|---|
//! | S1 | a slot is read at most once in its table's life | exactly |
//! | S2 | one slot of each table of one partition; C of each table at merges; lengths | exactly |
//! | S3 | turns, tables, batches follow from public counts; two runs have equal records | exactly |
//! | S4 | partitions are uniform, independent of each other and of the turns | by chance |
//! | S5 | slots are uniform, hit or miss; none in a merge's set | by chance; exactly |
//! | S6 | collisions do not show, not in times either: S3 for such a pair | exactly |
//! | S7 | answers in order, after all earlier reads, and after merges that they meet | exactly |
//! | S8 | a new scribe repeats what was shown and not answered, the same | exactly |
//!
//! [`planted`] has a small scribe with planted leaks.

mod counts;
mod delivery;
mod equal;
mod once;
pub mod planted;
mod ranks;
mod recent;
pub mod record;
mod repeats;
mod turns;
mod view;

use oblivio_audit::checks::{compare_places_and, judge_chance};
use oblivio_audit::{AuditOptions, Finding, Report};
use oblivio_audit::{Trace, TraceRequest};
use record::{ShareTrace, What};
use view::walk;

pub use record::Truth;

/// Judges one trace. The truth may be empty: then hits and misses are not compared.
pub fn audit(trace: &ShareTrace, truth: &Truth, options: &AuditOptions) -> Report {
    let [exact, chance] = judge(trace, truth);
    let findings = exact.into_iter().chain(chance).collect();
    let mut report = judge_chance(&partitions(trace), options, findings);
    name(&mut report);
    report
}

/// Judges what holds exactly, of a trace that is too short for statistics.
pub fn audit_exactly(trace: &ShareTrace, options: &AuditOptions) -> Report {
    let [exact, _] = judge(trace, &Truth::new());
    Report::new(exact, options, (trace.events.len(), trace.asks()), once::NAME)
}

/// The findings of all checks: the exact ones, and those by chance.
fn judge(trace: &ShareTrace, truth: &Truth) -> [Vec<Finding>; 2] {
    let mut once = once::Once::default();
    let mut counts = counts::Counts::default();
    let mut turns = turns::Turns::default();
    let mut recent = recent::Recent::new(trace);
    let mut ranks = ranks::Ranks::default();
    let mut delivery = delivery::Delivery::default();
    let mut repeats = repeats::Repeats::default();
    walk(trace, |seen| {
        once.see(trace, &seen);
        counts.see(trace, &seen);
        turns.see(trace, &seen);
        recent.see(trace, &seen);
        ranks.see(trace, &seen, truth);
        delivery.see(trace, &seen);
        repeats.see(&seen);
    });
    let (outside, ranks) = ranks.findings();
    let exact = vec![
        once.finding(),
        counts.finding(),
        turns.finding(),
        outside,
        delivery.finding(),
        repeats.finding(),
    ];
    let chance = std::iter::once(recent.finding()).chain(ranks).collect();
    [exact, chance]
}

/// Judges two runs with the same arrivals: they may differ in the partitions shown and in what
/// follows from them. This is S3, and S6 if the clients of one run meet on blocks.
pub fn compare(a: &ShareTrace, b: &ShareTrace, options: &AuditOptions) -> Report {
    let (left, right) = (partitions(a), partitions(b));
    let mut report = compare_places_and(&left, &right, options, vec![equal::judge(a, b)]);
    name(&mut report);
    report
}

/// The tests of partitions are those of leaves.
fn name(report: &mut Report) {
    let of_leaves = |name: &str| !name.starts_with('S');
    for finding in report.findings.iter_mut().filter(|finding| of_leaves(&finding.name)) {
        finding.name = format!("S4 {}", finding.name);
    }
}

/// The partitions shown, as leaves of a tree: those of asks since all partitions have tables. An
/// ask before shows no partition if its own has none.
fn partitions(trace: &ShareTrace) -> Trace {
    let depth = trace.sizes.log_partitions;
    let mut requests = Vec::new();
    walk(trace, |seen| {
        let What::Show(_, asks) = &seen.event.what else { return };
        if seen.again || seen.view.with_tables.len() < trace.sizes.partitions() as usize {
            return;
        }
        let shown = asks.iter().filter_map(|shown| seen.view.partition_of(&shown.spots));
        let leaves: Vec<u64> = shown.map(u64::from).collect();
        requests.push(TraceRequest { leaves, depth, ..TraceRequest::default() });
    });
    Trace { depth, requests }
}
