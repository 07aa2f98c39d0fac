//! The special functions behind the p-values.
//!
//! Tails are computed as tails, never as one minus the rest, so they stay accurate far below the
//! false-alarm rates in use.

/// The logarithm of the gamma function, for `x > 0` (Lanczos, g = 7, nine terms).
pub fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let t = x + 7.5;
    let sum = (1..9).fold(COEFFICIENTS[0], |s, i| s + COEFFICIENTS[i] / (x + i as f64));
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// `x^a e^-x / Gamma(a)`, which both forms of the incomplete gamma function share.
fn gamma_front(a: f64, x: f64) -> f64 {
    (a * x.ln() - x - ln_gamma(a)).exp()
}

/// The lower incomplete gamma function by its power series; good for `x < a + 1`.
fn gamma_series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
    while term > sum * 1e-17 {
        n += 1.0;
        term *= x / n;
        sum += term;
    }
    sum * gamma_front(a, x)
}

/// The upper incomplete gamma function by Lentz's continued fraction; good for `x >= a + 1`.
fn gamma_fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1.0 / TINY, 1.0 / b);
    let mut h = d;
    for i in 1..100_000 {
        let an = -f64::from(i) * (f64::from(i) - a);
        b += 2.0;
        d = 1.0 / nonzero(an * d + b, TINY);
        c = nonzero(b + an / c, TINY);
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    h * gamma_front(a, x)
}

fn nonzero(x: f64, tiny: f64) -> f64 {
    if x.abs() < tiny { tiny } else { x }
}

/// The regularised lower incomplete gamma function P(a, x).
pub fn gamma_lower(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        0.0
    } else if x < a + 1.0 {
        gamma_series(a, x)
    } else {
        1.0 - gamma_fraction(a, x)
    }
}

/// The regularised upper incomplete gamma function Q(a, x).
pub fn gamma_upper(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        1.0
    } else if x < a + 1.0 {
        1.0 - gamma_series(a, x)
    } else {
        gamma_fraction(a, x)
    }
}

/// The probability that chi-square with `df` degrees of freedom is at least `x`.
pub fn chi_square_upper(x: f64, df: f64) -> f64 {
    gamma_upper(df / 2.0, x / 2.0)
}

/// The probability that chi-square with `df` degrees of freedom is at most `x`.
pub fn chi_square_lower(x: f64, df: f64) -> f64 {
    gamma_lower(df / 2.0, x / 2.0)
}

/// The probability that a standard normal variable is at least `z`.
pub fn normal_upper(z: f64) -> f64 {
    let tail = 0.5 * gamma_upper(0.5, z * z / 2.0);
    if z >= 0.0 { tail } else { 1.0 - tail }
}

/// The logarithm of the probability of exactly `k` hits in `n` trials at `p` each.
fn ln_binomial(k: u64, n: u64, p: f64) -> f64 {
    let (kf, nf) = (k as f64, n as f64);
    let choose = ln_gamma(nf + 1.0) - ln_gamma(kf + 1.0) - ln_gamma(nf - kf + 1.0);
    choose + kf * p.ln() + (nf - kf) * (-p).ln_1p()
}

/// Sums the binomial probabilities from `k` away from the mean, term by term.
fn binomial_run(mut k: u64, n: u64, p: f64, up: bool) -> f64 {
    let odds = p / (1.0 - p);
    let mut term = ln_binomial(k, n, p).exp();
    let mut sum = term;
    while term > sum * 1e-17 && k != if up { n } else { 0 } {
        if up {
            term *= odds * (n - k) as f64 / (k + 1) as f64;
            k += 1;
        } else {
            term *= k as f64 / ((n - k + 1) as f64 * odds);
            k -= 1;
        }
        sum += term;
    }
    sum.min(1.0)
}

/// The exact probability of at least `k` hits in `n` trials at `p` each.
pub fn binomial_upper(k: u64, n: u64, p: f64) -> f64 {
    if k == 0 || p >= 1.0 {
        f64::from(u8::from(k <= n))
    } else if p <= 0.0 || k > n {
        0.0
    } else if (k as f64) > n as f64 * p {
        binomial_run(k, n, p, true)
    } else {
        1.0 - binomial_run(k - 1, n, p, false)
    }
}

