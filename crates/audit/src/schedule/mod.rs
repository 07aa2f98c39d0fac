//! What of a trace follows a public rule is set aside before chance is judged.
//!
//! After every few accesses the engine rewrites one path, in reverse lexicographic order; rounds of
//! maintenance rewrite some more. Those paths are no draw: they must be exactly the next of the
//! order, as many as are due. So a trace is taken apart into the paths that were drawn, for the
//! statistics, and those of the schedule, which are compared one by one; and what each request
//! reads and writes must follow from its paths and the rule (`model.rs`).

mod contrast;
mod lengths;
mod model;
mod stored;
mod turn;

pub use contrast::{Seen, contrast};
pub(crate) use model::Model;

use crate::checks::{audit, compare as compare_traces, compare_places};
use crate::report::{Finding, Options, Report, Verdict};
use crate::trace::{Kind, Request, Trace};
use turn::Turn;

/// Schedules that are tried: one rewritten path after so many accesses.
const EVERY: std::ops::RangeInclusive<usize> = 1..=8;
/// Fewer accesses than this need not show a path of the schedule.
const MUST_SHOW: usize = 8;

/// The paths of a trace that were drawn; costs are left out, they are judged here.
pub fn drawn(trace: &Trace) -> Trace {
    let only = |request: &Request| Request {
        kind: request.kind,
        leaves: request.parts().0.to_vec(),
        depth: request.depth,
        ..Request::default()
    };
    Trace { depth: trace.depth, requests: trace.requests.iter().map(only).collect() }
}

/// Judges a trace of a volume: a session from its beginning, or what follows `before`.
pub fn judge(trace: &Trace, before: Option<&Trace>, false_alarm_rate: f64) -> Report {
    let options = Options { false_alarm_rate, ..Options::default() };
    let mut requests = trace.requests.iter();
    let of_volume = before.is_some() || requests.any(|r| r.kind == Kind::Rule || r.scheduled > 0);
    if !of_volume && trace.accesses() >= MUST_SHOW {
        // Of another engine, or of one that forgot its schedule.
        return audit(trace, &options);
    }
    let mut report = audit(&drawn(trace), &free(&options));
    if let Some(first) = report.findings.first_mut() {
        *first = shape(trace, before);
    }
    if report.findings.iter().any(|finding| !finding.passed) {
        report.verdict = Verdict::Leak;
    }
    report.requests = trace.requests.len();
    report.accesses = trace.accesses();
    report
}

/// Compares two traces of volumes, of equally much work: all that does not follow from leaves that
/// were drawn must be the same, request by request.
pub fn compare(a: &Trace, b: &Trace, false_alarm_rate: f64) -> Report {
    let options = free(&Options { false_alarm_rate, ..Options::default() });
    compare_traces(&outlined(a), &outlined(b), &options)
}

/// Compares where two traces of volumes go, access by access, however many they are. How many, and
/// how they were grouped, is public; [`contrast`] tells it.
pub fn compare_accesses(a: &Trace, b: &Trace, false_alarm_rate: f64) -> Report {
    let options = free(&Options { false_alarm_rate, ..Options::default() });
    compare_places(&one_by_one(a), &one_by_one(b), &options)
}

/// The drawn paths, one request for each, of what was accessed.
pub fn one_by_one(trace: &Trace) -> Trace {
    let single = |request: &Request| {
        let (leaves, depth) = (request.parts().0.to_vec(), request.depth);
        leaves.into_iter().map(move |leaf| Request {
            leaves: vec![leaf],
            depth,
            ..Request::default()
        })
    };
    Trace { depth: trace.depth, requests: trace.requests.iter().flat_map(single).collect() }
}

/// The drawn paths, and what else two traces must have in common.
pub(crate) fn outlined(trace: &Trace) -> Trace {
    let mut outlined = drawn(trace);
    for (request, shown) in outlined.requests.iter_mut().zip(&trace.requests) {
        (request.scheduled, request.bytes_written) = match shown.kind {
            Kind::Sync => (0, shown.bytes_written),
            _ => (shown.scheduled, 0),
        };
        request.rule = shown.rule.clone();
    }
    outlined
}

/// Options for traces whose costs were left out.
pub(crate) fn free(options: &Options) -> Options {
    options.clone().expecting(|_, _| (0, 0))
}

/// After how many accesses a path of the schedule follows, if that is so throughout, and how many
/// requests have scheduled paths out of turn.
pub(crate) fn schedule_of(trace: &Trace) -> (Option<usize>, usize) {
    let every = EVERY.rev().find(|&every| (0..every).any(|phase| is_due(trace, every, phase)));
    let mut turn = Turn::default();
    let out_of_turn = |request: &&Request| {
        request.parts().1.iter().filter(|&&leaf| !turn.is_next(leaf, request.depth)).count() > 0
    };
    (every, trace.requests.iter().filter(out_of_turn).count())
}

/// Whether the schedule was kept to, and the rule explains all costs.
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

/// How many requests are not as the rule says, and the first of them in words.
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

/// Whether each batch has the scheduled paths that are due after `every` accesses, `phase` of which
/// were made before the trace begins; and nothing else than a batch accesses anything.
fn is_due(trace: &Trace, every: usize, mut phase: usize) -> bool {
    trace.requests.iter().all(|request| {
        let (paths, due) = request.parts();
        if !matches!(request.kind, Kind::Batch | Kind::Map) {
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
