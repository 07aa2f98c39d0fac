//! The tests, one file each, and the two ways to run them.

mod across;
mod compare;
mod e_value;
mod pace;
mod power;
mod ranges;
mod repeats;
mod sample;
mod serial;
mod shape;
mod spectrum;
mod statistics;
mod uniformity;

use crate::report::{AuditOptions, Finding, Report};
use crate::trace::Trace;
use sample::Sample;

pub(crate) use across::repeats_of;
pub use e_value::EValue;
pub use pace::judge_pace;
pub use shape::union_of_paths;
pub use statistics::{Statistic, contingency, oddest};

/// Judges one trace: could any workload have made it?
pub fn audit(trace: &Trace, options: &AuditOptions) -> Report {
    let mut report = judge_chance(trace, options, vec![shape::single(trace, options)]);
    // The shape is judged exactly, and comes first.
    let shape = report.findings.pop();
    report.findings.splice(0..0, shape);
    report
}

/// Judges the paths of a trace by chance alone. The findings in `more` get their share of the rate.
pub fn judge_chance(trace: &Trace, options: &AuditOptions, more: Vec<Finding>) -> Report {
    let sample = Sample::of(trace);
    let mut findings = uniformity::judge(&sample);
    findings.extend(serial::judge(&sample));
    findings.push(spectrum::judge(&sample));
    findings.extend(repeats::judge(trace, &sample, options));
    findings.push(ranges::judge(&sample));
    findings.extend(more);
    let size = (trace.requests.len(), trace.accesses());
    let mut report = Report::new(findings, options, size, uniformity::TOP);
    report.power = power::of(&sample, &report);
    report
}

/// Judges two traces of different workloads of the same length: can they be distinguished?
///
/// It judges only differences. Two traces that are equal to the last leaf pass, since a test may
/// give both workloads the same seed. [`audit`] each trace as well.
pub fn compare(a: &Trace, b: &Trace, options: &AuditOptions) -> Report {
    let findings = compare::judge(a, b, options);
    let size = (a.requests.len() + b.requests.len(), a.accesses() + b.accesses());
    Report::new(findings, options, size, compare::HISTOGRAMS)
}

/// Compares two traces only by their places. Their numbers of accesses are public, and may differ.
pub fn compare_places(a: &Trace, b: &Trace, options: &AuditOptions) -> Report {
    compare_places_and(a, b, options, Vec::new())
}

/// As [`compare_places`]. The findings in `more` get their share of the rate.
pub fn compare_places_and(
    a: &Trace,
    b: &Trace,
    options: &AuditOptions,
    more: Vec<Finding>,
) -> Report {
    let findings = compare::places(a, b).into_iter().chain(more).collect();
    let size = (a.requests.len() + b.requests.len(), a.accesses() + b.accesses());
    Report::new(findings, options, size, compare::HISTOGRAMS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_traces_pass_nothing() {
        let empty = Trace::default();
        let options = AuditOptions::default();
        assert!(!audit(&empty, &options).passed());
        assert!(!compare(&empty, &empty, &options).passed());
    }
}
