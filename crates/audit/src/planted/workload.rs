//! The workloads of the simulated ORAM.

use oblivio_splitmix::SplitMix64;

/// The blocks accessed, and their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// One block over and over.
    OneBlock,
    /// All blocks in turn.
    Sequential,
    /// Any block, uniformly.
    Uniform,
    /// Any block, the i-th with probability proportional to 1/i.
    Zipf,
    /// Two blocks in turn.
    Alternating,
}

impl Workload {
    /// All of them.
    pub const ALL: [Workload; 5] = [
        Workload::OneBlock,
        Workload::Sequential,
        Workload::Uniform,
        Workload::Zipf,
        Workload::Alternating,
    ];

    /// The workload's name.
    pub fn name(self) -> &'static str {
        match self {
            Workload::OneBlock => "one block",
            Workload::Sequential => "all blocks in turn",
            Workload::Uniform => "any block",
            Workload::Zipf => "few blocks often, most seldom",
            Workload::Alternating => "two blocks in turn",
        }
    }

    /// The accessed blocks: `accesses` numbers below `blocks`.
    pub fn blocks(self, blocks: u64, accesses: usize, rng: &mut SplitMix64) -> Vec<u64> {
        let zipf = self == Workload::Zipf;
        let weights = cumulated_weights(if zipf { blocks } else { 0 });
        let mut block = |t: u64| match self {
            Workload::OneBlock => 0,
            Workload::Sequential => t % blocks,
            Workload::Uniform => rng.below(blocks),
            Workload::Zipf => {
                let at = rng.unit() * weights[weights.len() - 1];
                weights.partition_point(|&w| w <= at) as u64
            }
            Workload::Alternating => t % 2,
        };
        (0..accesses as u64).map(&mut block).collect()
    }
}

/// 1, 1 + 1/2, 1 + 1/2 + 1/3, ...
fn cumulated_weights(blocks: u64) -> Vec<f64> {
    let sum = |total: &mut f64, i: u64| {
        *total += 1.0 / i as f64;
        Some(*total)
    };
    (1..=blocks).scan(0.0, sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_asks_for_the_first_most() {
        let blocks = Workload::Zipf.blocks(100, 10_000, &mut SplitMix64::new(1));
        let count = |b| blocks.iter().filter(|&&x| x == b).count();
        assert!(count(0) > 3 * count(9) && count(99) > 0);
        assert!(blocks.iter().all(|&b| b < 100));
    }
}
