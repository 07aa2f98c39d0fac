//! The smallest leaks that this run could have found: the value of a pass.
//!
//! Each figure is the size at which nine of ten such leaks raise the alarm, at the test's share of
//! the false-alarm rate. It holds for the named sizes; a leak of another kind may be easier or
//! harder to find. No statistics find a label that is keyed with a public constant.

use super::e_value::likely_log_wealth;
use super::ranges::ranges;
use super::sample::Sample;
use super::uniformity::{MAX_BITS, PER_BIN, resolutions};
use crate::report::{Power, Report};
use crate::special::{binomial_upper, chi_square_upper, normal_quantile};

/// Nine of ten are found.
const FOUND: f64 = 0.9;
/// The sizes of leaks that the tests of this report could have found.
pub(super) fn of(sample: &Sample, report: &Report) -> Vec<Power> {
    let share = report.false_alarm_rate / report.findings.len().max(1) as f64;
    let bits = sample.resolution();
    let n = if bits == 0 { 0 } else { sample.top(bits).len() };
    if n < 64 {
        return Vec::new();
    }
    let finest = sample.fold(PER_BIN, 1, MAX_BITS);
    let looks = resolutions(finest).count().max(1) as f64;
    let mut all = vec![turn(n, share / looks)];
    all.push(favourite(n, finest, share / looks));
    all.push(one_distance(n, bits, share / n as f64));
    let ranges = ranges(n);
    let of_ranges = share / ranges.len().max(1) as f64;
    // Of those, the one that begins nearest to a tenth of the trace.
    let nearest = ranges.iter().min_by_key(|range| range.0.abs_diff(n / 10)).copied();
    all.extend(nearest.and_then(|range| in_range(n, bits, range, of_ranges)));
    all
}

/// A turn of the path that prefers one side.
fn turn(n: usize, share: f64) -> Power {
    let z = normal_quantile(share / 2.0) + normal_quantile(1.0 - FOUND);
    let smallest = (z / (2.0 * (n as f64).sqrt())).min(0.5);
    let (more, less) = (50.0 + 100.0 * smallest, 50.0 - 100.0 * smallest);
    let what = format!("a first turn that goes one way {more:.2} to {less:.2}");
    Power { name: "bias".into(), smallest, what }
}

/// One part of the tree that is shown more often than the others.
fn favourite(n: usize, bits: u32, share: f64) -> Power {
    let bins = 2f64.powi(bits as i32);
    let df = bins - 1.0;
    let noncentral = noncentrality(df, share);
    let smallest = (noncentral / (n as f64 * bins)).sqrt().min(1.0);
    let percent = 100.0 * smallest;
    let what = format!("{percent:.2} % of the accesses, all to one of {bins} parts of the tree");
    Power { name: "one place".into(), smallest, what }
}

/// The mean deviation from chance that a chi-square test finds.
fn noncentrality(df: f64, share: f64) -> f64 {
    let bisect = |mut low: f64, mut high: f64, above: &dyn Fn(f64) -> bool| {
        for _ in 0..80 {
            let middle = (low + high) / 2.0;
            if above(middle) { low = middle } else { high = middle }
        }
        high
    };
    let critical = bisect(0.0, 100.0 * df + 1000.0, &|x| chi_square_upper(x, df) > share / 2.0);
    // By the normal distribution with the mean and the variance of the noncentral one.
    let z = normal_quantile(1.0 - FOUND);
    let reached = |l: f64| df + l - z * (2.0 * (df + 2.0 * l)).sqrt();
    bisect(0.0, 200.0 * df + 2000.0, &|l| reached(l) < critical)
}

/// A path shown again after one particular number of accesses.
fn one_distance(n: usize, bits: u32, share: f64) -> Power {
    let chance = 2f64.powi(-(bits as i32));
    let (mut least, mut most) = ((n as f64 * chance) as u64, n as u64);
    while least < most {
        let middle = u64::midpoint(least, most);
        if binomial_upper(middle, n as u64, chance) > share / 2.0 {
            least = middle + 1;
        } else {
            most = middle;
        }
    }
    let z = normal_quantile(1.0 - FOUND);
    let mean = least as f64 + z * (least as f64).sqrt() + z * z;
    let smallest = (mean / n as f64 - chance).clamp(0.0, 1.0);
    let percent = 100.0 * smallest;
    let what = format!(
        "{percent:.3} % of the accesses, each to the path shown a certain number before it"
    );
    Power { name: "repeats at one distance".into(), smallest, what }
}

