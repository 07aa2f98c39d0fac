//! Reproducible workloads: patterns built on the seeded generator.

use oblivio_testkit::SplitMix64;

/// Zipf's law over `0..items`, by rejection-inversion (Hörmann and Derflinger 1996), which needs no
/// table. Ranks are scattered over the items.
#[derive(Clone, Debug)]
pub struct Zipf {
    items: u64,
    exponent: f64,
    low: f64,
    high: f64,
    shift: f64,
}

impl Zipf {
    /// The law in which item k of `items` has probability proportional to `1 / k^exponent`.
    pub fn new(items: u64, exponent: f64) -> Self {
        let mut law = Self { items, exponent, low: 0.0, high: 0.0, shift: 0.0 };
        law.low = law.integral(1.5) - 1.0;
        law.high = law.integral(items as f64 + 0.5);
        law.shift = 2.0 - law.inverse(law.integral(2.5) - law.density(2.0));
        law
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    fn integral(&self, x: f64) -> f64 {
        if (self.exponent - 1.0).abs() < 1e-9 {
            return x.ln();
        }
        (x.powf(1.0 - self.exponent) - 1.0) / (1.0 - self.exponent)
    }

    fn inverse(&self, y: f64) -> f64 {
        if (self.exponent - 1.0).abs() < 1e-9 {
            return y.exp();
        }
        (1.0 + y * (1.0 - self.exponent)).max(0.0).powf(1.0 / (1.0 - self.exponent))
    }

    /// A rank, 0 the most likely.
    pub fn rank(&self, rng: &mut SplitMix64) -> u64 {
        loop {
            let u = self.high + rng.unit() * (self.low - self.high);
            let x = self.inverse(u);
            let k = x.round().clamp(1.0, self.items as f64);
            if k - x <= self.shift || u >= self.integral(k + 0.5) - self.density(k) {
                return k as u64 - 1;
            }
        }
    }

    /// An item: its rank scattered, so that popular items are not neighbours.
    pub fn item(&self, rng: &mut SplitMix64) -> u64 {
        let rank = self.rank(rng);
        // An odd factor permutes the numbers below a power of two, which `items` is in the lab.
        rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.items
    }
}

/// The five patterns of the stash experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The same block again and again.
    OneBlock,
    /// All blocks in order.
    Sequential,
    /// Uniformly random blocks.
    Uniform,
    /// Zipf's law with exponent 0.99.
    Zipf,
    /// Two distant blocks in alternation.
    TwoAlternating,
}

impl Pattern {
    /// All five.
    pub const ALL: [Pattern; 5] = [
        Pattern::OneBlock,
        Pattern::Sequential,
        Pattern::Uniform,
        Pattern::Zipf,
        Pattern::TwoAlternating,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::OneBlock => "one block",
            Pattern::Sequential => "sequential",
            Pattern::Uniform => "uniform",
            Pattern::Zipf => "zipf 0.99",
            Pattern::TwoAlternating => "two alternating",
        }
    }

    /// An endless stream of block numbers below `blocks`.
    pub fn ids(self, blocks: u64, seed: u64) -> impl FnMut() -> u64 {
        let mut rng = SplitMix64::new(seed);
        let zipf = Zipf::new(blocks, 0.99);
        let mut turn = 0;
        move || {
            turn += 1;
            match self {
                Pattern::OneBlock => blocks / 3,
                Pattern::Sequential => (turn - 1) % blocks,
                Pattern::Uniform => rng.below(blocks),
                Pattern::Zipf => zipf.item(&mut rng),
                Pattern::TwoAlternating => (turn % 2) * (blocks / 2),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_follows_its_law() {
        let (law, mut rng) = (Zipf::new(1024, 0.99), SplitMix64::new(1));
        let mut counts = vec![0u32; 1024];
        for _ in 0..200_000 {
            counts[law.rank(&mut rng) as usize] += 1;
        }
        let sum: f64 = (1..=1024).map(|k| f64::from(k).powf(-0.99)).sum();
        for rank in [0, 1, 9, 99] {
            let expected = 200_000.0 * f64::from(rank + 1).powf(-0.99) / sum;
            let found = f64::from(counts[rank as usize]);
            assert!((found - expected).abs() < 6.0 * expected.sqrt(), "{rank}: {found} {expected}");
        }
    }

    #[test]
    fn patterns_stay_in_range() {
        for pattern in Pattern::ALL {
            let mut ids = pattern.ids(64, 3);
            assert!((0..1000).all(|_| ids() < 64));
        }
    }
}
