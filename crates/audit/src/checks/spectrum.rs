//! A leaf must reveal nothing about any later leaf, however much later.
//!
//! The test compares quarters of the tree at all distances up to the length of the trace. The two
//! first turns of a path, and their product, are signs. For independent uniform leaves, the
//! products of signs at one distance are independent signs too, so the sum of the nine squared
//! correlations is a chi-square. A Fourier transform computes the correlations of all distances at
//! once.

use super::sample::Sample;
use super::statistics::{Statistic, oddest};
use super::uniformity::PER_BIN;
use crate::report::Finding;
use crate::special::chi_square_upper;
use rustfft::{FftPlanner, num_complex::Complex};

const NAME: &str = "independence at any distance";

/// Turns of a path that make the signs.
const TURNS: u32 = 2;
/// The least number of pairs at a distance.
const LEAST_PAIRS: usize = 128;

/// Judges all distances. The p-value is corrected for their number.
pub(super) fn judge(sample: &Sample) -> Finding {
    let bits = sample.fold(PER_BIN, 2, TURNS);
    let leaves = if bits == 0 { Vec::new() } else { sample.top(bits) };
    let longest = leaves.len().saturating_sub(LEAST_PAIRS);
    if longest == 0 {
        return Finding::unjudged(NAME, "fewer than 128 accesses below the root");
    }
    let (squares, signs) = (correlations(&leaves, bits), (1u64 << bits) - 1);
    let df = (signs * signs) as f64;
    let statistic = |lag: usize| squares[lag] / (leaves.len() - lag) as f64;
    let odd = (1..=longest).max_by(|&a, &b| statistic(a).total_cmp(&statistic(b))).unwrap_or(1);
    let what = format!(
        "the oddest of {longest} distances is {odd}, {} parts each; chi-square should be near {df}",
        1u64 << bits
    );
    let p_value = chi_square_upper(statistic(odd), df) * longest as f64;
    oddest(NAME, vec![Statistic { what, statistic: statistic(odd), p_value }], "")
}

/// The sum of the squares of all correlations of signs, at each distance.
fn correlations(leaves: &[u64], bits: u32) -> Vec<f64> {
    let n = leaves.len();
    // Twice as long, so that the end does not meet the beginning.
    let size = (2 * n).next_power_of_two();
    let mut planner = FftPlanner::<f64>::new();
    let (forward, back) = (planner.plan_fft_forward(size), planner.plan_fft_inverse(size));
    let sign = |leaf: u64, turns: u64| {
        if (leaf & turns).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 }
    };
    let spectrum = |turns: u64| {
        let mut signs = vec![Complex::new(0.0, 0.0); size];
        for (to, &leaf) in signs.iter_mut().zip(leaves) {
            to.re = sign(leaf, turns);
        }
        forward.process(&mut signs);
        signs
    };
    let spectra: Vec<_> = (1..1u64 << bits).map(spectrum).collect();
    let mut squares = vec![0.0; n];
    for (a, x) in spectra.iter().enumerate() {
        for (b, y) in spectra.iter().enumerate().skip(a) {
            let mut both: Vec<_> = x.iter().zip(y).map(|(x, y)| x.conj() * y).collect();
            back.process(&mut both);
            let at = |index: usize| both[index].re / size as f64;
            for (lag, square) in squares.iter_mut().enumerate().skip(1) {
                *square += at(lag).powi(2);
                // The other way round it is another correlation, except for a sign with itself.
                *square += if a == b { 0.0 } else { at(size - lag).powi(2) };
            }
        }
    }
    squares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::SplitMix64;
    use crate::trace::{Trace, TraceRequest};

    /// Leaves, each near the one `lag` before.
    fn near(lag: usize, spread: u64, count: usize) -> Finding {
        let mut rng = SplitMix64::new(3);
        let mut leaves: Vec<u64> = (0..lag).map(|_| rng.below(1024)).collect();
        while leaves.len() < count {
            let old = leaves[leaves.len() - lag];
            leaves.push((old + rng.below(spread)) % 1024);
        }
        let request =
            |leaf| TraceRequest { leaves: vec![leaf], depth: 10, ..TraceRequest::default() };
        let requests = leaves.into_iter().map(request).collect();
        judge(&Sample::of(&Trace { depth: 10, requests }))
    }

    #[test]
    fn dependence_is_seen_at_its_distance_however_long() {
        for lag in [1, 64, 777, 9000] {
            let finding = near(lag, 400, 20_000);
            assert!(finding.p_value < 1e-12, "{finding:?}");
            assert!(finding.explanation.contains(&format!("distances is {lag},")), "{finding:?}");
        }
    }

    #[test]
    fn independence_passes_and_sums_are_those_of_the_definition() {
        assert!(near(1, 1024, 20_000).p_value > 1e-3);
        let leaves = [0, 1, 3, 2, 2, 0, 1];
        let sign = |leaf: u64, turns: u64| 1.0 - 2.0 * f64::from((leaf & turns).count_ones() % 2);
        for (lag, square) in correlations(&leaves, 2).iter().enumerate().skip(1) {
            let mut sum = 0.0;
            for a in 1..4 {
                for b in 1..4 {
                    let pairs = leaves.iter().zip(&leaves[lag..]);
                    sum += pairs.map(|(&x, &y)| sign(x, a) * sign(y, b)).sum::<f64>().powi(2);
                }
            }
            assert!((sum - square).abs() < 1e-9, "{lag}: {sum} {square}");
        }
    }
}
