//! Two workloads of the same length must be indistinguishable.

use super::sample::{Sample, histogram};
use super::shape;
use super::statistics::{Statistic, contingency, oddest};
use super::uniformity::{PER_BIN, resolutions};
use crate::report::{AuditOptions, Finding};
use crate::special::chi_square_upper;
use crate::trace::Trace;

/// The test without which there is no verdict.
pub(super) const HISTOGRAMS: &str = "leaf histograms";
const REQUESTS: &str = "number of requests";
const ACCESSES: &str = "number of accesses";
const SHAPES: &str = "request shapes";
const DISTANCES: &str = "repeat distances";

/// The finest fold: 4096 bins.
const MAX_BITS: u32 = 12;

/// Compares two traces.
pub(super) fn judge(a: &Trace, b: &Trace, options: &AuditOptions) -> Vec<Finding> {
    let (x, y) = (Sample::of(a), Sample::of(b));
    vec![
        equal(REQUESTS, a.requests.len(), b.requests.len()),
        equal(ACCESSES, a.accesses(), b.accesses()),
        shape::pair(SHAPES, a, b, options),
        histograms(&x, &y),
        repeat_distances(&x, &y),
    ]
}

/// Compares the places of two traces, whatever their numbers of accesses.
pub(super) fn places(a: &Trace, b: &Trace) -> Vec<Finding> {
    let (x, y) = (Sample::of(a), Sample::of(b));
    vec![histograms(&x, &y), repeat_distances(&x, &y)]
}

fn equal(name: &str, a: usize, b: usize) -> Finding {
    let explanation = if a == b { format!("{a} in both") } else { format!("{a} against {b}") };
    Finding::exact(name, a.abs_diff(b), explanation)
}

/// Chi-square for two rows of counts from the same distribution. Only differences count.
fn alike(rows: &[Vec<u64>], what: &str) -> Statistic {
    let (statistic, df) = contingency(rows);
    let what = format!("{what}; chi-square should be near {df}");
    let p_value = if df > 0.0 { chi_square_upper(statistic, df) } else { 1.0 };
    Statistic { what, statistic, p_value }
}

/// Whether both traces go to the same places.
fn histograms(x: &Sample, y: &Sample) -> Finding {
    let finest = x.fold(PER_BIN, 1, MAX_BITS).min(y.fold(PER_BIN, 1, MAX_BITS));
    let top = resolutions(finest).map(|bits| {
        let rows = [histogram(&x.top(bits), bits), histogram(&y.top(bits), bits)];
        alike(&rows, &format!("{} bins by the first {bits} turns", 1u64 << bits))
    });
    let low = resolutions(finest).map(|bits| {
        let rows = [histogram(&x.low(bits), bits), histogram(&y.low(bits), bits)];
        alike(&rows, &format!("{} bins by the last {bits} turns", 1u64 << bits))
    });
    oddest(HISTOGRAMS, top.chain(low).collect(), "fewer than 64 accesses below the root")
}

/// Whether both traces return to a place after equally many accesses.
fn repeat_distances(x: &Sample, y: &Sample) -> Finding {
    let finest = x.resolution().min(y.resolution());
    let looks = resolutions(finest).filter_map(|bits| {
        let rows = merged(distances(&x.top(bits), bits), distances(&y.top(bits), bits));
        let what = format!("{} classes of distance to the same of 2^{bits} bins", rows[0].len());
        (rows[0].len() > 1).then(|| alike(&rows, &what))
    });
    oddest(DISTANCES, looks.collect(), "too few accesses below the root")
}

/// The longest wait for a repeat.
const PATIENCE: usize = 256;

/// The number of accesses until a number comes again: after 1, 2, 3 or 4, 5 to 8, ...; abandoned
/// waits come last.
///
/// Waits never overlap: each begins with an access that no earlier wait has seen. So they are
/// independent, as chi-square requires; all distances together would not be.
fn distances(numbers: &[u64], bits: u32) -> Vec<u64> {
    let patience = PATIENCE.min(4 << bits.min(16));
    let mut counts = vec![0u64; 10];
    let mut at = 0;
    // Do not begin a wait that the end of the trace could cut short.
    while let Some(next) = numbers.get(at + 1..=at + patience) {
        let found = next.iter().position(|&number| number == numbers[at]);
        let class = found.map_or(9, |before| (usize::BITS - before.leading_zeros()) as usize);
        counts[class] += 1;
        at += found.map_or(patience, |before| before + 1) + 1;
    }
    counts
}

/// Joins neighbouring classes until both traces together fill each.
fn merged(a: Vec<u64>, b: Vec<u64>) -> [Vec<u64>; 2] {
    let (mut rows_a, mut rows_b) = (Vec::new(), Vec::new());
    let mut open = (0, 0);
    for (x, y) in a.into_iter().zip(b) {
        open = (open.0 + x, open.1 + y);
        if open.0 + open.1 >= 2 * PER_BIN as u64 {
            rows_a.push(open.0);
            rows_b.push(open.1);
            open = (0, 0);
        }
    }
    if let (Some(last_a), Some(last_b)) = (rows_a.last_mut(), rows_b.last_mut()) {
        *last_a += open.0;
        *last_b += open.1;
    }
    [rows_a, rows_b]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::SplitMix64;
    use crate::trace::TraceRequest;

    fn trace(leaves: impl Iterator<Item = u64>) -> Trace {
        let request =
            |leaf| TraceRequest { leaves: vec![leaf], depth: 10, ..TraceRequest::default() };
        Trace { depth: 10, requests: leaves.map(request).collect() }
    }

    fn random(n: usize, seed: u64) -> Trace {
        let mut rng = SplitMix64::new(seed);
        trace((0..n).map(|_| rng.below(1024)).collect::<Vec<_>>().into_iter())
    }

    fn p(a: &Trace, b: &Trace, name: &str) -> f64 {
        let findings = judge(a, b, &AuditOptions::default());
        findings.into_iter().find(|f| f.name == name).unwrap().p_value
    }

    #[test]
    fn classes_of_distances() {
        // 1 comes again at once, 0 after two, and the wait for 1 is abandoned after eight.
        let numbers = [1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        let counts = distances(&numbers, 1);
        assert_eq!((counts[0], counts[1], counts[9]), (1, 1, 1));
        assert_eq!(distances(&numbers[..13], 1).iter().sum::<u64>(), 2);
    }

    #[test]
    fn a_missing_request_is_seen() {
        assert_eq!(p(&random(999, 1), &random(1000, 2), REQUESTS), 0.0);
        assert_eq!(p(&random(999, 1), &random(1000, 2), ACCESSES), 0.0);
    }

    #[test]
    fn other_places_and_other_distances_are_seen() {
        let honest = random(8000, 1);
        let scan = trace((0..8000).map(|t| t % 1024));
        assert!(p(&honest, &scan, DISTANCES) < 1e-12);
        let left = trace((0..8000).map(|t| t * 7 % 900));
        assert!(p(&honest, &left, HISTOGRAMS) < 1e-12);
    }
}
