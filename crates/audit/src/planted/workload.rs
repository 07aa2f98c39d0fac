//! The workloads of the simulated ORAM.

/// A small seeded generator of pseudo-random numbers (Steele, Lea and Flood 2014): the simulation
/// must have the same result everywhere. Not for secrets.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator that starts from `seed`.
    pub fn new(seed: u64) -> Self {
        SplitMix64(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, uniform up to a bias of `n / 2^64`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// A number in `0..1`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (-53f64).exp2()
    }

    /// True with this probability.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
}

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

    /// The first outputs of the reference implementation for seed 1234567.
    #[test]
    fn splitmix_is_the_published_one() {
        let mut rng = SplitMix64::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn zipf_asks_for_the_first_most() {
        let blocks = Workload::Zipf.blocks(100, 10_000, &mut SplitMix64::new(1));
        let count = |b| blocks.iter().filter(|&&x| x == b).count();
        assert!(count(0) > 3 * count(9) && count(99) > 0);
        assert!(blocks.iter().all(|&b| b < 100));
    }
}
