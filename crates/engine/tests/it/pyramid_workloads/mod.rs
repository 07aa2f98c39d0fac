//! The workloads that must look alike.

use oblivio_testkit::SplitMix64;

/// Which block the `n`-th ask is for.
pub type Workload = Box<dyn FnMut(u64) -> u64>;

/// Four of them, with their names, on this many blocks.
pub fn workloads(blocks: u64) -> [(&'static str, Workload); 4] {
    let mut uniform = SplitMix64::new(5);
    let mut skewed = SplitMix64::new(6);
    let zipf = move |_| {
        let log = skewed.below(u64::from(blocks.ilog2()) + 1);
        skewed.below(1 << log)
    };
    [
        ("uniform", Box::new(move |_| uniform.below(blocks))),
        ("scanning", Box::new(move |n| n % blocks)),
        ("skewed", Box::new(zipf)),
        ("64 blocks", Box::new(move |n| n * 17 % 64)),
    ]
}
