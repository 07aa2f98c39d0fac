//! Repeats of a leaf: as often as by chance, neither more nor less.

use std::collections::HashMap;

use super::e_value::EValue;
use super::sample::Sample;
use crate::report::{AuditOptions, Finding};
use crate::special::{binomial_lower, binomial_upper};
use crate::trace::{MAX_DEPTH, Trace};

const WITHIN: &str = "repeats within a request";
const WINDOW: &str = "repeats within a window";
const LAG: &str = "repeats at one distance";

/// The most pairs of equal leaves to visit, as a bound on the work. Shorter distances come first.
const MAX_WORK: usize = 200_000_000;

/// Distances with fewer pairs are skipped.
const LEAST_PAIRS: usize = 32;

/// A p-value above this, after the correction for the number of distances, is not computed exactly.
const UNSUSPECTED: f64 = 100.0;

/// Judges repeats within requests, within a window of accesses, and at each single distance.
pub(super) fn judge(trace: &Trace, sample: &Sample, options: &AuditOptions) -> Vec<Finding> {
    let bits = sample.resolution();
    let leaves = if bits == 0 { Vec::new() } else { sample.top(bits) };
    let mut findings = Vec::new();
    if trace.requests.iter().any(|r| r.leaves.len() > 1) {
        findings.push(within(trace));
    }
    findings.push(window(&leaves, bits, options.window));
    findings.push(single_distance(&leaves, bits));
    findings
}

/// The same leaf twice in one request: two users of one block must not show it.
fn within(trace: &Trace) -> Finding {
    let mut bet = EValue::new();
    for request in &trace.requests {
        let tree = 2f64.powi(request.depth.min(MAX_DEPTH) as i32);
        let mut seen = HashMap::new();
        for &leaf in &request.leaves {
            let chance = seen.len() as f64 / tree;
            bet.see(seen.insert(leaf, ()).is_some(), chance.min(1.0));
        }
    }
    bet.finding(WITHIN, "leaves shown twice in one request")
}

/// The same leaf again soon.
fn window(leaves: &[u64], bits: u32, window: usize) -> Finding {
    if leaves.is_empty() || window == 0 {
        return Finding::unjudged(WINDOW, "no accesses below the root");
    }
    let tree = 2f64.powi(bits as i32);
    let mut recent: HashMap<u64, usize> = HashMap::new();
    let mut bet = EValue::new();
    for (t, &leaf) in leaves.iter().enumerate() {
        bet.see(recent.contains_key(&leaf), recent.len() as f64 / tree);
        *recent.entry(leaf).or_default() += 1;
        if let Some(&gone) = t.checked_sub(window).map(|s| &leaves[s]) {
            forget(&mut recent, gone);
        }
    }
    let what = format!("accesses repeat one of the last {window} leaves");
    bet.finding(WINDOW, &what)
}

fn forget(recent: &mut HashMap<u64, usize>, leaf: u64) {
    if let Some(count) = recent.get_mut(&leaf) {
        *count -= 1;
        if *count == 0 {
            recent.remove(&leaf);
        }
    }
}

/// The same leaf again after one particular number of accesses.
///
/// For independent uniform leaves, the repeats at any one distance are exactly binomial: modulo the
/// tree's width, differences of independent uniform numbers are independent and uniform.
fn single_distance(leaves: &[u64], bits: u32) -> Finding {
    let n = leaves.len();
    let max = longest(n, bits);
    if max == 0 {
        return Finding::unjudged(LAG, "too few accesses below the root");
    }
    let chance = 2f64.powi(-(bits as i32));
    let p_at = |lag: usize, hits: u64| {
        let pairs = (n - lag) as u64;
        // Most counts are as expected, and exact tails take time.
        if tail_bound(hits as f64, pairs as f64 * chance) * max as f64 > UNSUSPECTED {
            return 1.0;
        }
        2.0 * binomial_upper(hits, pairs, chance).min(binomial_lower(hits, pairs, chance))
    };
    let counts = distances(leaves, max);
    let all = counts.iter().enumerate().skip(1).map(|(lag, &hits)| (p_at(lag, hits), lag));
    let (p, lag) = all.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((1.0, 1));
    let expected = (n - lag) as f64 * chance;
    let explanation = format!(
        "oddest of {max} distances: {} repeats {lag} accesses apart, {expected:.1} expected",
        counts[lag]
    );
    Finding::new(LAG, counts[lag] as f64, p * max as f64, explanation)
}

/// Chernoff's bound on the probability of `hits` hits or more (or fewer), where `expected` are.
fn tail_bound(hits: f64, expected: f64) -> f64 {
    let part = if hits > 0.0 { hits * (hits / expected.max(f64::MIN_POSITIVE)).ln() } else { 0.0 };
    (hits - expected - part).exp().min(1.0)
}

/// The longest distance: the whole trace, up to the bound on the work.
fn longest(n: usize, bits: u32) -> usize {
    let all = n.saturating_sub(LEAST_PAIRS);
    // Pairs of equal leaves at one distance; the first ones are visited.
    let per_lag = ((n as u128) >> bits.min(64)).max(1) as usize;
    all.min((MAX_WORK / per_lag).max(16))
}

/// The number of pairs of equal leaves at each distance up to `max`.
fn distances(leaves: &[u64], max: usize) -> Vec<u64> {
    let mut counts = vec![0u64; max + 1];
    let mut last: HashMap<u64, usize> = HashMap::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(leaves.len());
    for (t, &leaf) in leaves.iter().enumerate() {
        before.push(last.insert(leaf, t));
        let mut at = before[t];
        while let Some(s) = at.filter(|s| t - s <= max) {
            counts[t - s] += 1;
            at = before[s];
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::SplitMix64;

    fn random(n: usize, bits: u32, seed: u64) -> Vec<u64> {
        let mut rng = SplitMix64::new(seed);
        (0..n).map(|_| rng.below(1 << bits)).collect()
    }

    #[test]
    fn distances_of_a_short_word() {
        assert_eq!(distances(&[1, 2, 1, 1], 3), [0, 1, 1, 1]);
        assert_eq!(distances(&[1, 2, 1, 1], 2), [0, 1, 1]);
    }

    #[test]
    fn shallow_trees_raise_no_alarm() {
        for bits in 1..10 {
            let leaves = random(2000, bits, u64::from(bits));
            assert!(window(&leaves, bits, 256).p_value > 1e-3, "{bits}");
            assert!(single_distance(&leaves, bits).p_value > 1e-3, "{bits}");
        }
    }

    #[test]
    fn echoes_and_their_absence_are_seen() {
        let mut leaves = random(20_000, 10, 1);
        for t in (100..20_000).step_by(25) {
            leaves[t] = leaves[t - 77];
        }
        assert!(window(&leaves, 10, 256).p_value < 1e-3);
        assert!(single_distance(&leaves, 10).p_value < 1e-12);
        assert!(single_distance(&leaves, 10).explanation.contains(" 77 accesses apart"));
        let never: Vec<u64> = (0..20_000).map(|t| t * 7 % 1024).collect();
        assert!(window(&never, 10, 256).p_value < 1e-12);
    }
}
