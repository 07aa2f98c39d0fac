//! Sets aside the part of a trace that follows a public rule, before chance is judged.
//!
//! Every few accesses the engine rewrites one path, in reverse lexicographic order; rounds of
//! maintenance rewrite more. Those paths are not drawn: they must be exactly the next of the order,
//! and exactly as many as are due. So a trace is split into drawn paths, for the statistics, and
//! scheduled ones, which are compared one by one. And the reads and writes of each request must
//! follow from its paths and the rule (`model.rs`).

mod contrast;
mod lengths;
mod model;
mod repair;
mod stored;
mod top_log;
mod turn;

pub use contrast::{PublicFact, contrast};
pub(crate) use model::Model;

use crate::checks::{audit, compare as compare_traces, compare_places};
use crate::report::{AuditOptions, AuditVerdict, Finding, Report};
use crate::trace::{RequestKind, Trace, TraceRequest};
use turn::Turn;

/// Schedules to try, as accesses per rewritten path.
const EVERY: std::ops::RangeInclusive<usize> = 1..=8;
/// The number of accesses that must show a path of the schedule.
const MUST_SHOW: usize = 8;

/// The drawn paths of a trace. Costs are left out; they are judged here.
pub fn drawn(trace: &Trace) -> Trace {
    let only = |request: &TraceRequest| TraceRequest {
        kind: request.kind,
        leaves: request.parts().0.to_vec(),
        depth: request.depth,
        ..TraceRequest::default()
    };
    Trace { depth: trace.depth, requests: trace.requests.iter().map(only).collect() }
}

/// Judges a trace of a volume: a session from its start, or the continuation of `before`.
pub fn judge(trace: &Trace, before: Option<&Trace>, false_alarm_rate: f64) -> Report {
    let options = AuditOptions { false_alarm_rate, ..AuditOptions::default() };
    let mut requests = trace.requests.iter();
    let of_volume =
        before.is_some() || requests.any(|r| r.kind == RequestKind::Rule || r.scheduled > 0);
    if !of_volume && trace.accesses() >= MUST_SHOW {
        // Of another engine, or of one that omitted its schedule.
        return audit(trace, &options);
    }
    let mut report = audit(&drawn(trace), &free(&options));
    if let Some(first) = report.findings.first_mut() {
        *first = shape(trace, before);
    }
    if report.findings.iter().any(|finding| !finding.passed) {
        report.verdict = AuditVerdict::Leak;
    }
    report.requests = trace.requests.len();
    report.accesses = trace.accesses();
    report
}

/// Compares two traces of volumes with equal amounts of work. Everything that does not follow from
/// drawn leaves must be the same, request by request.
pub fn compare(a: &Trace, b: &Trace, false_alarm_rate: f64) -> Report {
    let options = free(&AuditOptions { false_alarm_rate, ..AuditOptions::default() });
    compare_traces(&outlined(a), &outlined(b), &options)
}

/// Compares the places of two traces of volumes, access by access, whatever their number. Their
/// number and grouping are public; [`contrast`] reports them.
pub fn compare_accesses(a: &Trace, b: &Trace, false_alarm_rate: f64) -> Report {
    let options = free(&AuditOptions { false_alarm_rate, ..AuditOptions::default() });
    compare_places(&one_by_one(a), &one_by_one(b), &options)
}

/// The drawn paths of the accesses, one request for each.
pub fn one_by_one(trace: &Trace) -> Trace {
    let single = |request: &TraceRequest| {
        let (leaves, depth) = (request.parts().0.to_vec(), request.depth);
        leaves.into_iter().map(move |leaf| TraceRequest {
            leaves: vec![leaf],
            depth,
            ..TraceRequest::default()
        })
    };
    Trace { depth: trace.depth, requests: trace.requests.iter().flat_map(single).collect() }
}

/// The drawn paths, and everything else that two traces must have in common.
pub(crate) fn outlined(trace: &Trace) -> Trace {
    let mut outlined = drawn(trace);
    for (request, shown) in outlined.requests.iter_mut().zip(&trace.requests) {
        (request.scheduled, request.bytes_written) = match shown.kind {
            RequestKind::Sync => (0, shown.bytes_written),
            _ => (shown.scheduled, 0),
        };
        request.rule = shown.rule.clone();
    }
    outlined
}

/// Options for traces whose costs were left out.
pub(crate) fn free(options: &AuditOptions) -> AuditOptions {
    options.clone().expecting(|_, _| (0, 0))
}

/// The number of accesses per scheduled path, if it is constant, and the number of requests with
/// scheduled paths out of turn.
pub(crate) fn schedule_of(trace: &Trace) -> (Option<usize>, usize) {
    let every = EVERY.rev().find(|&every| (0..every).any(|phase| is_due(trace, every, phase)));
    let mut turn = Turn::default();
    let out_of_turn = |request: &&TraceRequest| {
        request.parts().1.iter().filter(|&&leaf| !turn.is_next(leaf, request.depth)).count() > 0
    };
    (every, trace.requests.iter().filter(out_of_turn).count())
}

/// Whether the trace follows the schedule, and the rule explains all costs.
fn shape(trace: &Trace, before: Option<&Trace>) -> Finding {
    let (every, out_of_turn) = schedule_of(trace);
    let (odd, first) = against_rule(trace, before);
    let deviations = usize::from(every.is_none()) + out_of_turn + odd;
    let explanation = match (every, out_of_turn, first) {
        (None, ..) => "the paths of the schedule do not follow from the number of accesses".into(),
        (_, 1.., _) => format!("{out_of_turn} requests have scheduled paths out of turn"),
        (_, _, Some(first)) => format!("{odd} requests deviate, the first: {first}"),
        (Some(every), ..) => {
            format!(
                "a path after every {every} accesses; all reads and writes follow from the rule"
            )
        }
    };
    Finding::judged_exactly("request shape", deviations, explanation)
}

/// The number of requests that break the rule, and a description of the first.
fn against_rule(trace: &Trace, before: Option<&Trace>) -> (usize, Option<String>) {
    let mut model = Model::default();
    let (mut odd, mut first) = (0, None);
    let earlier = before.iter().flat_map(|before| &before.requests).map(|r| ("earlier request", r));
    let later = trace.requests.iter().map(|r| ("request", r));
    let count = before.map_or(0, |before| before.requests.len());
    for (at, (what, request)) in earlier.chain(later).enumerate() {
        if let Some(deviation) = model.see(request) {
            odd += 1;
            let at = if at < count { at } else { at - count };
            first.get_or_insert_with(|| format!("{what} {at}: {deviation}"));
        }
    }
    (odd, first)
}

/// Whether each batch has its due scheduled paths, one per `every` accesses, with `phase` accesses
/// before the trace; and whether only batches access anything.
fn is_due(trace: &Trace, every: usize, mut phase: usize) -> bool {
    trace.requests.iter().all(|request| {
        let (paths, due) = request.parts();
        if !matches!(request.kind, RequestKind::Batch | RequestKind::Map) {
            return paths.is_empty();
        }
        phase += paths.len();
        let right = due.len() == phase / every;
        phase %= every;
        right
    })
}

#[cfg(test)]
mod tests;
