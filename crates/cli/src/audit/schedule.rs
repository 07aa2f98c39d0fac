//! What of a trace follows a public schedule and is set aside before chance is judged.
//!
//! After every few accesses the engine rewrites one path, in reverse lexicographic order. Those
//! paths are no draw: they must be exactly the next of the order. So a trace is taken apart into
//! the paths that were drawn, for the statistics, and those of the schedule, which are compared
//! one by one; and what each request writes must follow from them.

use oblivio_audit::{Finding, Options, Report, Request, Trace, Verdict, audit};
use std::collections::BTreeSet;

/// Schedules that are tried: one rewritten path after so many accesses.
const EVERY: std::ops::RangeInclusive<usize> = 1..=8;

/// A trace taken apart.
#[derive(Clone, Debug)]
pub struct Split {
    /// The drawn paths; costs are left out, they are judged here.
    pub drawn: Trace,
    /// The scheduled paths of each request.
    pub scheduled: Vec<Vec<u64>>,
    /// Accesses between two of them.
    pub every: usize,
}

/// Takes a trace apart; `None` when no schedule explains it.
pub fn split(trace: &Trace) -> Option<Split> {
    // The longest interval first: a trace with hardly any rewritten path fits several.
    let tries = EVERY.rev().flat_map(|every| (0..every).map(move |phase| (every, phase)));
    tries.filter_map(|(every, phase)| try_split(trace, every, phase)).next()
}

/// As [`split`] for one interval and the accesses since the last rewritten path.
fn try_split(trace: &Trace, every: usize, mut phase: usize) -> Option<Split> {
    let mut turn = Turn::default();
    let (mut drawn, mut scheduled) = (Vec::new(), Vec::new());
    for request in &trace.requests {
        let all = request.leaves.len();
        let due = (0..=all).find(|due| (phase + all - due) / every == *due)?;
        let (paths, due) = request.leaves.split_at(all - due);
        phase = (phase + paths.len()) % every;
        if !due.iter().all(|&leaf| turn.is_next(leaf, request.depth)) {
            return None;
        }
        let (leaves, depth) = (paths.to_vec(), request.depth);
        drawn.push(Request { leaves, depth, ..Request::default() });
        scheduled.push(due.to_vec());
    }
    let requests = !scheduled.iter().all(Vec::is_empty);
    let drawn = Trace { depth: trace.depth, requests: drawn };
    requests.then_some(Split { drawn, scheduled, every })
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
    let Some(split) = split(trace) else { return without_schedule(trace, &options, steady) };
    let mut report = audit(&split.drawn, &free(&options));
    if let Some(first) = report.findings.first_mut() {
        *first = costs(trace, &split, steady);
    }
    if report.findings.iter().any(|finding| !finding.passed) {
        report.verdict = Verdict::Leak;
    }
    report.requests = trace.requests.len();
    report.accesses = trace.accesses();
    report
}

/// Judges a trace that no schedule explains: as it stands, every path a draw.
///
/// A recorded trace can lack what was served from memory alone, so that its schedule has gaps;
/// then nothing can be said of it, neither good nor bad.
fn without_schedule(trace: &Trace, options: &Options, complete: bool) -> Report {
    let mut report = audit(trace, options);
    if !complete && report.verdict == Verdict::Leak {
        report.verdict = Verdict::TooShort;
        if let Some(first) = report.findings.first_mut() {
            (first.judged, first.passed) = (false, true);
            first.explanation = "not judged: the schedule of rewritten paths cannot be followed; \
                                 what was served from memory is missing"
                .into();
        }
    }
    report
}

/// Compares two traces of volumes.
pub fn compare(a: &Trace, b: &Trace, false_alarm_rate: f64) -> Report {
    let options = Options { false_alarm_rate, ..Options::default() };
    match (split(a), split(b)) {
        (Some(a), Some(b)) => oblivio_audit::compare(&a.drawn, &b.drawn, &free(&options)),
        _ => oblivio_audit::compare(a, b, &options),
    }
}

/// Options for traces whose costs were left out.
fn free(options: &Options) -> Options {
    options.clone().expecting(|_, _| (0, 0))
}

/// Whether one size of the memory for the top of the tree explains all costs.
fn costs(trace: &Trace, split: &Split, steady: bool) -> Finding {
    // The buckets in memory are the first in heap order, up to a number between these.
    let (mut least, mut most) = (0, u64::MAX);
    let mut deviations = 0;
    for (request, scheduled) in trace.requests.iter().zip(&split.scheduled) {
        let mut fits = |leaves: &[u64], count: u32| {
            let (low, high) = cached(&buckets(leaves, request.depth), count);
            (least, most) = (least.max(low), most.min(high));
            low > high || least > most
        };
        let wrong =
            fits(scheduled, request.writes) || (steady && fits(&request.leaves, request.reads));
        deviations += usize::from(wrong);
    }
    let every = split.every;
    let explanation = match (deviations, steady) {
        (0, true) => format!("a path after every {every} accesses, reads and writes as shown"),
        (0, false) => format!("a path after every {every} accesses, writes as shown"),
        (n, _) => format!("{n} requests cost other than what their paths ask for"),
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

    fn trace(accesses: usize, every: usize, depth: u32) -> Trace {
        let mut rng = SplitMix64::new(5);
        let (mut turn, mut phase) = (77u64, 2);
        let request = |_| {
            let mut leaves: Vec<u64> =
                (0..1 + rng.below(4)).map(|_| rng.below(1 << depth)).collect();
            phase += leaves.len();
            let mut scheduled = Vec::new();
            while phase >= every {
                phase -= every;
                scheduled.push((turn & mask(depth)).reverse_bits() >> (64 - depth));
                turn += 1;
            }
            leaves.extend(&scheduled);
            let beyond = |leaves: &[u64]| {
                buckets(leaves, depth).iter().filter(|&&bucket| bucket > CACHED).count() as u32
            };
            let (reads, writes) = (beyond(&leaves), beyond(&scheduled));
            Request { leaves, depth, reads, writes, ..Request::default() }
        };
        Trace { depth, requests: (0..accesses).map(request).collect() }
    }

    #[test]
    fn an_honest_trace_is_taken_apart_and_passes() {
        let honest = trace(4000, 3, 8);
        let parts = split(&honest).expect("a schedule");
        assert_eq!(parts.every, 3);
        let report = judge(&honest, 1e-6, true);
        assert_eq!(report.verdict, Verdict::Pass, "{report}");
        assert_eq!(compare(&honest, &honest, 1e-6).verdict, Verdict::Pass);
    }

    #[test]
    fn a_path_out_of_turn_is_seen() {
        let mut odd = trace(4000, 3, 8);
        let request = odd.requests.iter_mut().rev().find(|r| r.writes > 0).expect("a rewrite");
        *request.leaves.last_mut().expect("a path") ^= 1;
        assert!(split(&odd).is_none());
        assert_eq!(judge(&odd, 1e-6, true).verdict, Verdict::Leak);
    }

    #[test]
    fn a_cost_that_does_not_follow_is_seen() {
        let mut odd = trace(4000, 3, 8);
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
        for at in 1000..1100 {
            assert!(
                turn.is_next(
                    leaf(at, if at < 1050 { 4 } else { 6 }),
                    if at < 1050 { 4 } else { 6 }
                )
            );
        }
        assert!(!turn.is_next(leaf(1, 6), 6));
    }
}
