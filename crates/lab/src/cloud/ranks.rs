//! The Mann-Whitney test, exact, with ties.

/// The probability that two samples from one distribution have ranks at least as far apart.
///
/// Every split of the pooled values is then equally likely. Their rank sums are counted exactly, so
/// no normal approximation has to be trusted far out in its tail.
pub fn p_value(a: &[f64], b: &[f64]) -> f64 {
    let mut pool: Vec<f64> = a.iter().chain(b).copied().collect();
    pool.sort_by(f64::total_cmp);
    // Twice the mean rank of equal values, which is a whole number.
    let rank = |value: f64| {
        let below = pool.partition_point(|&other| other < value);
        let upto = pool.partition_point(|&other| other <= value);
        below + upto + 1
    };
    let found: usize = a.iter().map(|&value| rank(value)).sum();
    let ranks: Vec<usize> = pool.iter().map(|&value| rank(value)).collect();
    let all: usize = ranks.iter().sum();
    // The number of choices of each size with each rank sum.
    let mut ways = vec![vec![0f64; all + 1]; a.len() + 1];
    ways[0][0] = 1.0;
    for &rank in &ranks {
        for chosen in (1..=a.len()).rev() {
            for sum in (rank..=all).rev() {
                ways[chosen][sum] += ways[chosen - 1][sum - rank];
            }
        }
    }
    let ways = &ways[a.len()];
    let middle = all as f64 * a.len() as f64 / pool.len().max(1) as f64;
    let far = (found as f64 - middle).abs() - 1e-9;
    let odd: f64 =
        (0..=all).filter(|&sum| (sum as f64 - middle).abs() >= far).map(|at| ways[at]).sum();
    odd / ways.iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_tails() {
        // 2 of the 20 ways to choose 3 of 6.
        assert!((p_value(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]) - 0.1).abs() < 1e-12);
        assert_eq!(p_value(&[0.0; 5], &[0.0; 5]), 1.0);
        let (low, high): (Vec<f64>, Vec<f64>) = ((0..16).map(f64::from).collect(), vec![99.0; 16]);
        assert!((p_value(&low, &high) * 601_080_390.0 - 2.0).abs() < 1e-6);
    }
}
