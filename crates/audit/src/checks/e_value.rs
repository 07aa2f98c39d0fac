//! A bet against chance at fair odds, access by access.

use crate::report::Finding;
use crate::special::ln_sum_exp;

/// The factors by which an event may be more likely than it should. The bet is spread evenly.
const BETS: [f64; 14] =
    [0.05, 0.2, 0.5, 0.8, 0.9, 0.96, 0.99, 1.01, 1.04, 1.1, 1.3, 2.0, 8.0, 64.0];

/// A lower bound, at `deviations` standard deviations, on the logarithm of the wealth after `seen`
/// bets. The odds assume probability `chance`; the true one is `real`.
pub(super) fn likely_log_wealth(seen: f64, chance: f64, real: f64, deviations: f64) -> f64 {
    let of = |factor: &f64| {
        let price = 1.0 + chance * (factor - 1.0);
        let mean = seen * (real * factor.ln() - price.ln());
        mean - deviations * (seen * real * (1.0 - real)).sqrt() * factor.ln().abs()
    };
    BETS.iter().map(of).fold(f64::NEG_INFINITY, f64::max) - (BETS.len() as f64).ln()
}

/// A bet on an event whose probability is known, whatever came before.
///
/// A leaf repeats one of the `d` distinct leaves before it with probability exactly `d / leaves`,
/// whatever came before. But `d` itself is random, so the sum is no binomial. Betting at fair odds
/// makes a martingale of mean 1 out of it. By Markov's inequality, one over the final wealth is a
/// p-value, exact at any size and for any dependence.
pub struct EValue {
    log_wealth: [f64; BETS.len()],
    /// Events that came.
    pub hits: u64,
    /// Events that were expected.
    pub expected: f64,
    /// Accesses with equally many leaves before them: their probability, number, and hits.
    run: (f64, u64, u64),
}

impl EValue {
    /// Nothing was seen yet.
    #[allow(clippy::new_without_default, reason = "a bet begins with what is seen")]
    pub fn new() -> EValue {
        EValue { log_wealth: [0.0; BETS.len()], hits: 0, expected: 0.0, run: (0.0, 0, 0) }
    }

    /// The event came, or did not, at a chance of this.
    pub fn see(&mut self, hit: bool, chance: f64) {
        self.hits += u64::from(hit);
        self.expected += chance;
        if self.run.0 != chance {
            self.pay();
            self.run = (chance, 0, 0);
        }
        self.run.1 += 1;
        self.run.2 += u64::from(hit);
    }

    /// Settles the run. The odds change by the factor, and both outcomes are paid fairly.
    fn pay(&mut self) {
        let (chance, seen, hits) = self.run;
        for (wealth, factor) in self.log_wealth.iter_mut().zip(BETS) {
            let price = 1.0 + chance * (factor - 1.0);
            if seen > 0 {
                *wealth += hits as f64 * factor.ln() - seen as f64 * price.ln();
            }
        }
        self.run = (chance, 0, 0);
    }

    /// One over the wealth.
    pub fn p_value(&mut self) -> f64 {
        self.pay();
        let mean = ln_sum_exp(&self.log_wealth) - (BETS.len() as f64).ln();
        (-mean).exp().min(1.0)
    }

    pub(super) fn finding(&mut self, name: &str, what: &str) -> Finding {
        let explanation = format!("{} {what}, {:.1} expected", self.hits, self.expected);
        Finding::new(name, self.hits as f64, self.p_value(), explanation)
    }
}