/// The exact probability of at most `k` hits in `n` trials at `p` each.
pub fn binomial_lower(k: u64, n: u64, p: f64) -> f64 {
    if k >= n || p <= 0.0 {
        1.0
    } else if p >= 1.0 {
        0.0
    } else if (k as f64) < n as f64 * p {
        binomial_run(k, n, p, false)
    } else {
        1.0 - binomial_run(k + 1, n, p, true)
    }
}

/// The logarithm of the sum of the exponentials.
pub fn ln_sum_exp(logs: &[f64]) -> f64 {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + logs.iter().map(|log| (log - most).exp()).sum::<f64>().ln()
}

/// The number of standard deviations above its mean that a normal variable exceeds with this
/// probability, at most a half.
pub fn normal_quantile(upper: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..80 {
        let middle: f64 = (low + high) / 2.0;
        if chi_square_upper(middle * middle, 1.0) / 2.0 > upper {
            low = middle
        } else {
            high = middle
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64) {
        let error = (got / want - 1.0).abs();
        assert!(error < 1e-9, "got {got:e}, want {want:e}, relative error {error:e}");
    }

    #[test]
    fn gamma_of_known_numbers() {
        close(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln());
        close(ln_gamma(11.0), 3_628_800f64.ln());
        close(ln_gamma(171.0), 706.573_062_245_787_4);
    }

    /// For even degrees of freedom the tail is a finite sum, which gave these numbers at 60 digits.
    #[test]
    fn chi_square_tails() {
        close(chi_square_upper(3.841_458_820_694_124, 1.0), 0.05);
        close(chi_square_upper(18.307_038_053_275_146, 10.0), 0.05);
        close(chi_square_upper(2.0 * 1e12f64.ln(), 2.0), 1e-12);
        close(chi_square_upper(120.0, 40.0), 6.351918340378976e-10);
        close(chi_square_upper(700.0, 510.0), 4.1913457898915875e-8);
        close(chi_square_upper(4800.0, 4096.0), 7.928264752204535e-14);
        close(chi_square_lower(3500.0, 4096.0), 2.1484721058167264e-12);
        close(chi_square_lower(5.0, 40.0), 3.480448752116278e-12);
    }

    #[test]
    fn normal_tails() {
        close(normal_upper(0.0), 0.5);
        close(normal_upper(-1.959_963_984_540_054), 0.975);
        close(normal_upper(5.0), 2.866_515_718_791_939e-7);
        close(normal_upper(7.0), 1.279_812_543_885_835e-12);
    }

    /// Against sums of exact fractions.
    #[test]
    fn binomial_tails() {
        let p = 1.0 / 64.0;
        close(binomial_upper(60, 1000, p), 4.136286378327128e-18);
        close(binomial_upper(16, 1000, p), 0.4961593082176589);
        close(binomial_lower(15, 1000, p), 1.0 - 0.4961593082176589);
        close(binomial_lower(0, 1000, p), 1.4473563461613852e-7);
        close(binomial_upper(30, 50, 0.25), 1.6422855513941814e-7);
        close(binomial_lower(3, 100, 0.25), 2.1081652676109378e-9);
    }

    #[test]
    fn quantiles_and_sums_of_exponentials() {
        close(normal_quantile(0.1), 1.2815515655446004);
        close(normal_quantile(1e-9), 5.997807014790017);
        close(ln_sum_exp(&[-1000.0, -1000.0]), -1000.0 + 2f64.ln());
    }

    #[test]
    fn edges() {
        assert_eq!(binomial_upper(0, 0, 0.5), 1.0);
        assert_eq!(binomial_upper(1, 0, 0.5), 0.0);
        assert_eq!(binomial_lower(0, 0, 0.5), 1.0);
        assert_eq!(binomial_upper(5, 5, 1.0), 1.0);
        assert_eq!(binomial_lower(4, 5, 1.0), 0.0);
        assert_eq!(chi_square_upper(0.0, 7.0), 1.0);
        assert_eq!(chi_square_lower(0.0, 7.0), 0.0);
    }
}
