//! The verdict on one record, and on two.

use super::{ObservedSession, Outline, TraceObserver};
use crate::checks::{compare, compare_places_and, judge_chance, repeats_of};
use crate::record::RecordedAct;
use crate::report::{AuditOptions, AuditVerdict, Finding, Report};
use crate::schedule::{self, drawn, free, one_by_one, outlined, schedule_of};
use crate::trace::{Trace, TraceRequest};

const ACROSS: &str = "repeats across sessions";
const CALLS: &str = "calls of the store";
const SEQUENTIAL: &str = "writes of the sequential engine";

impl TraceObserver {
    /// The requests of all sessions, one after the other, without replays of broken-off sessions.
    pub fn joined(&self) -> Trace {
        let judged = |seen: &ObservedSession| seen.trace.requests[seen.confirmed..].to_vec();
        let sessions = self.sessions.iter().filter(|seen| !seen.restored);
        let requests: Vec<TraceRequest> = sessions.flat_map(judged).collect();
        let depth = requests.first().map_or(0, |request| request.depth);
        Trace { depth, requests }
    }

    /// All requests, replays included.
    pub fn whole(&self) -> Trace {
        let requests: Vec<TraceRequest> =
            self.sessions.iter().flat_map(|seen| seen.trace.requests.clone()).collect();
        let depth = requests.first().map_or(0, |request| request.depth);
        Trace { depth, requests }
    }

    /// Calls of the store.
    pub fn calls(&self) -> u64 {
        self.sessions.iter().map(|seen| seen.calls).sum()
    }

    fn has_tree(&self) -> bool {
        self.sessions.iter().any(|seen| !seen.trace.requests.is_empty())
    }

    fn has_sequential(&self) -> bool {
        self.sessions.iter().any(|seen| seen.volume.engine == "sequential")
    }

    /// The findings that follow exactly from a rule.
    fn exact(&self) -> Vec<Finding> {
        let odd = &self.odd;
        let mut findings = vec![
            self.shape(),
            odd.places.finding(
                "places at the store",
                "requests went where the rule says, and nowhere else",
            ),
            odd.journal
                .finding("records of the journal", "are as long as their public numbers say"),
            odd.states
                .finding("states and commits", "came when due, as long as public numbers say"),
            odd.others.finding("other calls", "ranges beside them, none out of place"),
        ];
        if self.sessions.len() > 1 {
            let what = "rounds of sessions that broke off were shown again as they were";
            findings.push(odd.again.finding("shown again after a crash", what));
        }
        findings
    }

    fn shape(&self) -> Finding {
        let mut odd = self.odd.shape.clone();
        let traces = self.sessions.iter().filter(|seen| !seen.trace.requests.is_empty());
        for (at, seen) in traces.enumerate() {
            match schedule_of(&seen.trace) {
                (None, _) => odd.note(|| {
                    format!("session {at}: the paths of the schedule do not follow from the number of accesses")
                }),
                (_, 0) => {}
                (_, wrong) => odd.note(|| format!("session {at}: {wrong} requests have scheduled paths out of turn")),
            }
        }
        odd.finding("request shape", "requests cost what their paths and the rule ask for")
    }
}

/// Judges a record: every call by the rule, and the drawn paths by chance.
pub fn judge_records(sight: &TraceObserver, false_alarm_rate: f64) -> Report {
    let options = AuditOptions { false_alarm_rate, ..AuditOptions::default() };
    if let Some(online) = &sight.online {
        return online.judge(&options);
    }
    let mut report = if sight.has_tree() || !sight.has_sequential() {
        let joined = sight.joined();
        let more = (sight.sessions.len() > 1).then(|| across(sight)).into_iter().collect();
        let mut report = judge_chance(&drawn(&joined), &options, more);
        report.requests = joined.requests.len();
        report.accesses = joined.accesses();
        report
    } else {
        Report::new(
            vec![Finding::exact(SEQUENTIAL, 0, String::new())],
            &options,
            (0, 0),
            SEQUENTIAL,
        )
    };
    let exact =
        if sight.has_tree() || !sight.has_sequential() { sight.exact() } else { Vec::new() };
    if sight.has_sequential() {
        report.findings.retain(|finding| finding.name != SEQUENTIAL);
        let what = "calls, each of whose writes goes where and is as long as its number says";
        report.findings.insert(0, sight.odd.sequential.finding(SEQUENTIAL, what));
    }
    report.findings.splice(0..0, exact);
    report.settle();
    report
}

/// Whether a session repeats paths of earlier ones more often than chance does.
fn across(sight: &TraceObserver) -> Finding {
    let parts = sight.sessions.iter().filter(|seen| !seen.restored);
    let parts: Vec<Trace> = parts.map(|seen| own(seen, seen.confirmed)).collect();
    repeats_of(ACROSS, &parts)
}

/// The paths that a session drew, without its first requests.
fn own(seen: &ObservedSession, after: usize) -> Trace {
    let requests = seen.trace.requests[after.min(seen.trace.requests.len())..].to_vec();
    one_by_one(&Trace { depth: seen.trace.depth, requests })
}

