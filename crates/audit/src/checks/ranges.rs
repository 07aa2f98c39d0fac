//! Repeats of a leaf at long distances, up to the length of the trace.
//!
//! A leak that sometimes repeats a path, now after 5,000 accesses and now after 8,000, has few
//! repeats at any one distance, but many in a range of distances. Ranges double, and begin at
//! powers of two and half-way between them.

use super::e_value::EValue;
use super::sample::Sample;
use super::statistics::{Statistic, oddest};
use crate::report::Finding;
use std::collections::HashMap;

const NAME: &str = "repeats in a range of distances";

/// The start of the first range. Shorter distances are in the window test.
const FIRST: usize = 128;
/// The least number of accesses left that could repeat a leaf.
const LEAST: usize = 64;
/// A range that covers nearly all leaves carries no information.
const CROWDED: f64 = 0.98;
/// The largest tree, in bits, with a count for each leaf.
const DENSE_BITS: u32 = 22;

/// Distances from the first on, below the second.
pub(super) type Range = (usize, usize);

/// The judged ranges of a trace of `n` accesses.
pub(super) fn ranges(n: usize) -> Vec<Range> {
    let starts =
        (0..usize::BITS).flat_map(|k| [FIRST << k.min(40), (FIRST + FIRST / 2) << k.min(40)]);
    let long = |&start: &usize| start + LEAST <= n;
    starts.take_while(long).map(|start| (start, 2 * start)).collect()
}

/// Judges each range, on the finest tree that half of the accesses have.
pub(super) fn judge(sample: &Sample) -> Finding {
    let bits = sample.resolution();
    let leaves = if bits == 0 { Vec::new() } else { sample.top(bits) };
    let looks = ranges(leaves.len()).into_iter().filter_map(|range| look(&leaves, bits, range));
    oddest(NAME, looks.collect(), "fewer than 192 accesses below the root")
}

fn look(leaves: &[u64], bits: u32, (from, to): Range) -> Option<Statistic> {
    let tree = 2f64.powi(bits as i32);
    // The mean number that a window of this length has of that tree.
    if 1.0 - (-((to - from) as f64) / tree).exp() > CROWDED {
        return None;
    }
    let (mut recent, mut bet) = (Recent::new(bits), EValue::new());
    for (t, &leaf) in leaves.iter().enumerate() {
        if let Some(at) = t.checked_sub(from) {
            recent.add(leaves[at]);
            bet.see(recent.has(leaf), recent.distinct as f64 / tree);
        }
        if let Some(at) = (t + 1).checked_sub(to) {
            recent.remove(leaves[at]);
        }
    }
    let what = format!(
        "{} accesses repeat one from {from} to {} before, {:.1} expected",
        bet.hits,
        to - 1,
        bet.expected
    );
    Some(Statistic { what, statistic: bet.hits as f64, p_value: bet.p_value() })
}

/// Leaves in a window, with their counts.
struct Recent {
    dense: Vec<u32>,
    sparse: HashMap<u64, u32>,
    distinct: usize,
}

impl Recent {
    fn new(bits: u32) -> Self {
        let dense = if bits <= DENSE_BITS { vec![0; 1 << bits] } else { Vec::new() };
        Recent { dense, sparse: HashMap::new(), distinct: 0 }
    }

    fn count(&mut self, leaf: u64) -> &mut u32 {
        match self.dense.is_empty() {
            true => self.sparse.entry(leaf).or_default(),
            false => &mut self.dense[leaf as usize],
        }
    }

    fn has(&mut self, leaf: u64) -> bool {
        match self.dense.is_empty() {
            true => self.sparse.contains_key(&leaf),
            false => self.dense[leaf as usize] > 0,
        }
    }

    fn add(&mut self, leaf: u64) {
        let count = self.count(leaf);
        *count += 1;
        self.distinct += usize::from(*count == 1);
    }

    fn remove(&mut self, leaf: u64) {
        let count = self.count(leaf);
        *count -= 1;
        if *count == 0 {
            self.distinct -= 1;
            self.sparse.remove(&leaf);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::SplitMix64;
    use crate::trace::{Trace, TraceRequest};

    fn p(leaves: &[u64], depth: u32) -> f64 {
        let request =
            |&leaf: &u64| TraceRequest { leaves: vec![leaf], depth, ..TraceRequest::default() };
        judge(&Sample::of(&Trace { depth, requests: leaves.iter().map(request).collect() })).p_value
    }

    #[test]
    fn ranges_double_up_to_the_length_of_the_trace() {
        assert_eq!(ranges(500), [(128, 256), (192, 384), (256, 512), (384, 768)]);
        assert!(ranges(191).is_empty());
        assert!(ranges(400_000).last().is_some_and(|range| range.0 > 200_000));
    }

    #[test]
    fn echoes_at_changing_distances_are_seen_and_chance_is_not() {
        for (depth, kept) in [(14, true), (24, true), (14, false)] {
            let mut rng = SplitMix64::new(u64::from(depth));
            let mut leaves: Vec<u64> = Vec::new();
            for t in 0..60_000u64 {
                let back = 5000 + rng.below(3000);
                let echo = kept && t > 9000 && rng.chance(0.03);
                let fresh = rng.below(1 << depth);
                leaves.push(if echo { leaves[(t - back) as usize] } else { fresh });
            }
            let p = p(&leaves, depth);
            assert_eq!(p < 1e-7, kept, "{depth}: {p}");
        }
    }
}
