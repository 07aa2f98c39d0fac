//! What a figure must show, and whether it does.

use crate::report::{Report, Table};

/// The page of all figures.
pub const PAGE: &str = "privatefs-paper.md";

/// Claims about a figure's numbers.
#[derive(Debug, Default)]
pub struct Checks(Vec<(String, String, bool)>);

impl Checks {
    /// A claim, what was found, and whether it holds.
    pub fn add(&mut self, claim: &str, found: impl Into<String>, holds: bool) {
        self.0.push((claim.into(), found.into(), holds));
    }

    /// Whether all hold.
    #[cfg(test)]
    pub fn all_hold(&self) -> bool {
        self.0.iter().all(|(.., holds)| *holds)
    }

    /// As a table.
    pub fn show(&self, report: &mut Report) {
        let mut table = Table::new(["it must show", "found", "holds"]);
        for (claim, found, holds) in &self.0 {
            table.row([claim.as_str(), found, if *holds { "PASS" } else { "FAIL" }]);
        }
        report.table(&table);
    }
}

/// How well a straight line fits: R squared.
pub fn straightness(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|point| of(point.0 - x, point.1 - y)).sum()
    };
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    xy * xy / (xx * yy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_straight_and_a_parabola_is_not() {
        let line: Vec<_> = (0..10).map(|x| (f64::from(x), 3.0 - f64::from(x))).collect();
        assert!(straightness(&line) > 0.999_999);
        let parabola: Vec<_> = (-5..=5).map(|x| (f64::from(x), f64::from(x * x))).collect();
        assert!(straightness(&parabola) < 0.01);
    }
}
