//! The tests, one file each, and the two ways to run them.

mod across;
mod bet;
mod compare;
mod pace;
mod power;
mod ranges;
mod repeats;
mod sample;
mod serial;
mod shape;
mod spectrum;
mod uniformity;

use crate::report::{Finding, Options, Report};
use crate::special::{chi_square_lower, chi_square_upper};
use crate::trace::Trace;
use sample::Sample;

pub(crate) use across::repeats_of;
pub use pace::judge_pace;
pub use shape::union_of_paths;

/// Judges one trace: could any workload have made it?
pub fn audit(trace: &Trace, options: &Options) -> Report {
    let mut report = judge_chance(trace, options, vec![shape::single(trace, options)]);
    // The shape is judged exactly, and comes first.
    let shape = report.findings.pop();
    report.findings.splice(0..0, shape);
    report
}

/// Judges the paths of a trace by chance alone. The findings in `more` get their share of the rate.
pub(crate) fn judge_chance(trace: &Trace, options: &Options, more: Vec<Finding>) -> Report {
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
pub fn compare(a: &Trace, b: &Trace, options: &Options) -> Report {
    let findings = compare::judge(a, b, options);
    let size = (a.requests.len() + b.requests.len(), a.accesses() + b.accesses());
    Report::new(findings, options, size, compare::HISTOGRAMS)
}

/// Compares two traces only by their places. Their numbers of accesses are public, and may differ.
pub fn compare_places(a: &Trace, b: &Trace, options: &Options) -> Report {
    compare_places_and(a, b, options, Vec::new())
}

/// As [`compare_places`]. The findings in `more` get their share of the rate.
pub(crate) fn compare_places_and(
    a: &Trace,
    b: &Trace,
    options: &Options,
    more: Vec<Finding>,
) -> Report {
    let findings = compare::places(a, b).into_iter().chain(more).collect();
    let size = (a.requests.len() + b.requests.len(), a.accesses() + b.accesses());
    Report::new(findings, options, size, compare::HISTOGRAMS)
}

/// One of several looks at the same question.
struct Look {
    what: String,
    statistic: f64,
    p_value: f64,
}

/// The oddest of several looks, its p-value multiplied by their number.
fn oddest(name: &str, looks: Vec<Look>, why_none: &str) -> Finding {
    let count = looks.len();
    let Some(odd) = looks.into_iter().min_by(|a, b| a.p_value.total_cmp(&b.p_value)) else {
        return Finding::unjudged(name, why_none);
    };
    let explanation = format!("oddest of {count}: {}", odd.what);
    Finding::new(name, odd.statistic, odd.p_value * count as f64, explanation)
}

/// The p-value of a chi-square statistic that is too uneven or too even.
///
/// With few degrees of freedom an exactly even count is not surprising, but the continuous
/// distribution would flag it: there only unevenness counts.
fn two_sided(statistic: f64, df: f64) -> f64 {
    let upper = chi_square_upper(statistic, df);
    if df < 15.0 { upper } else { 2.0 * upper.min(chi_square_lower(statistic, df)) }
}

/// Pearson's statistic and its degrees of freedom for the independence of rows and columns.
///
/// Empty rows and columns carry no information and are left out.
fn contingency(rows: &[Vec<u64>]) -> (f64, f64) {
    let columns = rows.first().map_or(0, Vec::len);
    let row_sums: Vec<u64> = rows.iter().map(|r| r.iter().sum()).collect();
    let column_sums: Vec<u64> = (0..columns).map(|c| rows.iter().map(|r| r[c]).sum()).collect();
    let total = row_sums.iter().sum::<u64>().max(1) as f64;
    let mut statistic = 0.0;
    for (row, &row_sum) in rows.iter().zip(&row_sums) {
        for (&cell, &column_sum) in row.iter().zip(&column_sums) {
            let expected = row_sum as f64 * column_sum as f64 / total;
            if expected > 0.0 {
                statistic += (cell as f64 - expected).powi(2) / expected;
            }
        }
    }
    let used = |sums: &[u64]| sums.iter().filter(|&&s| s > 0).count().saturating_sub(1) as f64;
    (statistic, used(&row_sums) * used(&column_sums))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contingency_of_a_textbook_table() {
        let (statistic, df) = contingency(&[vec![10, 20, 0], vec![30, 20, 0]]);
        assert!((statistic - 16.0 / 3.0).abs() < 1e-12, "{statistic}");
        assert_eq!(df, 1.0);
    }

    #[test]
    fn looking_often_costs() {
        let look = |p| Look { what: String::new(), statistic: 0.0, p_value: p };
        assert_eq!(oddest("x", vec![look(0.5), look(0.01)], "").p_value, 0.02);
        assert!(!oddest("x", Vec::new(), "nothing").judged);
    }

    #[test]
    fn empty_traces_pass_nothing() {
        let empty = Trace::default();
        let options = Options::default();
        assert!(!audit(&empty, &options).passed());
        assert!(!compare(&empty, &empty, &options).passed());
    }
}