/// A path shown again after some number of accesses in a range.
fn in_range(n: usize, bits: u32, (from, to): (usize, usize), share: f64) -> Option<Power> {
    let tree = 2f64.powi(bits as i32);
    let chance = 1.0 - (-((to - from) as f64) / tree).exp();
    // Earlier accesses have less to repeat.
    let judged = n.saturating_sub(usize::midpoint(from, to)) as f64;
    if chance > 0.98 || judged < 64.0 {
        return None;
    }
    let z = normal_quantile(1.0 - FOUND);
    let wins = |more: f64| {
        let real = (chance + more * (1.0 - chance)).min(1.0);
        likely_log_wealth(judged, chance, real, z) > -share.ln()
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if wins(middle) { high = middle } else { low = middle }
    }
    let percent = 100.0 * high;
    let what = format!(
        "{percent:.2} % of the accesses, each to some path shown {from} to {} before it",
        to - 1
    );
    Some(Power { name: "repeats in a range".into(), smallest: high, what })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{judge_chance, ranges::judge as judge_ranges, repeats, uniformity};
    use crate::planted::SplitMix64;
    use crate::report::{AuditOptions, Finding};
    use crate::trace::{Trace, TraceRequest};

    const DEPTH: u32 = 14;
    const COUNT: usize = 20_000;
    const RUNS: u64 = 20;

    fn trace(seed: u64, leaf: impl Fn(&mut SplitMix64, &[u64]) -> u64) -> Trace {
        let (mut rng, mut leaves) = (SplitMix64::new(seed), Vec::new());
        while leaves.len() < COUNT {
            leaves.push(leaf(&mut rng, &leaves));
        }
        let request =
            |leaf| TraceRequest { leaves: vec![leaf], depth: DEPTH, ..TraceRequest::default() };
        Trace { depth: DEPTH, requests: leaves.into_iter().map(request).collect() }
    }

    /// The number of runs with this leak that its own test finds, at its share of the rate.
    fn found(
        report: &Report,
        leaf: impl Fn(&mut SplitMix64, &[u64]) -> u64,
        test: impl Fn(&Trace, &Sample) -> Finding,
    ) -> u64 {
        let share = report.false_alarm_rate / report.findings.len() as f64;
        let finds = |seed: &u64| {
            let trace = trace(*seed, &leaf);
            test(&trace, &Sample::of(&trace)).p_value < share
        };
        (1..=RUNS).filter(finds).count() as u64
    }

    /// Most leaks of the named size are found, and few of half that size.
    #[test]
    fn leaks_of_the_size_that_is_named_are_found() {
        let fresh = |rng: &mut SplitMix64| rng.below(1 << DEPTH);
        let honest = trace(99, |rng, _| fresh(rng));
        let report = judge_chance(&honest, &AuditOptions::default(), Vec::new());
        let size = |name: &str| report.power.iter().find(|p| p.name == name).expect(name).smallest;
        let biased = |part: f64| {
            move |rng: &mut SplitMix64, _: &[u64]| {
                let leaf = fresh(rng);
                if rng.chance(2.0 * part) { leaf >> 1 } else { leaf }
            }
        };
        let even = |_: &Trace, sample: &Sample| uniformity::judge(sample).swap_remove(0);
        let part = size("bias");
        let both = [part, part / 2.0].map(|part| found(&report, biased(part), even));
        assert!(both[0] >= 13 && both[1] <= 6, "bias of {part}: {both:?} of {RUNS}");
        let echo = |part: f64, from: usize, to: usize| {
            move |rng: &mut SplitMix64, leaves: &[u64]| {
                let back = from + rng.below((to - from) as u64) as usize;
                let (leaf, echoes) = (fresh(rng), rng.chance(part));
                leaves.len().checked_sub(back).filter(|_| echoes).map_or(leaf, |at| leaves[at])
            }
        };
        let lag = |trace: &Trace, sample: &Sample| {
            repeats::judge(trace, sample, &AuditOptions::default()).pop().expect("the last")
        };
        let part = size("repeats at one distance");
        let both = [part, part / 2.0].map(|part| found(&report, echo(part, 77, 78), lag));
        assert!(both[0] >= 13 && both[1] <= 6, "one distance, {part}: {both:?} of {RUNS}");
        let range = ranges(COUNT).into_iter().min_by_key(|r| r.0.abs_diff(COUNT / 10));
        let (from, to) = range.expect("there are some");
        let part = size("repeats in a range");
        let ranged = |_: &Trace, sample: &Sample| judge_ranges(sample);
        let both = [part, part / 2.0].map(|part| found(&report, echo(part, from, to), ranged));
        assert!(both[0] >= 13 && both[1] <= 6, "a range, {part}: {both:?} of {RUNS}");
    }
}
