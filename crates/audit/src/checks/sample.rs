//! The leaves of a trace as countable numbers, also while the tree grows.

use crate::trace::{MAX_DEPTH, Trace};

/// All accesses in the order shown, requests joined.
pub(super) struct Sample {
    /// Leaf and depth of each access. The shape test judges leaves outside the tree; here they are
    /// cut to size.
    accesses: Vec<(u64, u32)>,
    /// Accesses at this depth or deeper.
    at_least: Vec<usize>,
}

impl Sample {
    pub(super) fn of(trace: &Trace) -> Sample {
        let accesses: Vec<(u64, u32)> = trace
            .requests
            .iter()
            .flat_map(|r| r.leaves.iter().map(|&leaf| (leaf, r.depth.min(MAX_DEPTH))))
            .collect();
        let mut at_least = vec![0; MAX_DEPTH as usize + 2];
        for &(_, depth) in &accesses {
            at_least[depth as usize] += 1;
        }
        for depth in (0..=MAX_DEPTH as usize).rev() {
            at_least[depth] += at_least[depth + 1];
        }
        Sample { accesses, at_least }
    }

    /// The first `bits` turns of each path of at least that length.
    pub(super) fn top(&self, bits: u32) -> Vec<u64> {
        self.pick(bits, |leaf, depth| leaf >> (depth - bits))
    }

    /// The last `bits` turns of each path of at least that length.
    pub(super) fn low(&self, bits: u32) -> Vec<u64> {
        self.pick(bits, |leaf, _| leaf)
    }

    fn pick(&self, bits: u32, number: impl Fn(u64, u32) -> u64) -> Vec<u64> {
        let mask = (1 << bits) - 1;
        let long = self.accesses.iter().filter(|&&(_, depth)| depth >= bits);
        long.map(|&(leaf, depth)| number(leaf, depth) & mask).collect()
    }

    /// The finest resolution that at least half of the accesses have.
    pub(super) fn resolution(&self) -> u32 {
        let half = self.accesses.len().div_ceil(2);
        self.finest(MAX_DEPTH, |_, count| count > 0 && count >= half)
    }

    /// The finest resolution, up to `max` bits, whose `2^(bits * dimensions)` bins would hold
    /// `per_bin` accesses each.
    pub(super) fn fold(&self, per_bin: usize, dimensions: u32, max: u32) -> u32 {
        self.finest(max, |bits, count| count >> (bits * dimensions).min(63) >= per_bin)
    }

    fn finest(&self, max: u32, enough: impl Fn(u32, usize) -> bool) -> u32 {
        let deep = |bits: u32| self.at_least[bits as usize];
        (0..=max.min(MAX_DEPTH)).rev().find(|&bits| enough(bits, deep(bits))).unwrap_or(0)
    }
}

/// The count of each of `2^bits` values in `numbers`.
pub(super) fn histogram(numbers: &[u64], bits: u32) -> Vec<u64> {
    let mut counts = vec![0; 1 << bits];
    for &number in numbers {
        counts[number as usize] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::TraceRequest;

    fn growing() -> Sample {
        let request =
            |depth, leaf| TraceRequest { leaves: vec![leaf], depth, ..TraceRequest::default() };
        let requests = vec![request(0, 0), request(1, 1), request(3, 6), request(3, 3)];
        Sample::of(&Trace { depth: 0, requests })
    }

    #[test]
    fn shallow_accesses_have_no_fine_bits() {
        let sample = growing();
        assert_eq!(sample.top(1), [1, 1, 0]);
        assert_eq!(sample.top(3), [6, 3]);
        assert_eq!(sample.low(1), [1, 0, 1]);
        assert_eq!(sample.top(0).len(), 4);
    }

    #[test]
    fn resolution_is_what_half_of_them_have() {
        assert_eq!(growing().resolution(), 3);
        assert_eq!(growing().fold(1, 1, 12), 1);
        assert_eq!(Sample::of(&Trace::default()).resolution(), 0);
    }
}
