//! A leaf must reveal nothing about the leaves after it.

use super::sample::Sample;
use super::statistics::{Statistic, contingency, oddest, two_sided};
use super::uniformity::PER_BIN;
use crate::report::Finding;

const NAME: &str = "serial independence";

/// Distances of the two leaves of a pair: near ones for the effect of an access on the next, longer
/// ones for caches and batches of the usual sizes.
const LAGS: [usize; 15] = [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 256, 512, 1024];

/// The finest fold of one leaf: 32 bins, so 1024 kinds of pairs.
const MAX_BITS: u32 = 5;

/// Chi-square on the table of pairs at a few lags, finely; `spectrum` covers all of them.
///
/// Overlapping pairs share a leaf. But once rows and columns are fitted to the data, the rest are
/// products of independent deviations, uncorrelated over time: the usual degrees of freedom hold
/// (as for the order of a Markov chain).
pub(super) fn judge(sample: &Sample) -> Vec<Finding> {
    let bits = sample.fold(PER_BIN, 2, MAX_BITS);
    let why = "fewer than 128 accesses below the root";
    let fine = leaves(sample, bits);
    // At longer lags too few pairs are left.
    let lags = LAGS.into_iter().filter(|&lag| lag <= fine.len() / 4);
    let looks = lags.map(|lag| pairs(&fine, bits, lag));
    vec![oddest(NAME, looks.collect(), why)]
}

fn leaves(sample: &Sample, bits: u32) -> Vec<u64> {
    if bits == 0 { Vec::new() } else { sample.top(bits) }
}

fn pairs(numbers: &[u64], bits: u32, lag: usize) -> Statistic {
    let bins = 1usize << bits;
    let mut counts = vec![0u64; bins * bins];
    for (&earlier, &later) in numbers.iter().zip(&numbers[lag..]) {
        counts[earlier as usize * bins + later as usize] += 1;
    }
    let table: Vec<_> = counts.chunks(bins).map(<[u64]>::to_vec).collect();
    let (statistic, df) = contingency(&table);
    let what =
        format!("pairs {lag} apart, {} bins each; chi-square should be near {df}", 1u64 << bits);
    Statistic { what, statistic, p_value: two_sided(statistic, df) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::SplitMix64;
    use crate::trace::{Trace, TraceRequest};

    /// Leaves, each near the one `lag` before.
    fn near(lag: usize, spread: u64) -> Vec<Finding> {
        let mut rng = SplitMix64::new(3);
        let mut leaves: Vec<u64> = (0..lag).map(|_| rng.below(1024)).collect();
        while leaves.len() < 4000 {
            let old = leaves[leaves.len() - lag];
            leaves.push((old + rng.below(spread)) % 1024);
        }
        let request =
            |leaf| TraceRequest { leaves: vec![leaf], depth: 10, ..TraceRequest::default() };
        let requests = leaves.into_iter().map(request).collect();
        judge(&Sample::of(&Trace { depth: 10, requests }))
    }

    #[test]
    fn dependence_is_seen_at_its_lag() {
        for lag in [1, 5, 64] {
            let findings = near(lag, 400);
            assert!(findings.iter().all(|f| f.p_value < 1e-12), "{findings:?}");
            assert!(findings[0].explanation.contains(&format!("pairs {lag} apart")));
        }
    }

    #[test]
    fn independence_passes() {
        assert!(near(1, 1024).iter().all(|f| f.p_value > 1e-3));
    }
}
