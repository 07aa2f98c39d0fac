//! Two workloads of the same length must not be told apart.

use std::collections::HashMap;

use super::sample::{Sample, histogram};
use super::uniformity::{PER_BIN, resolutions};
use super::{Look, contingency, oddest, shape};
use crate::report::{Finding, Options};
use crate::special::chi_square_upper;
use crate::trace::Trace;

/// The name of the test without which there is no verdict.
pub(super) const HISTOGRAMS: &str = "leaf histograms";
const REQUESTS: &str = "number of requests";
const ACCESSES: &str = "number of accesses";
const SHAPES: &str = "request shapes";
const DISTANCES: &str = "repeat distances";

/// The finest fold: 4096 bins.
const MAX_BITS: u32 = 12;

/// Judges two traces side by side.
pub(super) fn judge(a: &Trace, b: &Trace, options: &Options) -> Vec<Finding> {
    let (x, y) = (Sample::of(a), Sample::of(b));
    vec![
        equal(REQUESTS, a.requests.len(), b.requests.len()),
        equal(ACCESSES, a.accesses(), b.accesses()),
        shape::pair(SHAPES, a, b, options),
        histograms(&x, &y),
        repeat_distances(&x, &y),
    ]
}

fn equal(name: &str, a: usize, b: usize) -> Finding {
    let explanation = if a == b { format!("{a} in both") } else { format!("{a} against {b}") };
    Finding::exact(name, a.abs_diff(b), explanation)
}

/// Chi-square for two rows of counts being drawn alike. Only difference is judged.
fn alike(rows: &[Vec<u64>], what: &str) -> Look {
    let (statistic, df) = contingency(rows);
    let what = format!("{what}; chi-square should be near {df}");
    let p_value = if df > 0.0 { chi_square_upper(statistic, df) } else { 1.0 };
    Look { what, statistic, p_value }
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

/// Whether both traces come back to a place after equally long.
///
/// The distances within one trace depend on each other a little, but so that their counts vary
/// less than independent ones would: the test errs towards passing.
fn repeat_distances(x: &Sample, y: &Sample) -> Finding {
    let finest = x.resolution().min(y.resolution());
    let looks = resolutions(finest).filter_map(|bits| {
        let rows = merged(distances(&x.top(bits)), distances(&y.top(bits)));
        let what = format!("{} distances since one of {} bins", rows[0].len(), 1u64 << bits);
        (rows[0].len() > 1).then(|| alike(&rows, &what))
    });
    oddest(DISTANCES, looks.collect(), "too few accesses below the root")
}

/// How many accesses went by since the same number was last seen: 1, 2, 3 and 4, 5 to 8, ...;
/// first sights come last.
fn distances(numbers: &[u64]) -> Vec<u64> {
    let mut counts = vec![0u64; 66];
    let mut last: HashMap<u64, usize> = HashMap::new();
    for (t, &number) in numbers.iter().enumerate() {
        let class = match last.insert(number, t) {
            Some(s) => 64 - (t - s - 1).leading_zeros() as usize,
            None => 65,
        };
        counts[class] += 1;
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
    use crate::trace::Request;

    fn trace(leaves: impl Iterator<Item = u64>) -> Trace {
        let request = |leaf| Request { leaves: vec![leaf], depth: 10, ..Request::default() };
        Trace { depth: 10, requests: leaves.map(request).collect() }
    }

    fn random(n: usize, seed: u64) -> Trace {
        let mut rng = SplitMix64::new(seed);
        trace((0..n).map(|_| rng.below(1024)).collect::<Vec<_>>().into_iter())
    }

    fn p(a: &Trace, b: &Trace, name: &str) -> f64 {
        let findings = judge(a, b, &Options::default());
        findings.into_iter().find(|f| f.name == name).unwrap().p_value
    }

    #[test]
    fn classes_of_distances() {
        let counts = distances(&[1, 1, 2, 1, 2, 2]);
        assert_eq!((counts[0], counts[1], counts[65]), (2, 2, 2));
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
