//! What of a trace follows a public schedule and is set aside before chance is judged.
//!
//! After every few accesses the engine rewrites one path, in reverse lexicographic order; rounds of
//! maintenance rewrite some more. Those paths are no draw: they must be exactly the next of the
//! order, as many as are due. So a trace is taken apart into the paths that were drawn, for the
//! statistics, and those of the schedule, which are compared one by one; and what each request
//! writes must follow from them.

use oblivio_audit::{Finding, Kind, Options, Report, Request, Trace, Verdict, audit};
use std::collections::BTreeSet;

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

/// Where the schedule is: its counter, as far as the paths have shown it.
#[derive(Default)]
struct Turn {
    value: u64,
    bits: u32,
    known: bool,
}

impl Turn {
    /// Whether `leaf` is the next one, in a tree of this depth.
    fn is_next(&mut self, leaf: u64, depth: u32) -> bool {
        let shown = leaf.reverse_bits().checked_shr(64 - depth).unwrap_or(0);
        let common = self.bits.min(depth);
        let right = !self.known || (self.value ^ shown) & mask(common) == 0;
        // A deeper tree shows more of the counter.
        if !self.known || depth > self.bits {
            (self.value, self.bits, self.known) = (shown, depth, true);
        }
        self.value = self.value.wrapping_add(1) & mask(self.bits);
        right
    }
}

fn mask(bits: u32) -> u64 {
    u64::MAX.checked_shr(64 - bits).unwrap_or(0)
}

/// Judges a trace of a volume. `steady` says that every bucket had been written and the top of
/// the tree was in memory when it begins, so that what is read follows from the paths alone.
pub fn judge(trace: &Trace, false_alarm_rate: f64, steady: bool) -> Report {
    let options = Options { false_alarm_rate, ..Options::default() };
    let unscheduled = trace.requests.iter().all(|request| request.scheduled == 0);
    if unscheduled && trace.accesses() >= MUST_SHOW {
        // Of another engine, or of one that forgot its schedule.
        return audit(trace, &options);
    }
    let mut report = audit(&drawn(trace), &free(&options));
    if let Some(first) = report.findings.first_mut() {
        *first = shape(trace, steady);
    }
    if report.findings.iter().any(|finding| !finding.passed) {
        report.verdict = Verdict::Leak;
    }
    report.requests = trace.requests.len();
    report.accesses = trace.accesses();
    report
}

/// Compares two traces of volumes, request by request.
pub fn compare(a: &Trace, b: &Trace, false_alarm_rate: f64) -> Report {
    let options = free(&Options { false_alarm_rate, ..Options::default() });
    oblivio_audit::compare(&outlined(a), &outlined(b), &options)
}