/// Judges the places of two records, of any work: neither may go to different places, nor repeat
/// the other's paths. Two that begin at one commit may repeat each other if the user declared a
/// restored backup; then [`contrast_records`] reports how much they do.
pub fn compare_where(a: &TraceObserver, b: &TraceObserver, false_alarm_rate: f64) -> Report {
    let options = free(&AuditOptions { false_alarm_rate, ..AuditOptions::default() });
    let repeats = (!may_repeat(a, b)).then(|| repeats_across(a, b));
    let (x, y) = (one_by_one(&a.joined()), one_by_one(&b.joined()));
    compare_places_and(&x, &y, &options, repeats.into_iter().collect())
}

/// Whether the second of two records repeats paths of the first more often than chance does.
/// Replays of broken-off sessions are left out.
fn repeats_across(a: &TraceObserver, b: &TraceObserver) -> Finding {
    let join = |sight: &TraceObserver| {
        let parts: Vec<Trace> =
            sight.sessions.iter().map(|seen| own(seen, seen.replayed)).collect();
        let depth = parts.first().map_or(0, |trace| trace.depth);
        Trace { depth, requests: parts.into_iter().flat_map(|trace| trace.requests).collect() }
    };
    repeats_of(ACROSS, &[join(a), join(b)])
}

/// Judges two records of equal amounts of work. Everything that does not follow from drawn leaves
/// must be the same, request by request and call by call.
pub fn compare_records(a: &TraceObserver, b: &TraceObserver, false_alarm_rate: f64) -> Report {
    let options = free(&AuditOptions { false_alarm_rate, ..AuditOptions::default() });
    let calls = same_calls(a, b);
    if !a.has_tree() && !b.has_tree() {
        return Report::new(vec![calls], &options, (0, 0), CALLS);
    }
    let mut report = compare(&outlined(&a.whole()), &outlined(&b.whole()), &options);
    report.findings.push(calls);
    report.settle();
    report
}

/// Calls whose place and length reveal nothing about drawn leaves.
fn public_calls(sight: &TraceObserver) -> impl Iterator<Item = Outline> {
    let public = |ahead: bool, (act, object, offset, len): &Outline| {
        let sequential = matches!(&**object, "disk" | "log" | "state" | "state-2" | "times")
            || object.starts_with("lane-");
        match act {
            // The places that a commit frees, and the stored bytes, follow from leaves.
            RecordedAct::Truncate
            | RecordedAct::Discard
            | RecordedAct::Free
            | RecordedAct::Len
            | RecordedAct::List => None,
            RecordedAct::Read | RecordedAct::ExpectReads if sequential => None,
            RecordedAct::Sync if object.starts_with("slab") => None,
            // By the clock.
            RecordedAct::Sync if ahead && object == "journal" => None,
            _ => Some((*act, object.clone(), *offset, *len)),
        }
    };
    sight
        .sessions
        .iter()
        .flat_map(|seen| seen.outline.iter().filter_map(|call| public(seen.ahead, call)))
        .collect::<Vec<_>>()
        .into_iter()
}

fn same_calls(a: &TraceObserver, b: &TraceObserver) -> Finding {
    let (x, y): (Vec<_>, Vec<_>) = (public_calls(a).collect(), public_calls(b).collect());
    let differing = x.iter().zip(&y).filter(|(x, y)| x != y).count() + x.len().abs_diff(y.len());
    let explanation = match x.iter().zip(&y).position(|(x, y)| x != y) {
        _ if differing == 0 => format!("{} that follow from no path are the same in both", x.len()),
        Some(at) => {
            format!("{differing} differ, the first: {:?} in one, {:?} in the other", x[at], y[at])
        }
        None => format!("{} against {}", x.len(), y.len()),
    };
    Finding::exact(CALLS, differing, explanation)
}

/// The facts about two records that the contract lets the storage see, and whether they differ.
pub fn contrast_records(a: &TraceObserver, b: &TraceObserver) -> Vec<schedule::PublicFact> {
    let mut seen = schedule::contrast(&a.whole(), &b.whole());
    let lengths = |sight: &TraceObserver| {
        let of_journal =
            public_calls(sight).filter(|call| call.1 == "journal" && call.0 == RecordedAct::Write);
        of_journal.map(|call| call.3).collect::<Vec<_>>()
    };
    let (x, y) = (lengths(a), lengths(b));
    let explanation = if x == y {
        format!("{} records in both, of the same lengths", x.len())
    } else {
        format!(
            "{} records against {}, of {} bytes against {}",
            x.len(),
            y.len(),
            total(&x),
            total(&y)
        )
    };
    seen.push(schedule::PublicFact { name: "records", differs: x != y, explanation });
    if may_repeat(a, b) {
        let explanation = repeats_across(a, b).explanation;
        let explanation = format!("{explanation}; a backup was restored");
        seen.push(schedule::PublicFact { name: "repeats", differs: false, explanation });
    }
    seen
}

fn total(lengths: &[u64]) -> u64 {
    lengths.iter().sum()
}

/// Whether one may repeat the other: the user declared a restored backup.
fn may_repeat(a: &TraceObserver, b: &TraceObserver) -> bool {
    [a, b].iter().any(|sight| sight.sessions.iter().any(|seen| seen.session.accept_rollback))
}

impl Report {
    /// Reaches the verdict again, after exact findings were added.
    pub(crate) fn settle(&mut self) {
        for finding in &mut self.findings {
            finding.passed &= finding.p_value > 0.0;
        }
        let leak = self.findings.iter().any(|finding| !finding.passed);
        if leak {
            self.verdict = AuditVerdict::Leak;
        }
    }
}
