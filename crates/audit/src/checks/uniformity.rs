//! Every leaf must be as likely as every other, throughout the trace.

use super::sample::{Sample, histogram};
use super::statistics::{Statistic, contingency, oddest, two_sided};
use crate::report::Finding;

/// The first test, without which there is no verdict.
pub(super) const TOP: &str = "leaf uniformity";
const LOW: &str = "leaf uniformity, last turns";
const DRIFT: &str = "leaf uniformity over time";

/// The mean number of accesses per bin that chi-square needs in its far tail.
pub(super) const PER_BIN: usize = 32;

/// The finest fold: 4096 bins.
pub(super) const MAX_BITS: u32 = 12;

/// Stretches of the trace in the search for drift.
const STRETCHES: usize = 8;

/// The resolutions to judge: a bias of few large parts drowns in many small bins, and vice versa.
pub(super) fn resolutions(finest: u32) -> impl Iterator<Item = u32> {
    [1, 4, 7].into_iter().filter(move |&b| b < finest).chain((finest > 0).then_some(finest))
}

/// Judges the first turns of the paths, their last turns, and the first turns over time.
pub(super) fn judge(sample: &Sample) -> Vec<Finding> {
    let finest = sample.fold(PER_BIN, 1, MAX_BITS);
    let top = resolutions(finest).map(|b| even(&sample.top(b), b, "first"));
    let low = resolutions(finest).map(|b| even(&sample.low(b), b, "last"));
    let why = "fewer than 64 accesses below the root";
    vec![oddest(TOP, top.collect(), why), oddest(LOW, low.collect(), why), drift(sample)]
}

/// Chi-square against the uniform distribution. Too even is odd as well.
fn even(numbers: &[u64], bits: u32, which: &str) -> Statistic {
    let bins = 1u64 << bits;
    let expected = numbers.len() as f64 / bins as f64;
    let deviation = |count: u64| (count as f64 - expected).powi(2) / expected;
    let statistic = histogram(numbers, bits).into_iter().map(deviation).sum();
    let df = (bins - 1) as f64;
    let what = format!(
        "{} accesses on {bins} bins by their {which} {bits} turns; chi-square should be near {df}",
        numbers.len()
    );
    Statistic { what, statistic, p_value: two_sided(statistic, df) }
}

/// Whether the leaves have the same distribution in each stretch of the trace.
fn drift(sample: &Sample) -> Finding {
    let finest = sample.fold(PER_BIN * STRETCHES, 1, MAX_BITS);
    let looks = resolutions(finest).map(|bits| {
        let numbers = sample.top(bits);
        let stretch = numbers.len().div_ceil(STRETCHES);
        let rows: Vec<_> = numbers.chunks(stretch).map(|c| histogram(c, bits)).collect();
        let (statistic, df) = contingency(&rows);
        let what = format!(
            "{STRETCHES} stretches of {stretch} accesses by {} bins; chi-square should be near {df}",
            1u64 << bits
        );
        Statistic { what, statistic, p_value: two_sided(statistic, df) }
    });
    oddest(DRIFT, looks.collect(), "fewer than 512 accesses below the root")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Trace, TraceRequest};

    fn trace(leaves: impl Iterator<Item = u64>) -> Trace {
        let request =
            |leaf| TraceRequest { leaves: vec![leaf], depth: 10, ..TraceRequest::default() };
        Trace { depth: 10, requests: leaves.map(request).collect() }
    }

    fn p_values(leaves: impl Iterator<Item = u64>) -> Vec<f64> {
        judge(&Sample::of(&trace(leaves))).into_iter().map(|f| f.p_value).collect()
    }

    #[test]
    fn too_even_is_odd() {
        assert!(p_values((0..8192).map(|t| t * 5 % 1024))[0] < 1e-12);
    }

    #[test]
    fn odd_last_turns_are_seen() {
        let p = p_values((0..8192u64).map(|t| (t.wrapping_mul(0x9e3779b97f4a7c15) >> 54) & !1));
        assert!(p[1] < 1e-12, "{p:?}");
    }

    #[test]
    fn drift_is_seen() {
        assert!(p_values((0..8192).map(|t| t / 8))[2] < 1e-12);
    }
}