/// Compares two traces of volumes access by access: which of them went together depends, in a
/// mount, on what the kernel asked for at the same moment.
pub fn compare_accesses(a: &Trace, b: &Trace, false_alarm_rate: f64) -> Report {
    let options = free(&Options { false_alarm_rate, ..Options::default() });
    oblivio_audit::compare(&one_by_one(a), &one_by_one(b), &options)
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
fn outlined(trace: &Trace) -> Trace {
    let mut outlined = drawn(trace);
    for (request, shown) in outlined.requests.iter_mut().zip(&trace.requests) {
        (request.scheduled, request.bytes_written) = match shown.kind {
            Kind::Sync => (0, shown.bytes_written),
            _ => (shown.scheduled, 0),
        };
    }
    outlined
}

/// Options for traces whose costs were left out.
fn free(options: &Options) -> Options {
    options.clone().expecting(|_, _| (0, 0))
}

/// Whether the schedule was kept to, and one size of the memory for the top of the tree explains
/// all costs between two commits.
fn shape(trace: &Trace, steady: bool) -> Finding {
    let every = EVERY.rev().find(|&every| (0..every).any(|phase| is_due(trace, every, phase)));
    let mut turn = Turn::default();
    let out_of_turn = |request: &&Request| {
        request.parts().1.iter().filter(|&&leaf| !turn.is_next(leaf, request.depth)).count() > 0
    };
    let out_of_turn = trace.requests.iter().filter(out_of_turn).count();
    let costly = costs(trace, steady);
    let deviations = usize::from(every.is_none()) + out_of_turn + costly;
    let read = if steady { "reads and writes" } else { "writes" };
    let explanation = match (every, out_of_turn, costly) {
        (None, ..) => "the paths of the schedule do not follow from the number of accesses".into(),
        (_, 1.., _) => format!("{out_of_turn} requests have scheduled paths out of turn"),
        (_, _, 1..) => format!("{costly} requests cost other than what their paths ask for"),
        (Some(every), ..) => format!("a path after every {every} accesses, {read} as shown"),
    };
    let p_value = if deviations == 0 { 1.0 } else { 0.0 };
    Finding {
        name: "request shape".into(),
        statistic: deviations as f64,
        p_value,
        passed: deviations == 0,
        judged: true,
        explanation,
    }
}

/// Whether each batch has the scheduled paths that are due after `every` accesses, `phase` of which
/// were made before the trace begins; and nothing else than a batch accesses anything.
fn is_due(trace: &Trace, every: usize, mut phase: usize) -> bool {
    trace.requests.iter().all(|request| {
        let (paths, due) = request.parts();
        if request.kind != Kind::Batch {
            return paths.is_empty();
        }
        phase += paths.len();
        let right = due.len() == phase / every;
        phase %= every;
        right
    })
}

/// The requests whose costs do not follow from their paths; what is read is judged up to the first
/// commit.
fn costs(trace: &Trace, mut steady: bool) -> usize {
    // The buckets in memory are the first in heap order, up to a number between these; so are
    // those that are written late.
    let all = (0, u64::MAX);
    let (mut unread, mut unwritten) = (all, all);
    let mut deviations = 0;
    for request in &trace.requests {
        let scheduled = request.parts().1;
        let fits = |known: &mut (u64, u64), buckets: &BTreeSet<u64>, count: u32| {
            let (low, high) = cached(buckets, count);
            *known = (known.0.max(low), known.1.min(high));
            low <= high && known.0 <= known.1
        };
        if request.kind == Kind::Commit {
            // What memory holds may change now.
            unwritten = all;
            // Buckets that it did not hold before are read once more when they are met next.
            steady = false;
            continue;
        }
        let mut written = buckets(scheduled, request.depth);
        if request.sweep {
            let leaves = 1u64.checked_shl(request.depth).unwrap_or(u64::MAX);
            written.retain(|&bucket| bucket < leaves);
        }
        let wrong = !fits(&mut unwritten, &written, request.writes)
            || (steady
                && !fits(&mut unread, &buckets(&request.leaves, request.depth), request.reads));
        if wrong {
            (unread, unwritten) = (all, all);
        }
        deviations += usize::from(wrong);
    }
    deviations
}

/// The buckets on the paths to these leaves, in heap order.
fn buckets(leaves: &[u64], depth: u32) -> BTreeSet<u64> {
    let bottom = |leaf: u64| 1u64.checked_shl(depth).unwrap_or(0) | leaf;
    leaves.iter().flat_map(|&leaf| (0..=depth).map(move |up| bottom(leaf) >> up)).collect()
}

/// How many buckets must be in memory, at the least and at the most, for `count` of these to be
/// beyond it.
fn cached(buckets: &BTreeSet<u64>, count: u32) -> (u64, u64) {
    let count = count as usize;
    if count > buckets.len() {
        return (1, 0);
    }
    let ascending: Vec<u64> = buckets.iter().copied().collect();
    let within = ascending.len() - count;
    let least = if within == 0 { 0 } else { ascending[within - 1] };
    let most = ascending.get(within).map_or(u64::MAX, |bucket| bucket - 1);
    (least, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_audit::planted::SplitMix64;

    const CACHED: u64 = 14;

    /// A trace whose tree grows by a level after a third of it, and shrinks again at its end by a
    /// sweep with rounds of maintenance.
    fn trace(accesses: usize, every: usize, depth: u32) -> Trace {
        let mut rng = SplitMix64::new(5);
        let (mut turn, mut phase, mut swept) = (77u64, 2, 0);
        let mut requests = Vec::new();
        let mut now = depth;
        for at in 0..accesses {
            let sweep = at > accesses / 3 * 2 && now > depth;
            now += u32::from(at == accesses / 3);
            let maintenance = sweep && at % 2 == 0;
            let drawn = if maintenance { 0 } else { 1 + rng.below(4) };
            let mut leaves: Vec<u64> = (0..drawn).map(|_| rng.below(1 << now)).collect();
            phase += leaves.len();
            let due = if maintenance { 5 } else { phase / every };
            phase %= every;
            let next = |turn: u64| (turn & mask(now)).reverse_bits() >> (64 - now);
            let scheduled: Vec<u64> = (turn..turn + due as u64).map(next).collect();
            turn += due as u64;
            swept += if sweep { due } else { 0 };
            leaves.extend(&scheduled);
            let beyond = |leaves: &[u64], end: u64| {
                let beyond = |bucket: &&u64| (CACHED + 1..end).contains(*bucket);
                buckets(leaves, now).iter().filter(beyond).count() as u32
            };
            let end = if sweep { 1 << now } else { u64::MAX };
            let (reads, writes) = (beyond(&leaves, u64::MAX), beyond(&scheduled, end));
            let scheduled = scheduled.len();
            let kind = if maintenance { Kind::Maintenance } else { Kind::Batch };
            let request = Request {
                kind,
                leaves,
                scheduled,
                sweep,
                depth: now,
                reads,
                writes,
                ..Request::default()
            };
            requests.push(request);
            if sweep && swept >= 1 << now {
                now -= 1;
            }
        }
        assert_eq!(now, depth, "it became smaller again");
        Trace { depth, requests }
    }

    #[test]
    fn an_honest_trace_is_taken_apart_and_passes() {
        let honest = trace(6000, 3, 8);
        let report = judge(&honest, 1e-6, true);
        assert_eq!(report.verdict, Verdict::Pass, "{report}");
        assert_eq!(compare(&honest, &honest, 1e-6).verdict, Verdict::Pass);
        assert_eq!(compare_accesses(&honest, &honest, 1e-6).verdict, Verdict::Pass);
    }

    fn is_leak(odd: &Trace) {
        assert_eq!(judge(odd, 1e-6, true).verdict, Verdict::Leak);
    }

    #[test]
    fn a_path_out_of_turn_is_seen() {
        for kind in [Kind::Batch, Kind::Maintenance] {
            let mut odd = trace(6000, 3, 8);
            let due = |r: &&mut Request| r.kind == kind && r.scheduled > 0;
            let request = odd.requests.iter_mut().rev().find(due).expect("a rewrite");
            *request.leaves.last_mut().expect("a path") ^= 1;
            is_leak(&odd);
        }
    }

    #[test]
    fn a_schedule_that_waits_is_seen() {
        let mut odd = trace(6000, 3, 8);
        let due = |r: &Request| r.kind == Kind::Batch && r.scheduled == 1;
        let at = odd.requests.iter().position(due).expect("a rewrite");
        let late = odd.requests[at].leaves.pop().expect("a path");
        odd.requests[at].scheduled = 0;
        odd.requests[at + 1].leaves.insert(0, late);
        odd.requests[at + 1].scheduled += 1;
        is_leak(&odd);
    }

    #[test]
    fn an_access_in_a_round_of_maintenance_is_seen() {
        let mut odd = trace(6000, 3, 8);
        let round = odd.requests.iter_mut().find(|r| r.kind == Kind::Maintenance);
        round.expect("a round").leaves.insert(0, 5);
        is_leak(&odd);
    }

    #[test]
    fn a_cost_that_does_not_follow_is_seen() {
        let mut odd = trace(6000, 3, 8);
        odd.requests[3000].reads += 1;
        assert_eq!(judge(&odd, 1e-6, true).verdict, Verdict::Leak);
        assert_eq!(judge(&odd, 1e-6, false).verdict, Verdict::Pass);
        odd.requests[3001].writes += 1;
        assert_eq!(judge(&odd, 1e-6, false).verdict, Verdict::Leak);
    }

    #[test]
    fn the_schedule_survives_growth() {
        let mut turn = Turn::default();
        let leaf = |turn: u64, depth: u32| (turn & mask(depth)).reverse_bits() >> (64 - depth);
        for at in 1000..1150 {
            let depth = [4, 6, 5][(at - 1000) as usize / 50];
            assert!(turn.is_next(leaf(at, depth), depth));
        }
        assert!(!turn.is_next(leaf(1, 6), 6));
    }
}
