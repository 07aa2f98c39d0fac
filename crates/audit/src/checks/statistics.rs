//! Statistics that several tests share.

use crate::report::Finding;
use crate::special::{chi_square_lower, chi_square_upper};

/// One of several looks at the same question.
pub struct Statistic {
    /// Where it looks.
    pub what: String,
    /// What it found there.
    pub statistic: f64,
    /// How likely that is by chance.
    pub p_value: f64,
}

/// The finding of this name, from the oddest of several looks. Its p-value is multiplied by their
/// number.
pub fn oddest(name: &str, looks: Vec<Statistic>, why_none: &str) -> Finding {
    let count = looks.len();
    let Some(odd) = looks.into_iter().min_by(|a, b| a.p_value.total_cmp(&b.p_value)) else {
        return Finding::unjudged(name, why_none);
    };
    let explanation = format!("oddest of {count}: {}", odd.what);
    Finding::new(name, odd.statistic, odd.p_value * count as f64, explanation)
}

/// The p-value of a chi-square statistic that is too uneven or too even.
///
/// With few degrees of freedom an exactly even count is not surprising, but the continuous
/// distribution would flag it: there only unevenness counts.
pub(super) fn two_sided(statistic: f64, df: f64) -> f64 {
    let upper = chi_square_upper(statistic, df);
    if df < 15.0 { upper } else { 2.0 * upper.min(chi_square_lower(statistic, df)) }
}

/// Pearson's statistic and its degrees of freedom for the independence of rows and columns.
///
/// Empty rows and columns carry no information and are left out.
pub fn contingency(rows: &[Vec<u64>]) -> (f64, f64) {
    let columns = rows.first().map_or(0, Vec::len);
    let row_sums: Vec<u64> = rows.iter().map(|r| r.iter().sum()).collect();
    let column_sums: Vec<u64> = (0..columns).map(|c| rows.iter().map(|r| r[c]).sum()).collect();
    let total = row_sums.iter().sum::<u64>().max(1) as f64;
    let mut statistic = 0.0;
    for (row, &row_sum) in rows.iter().zip(&row_sums) {
        for (&cell, &column_sum) in row.iter().zip(&column_sums) {
            let expected = row_sum as f64 * column_sum as f64 / total;
            if expected > 0.0 {
                statistic += (cell as f64 - expected).powi(2) / expected;
            }
        }
    }
    let used = |sums: &[u64]| sums.iter().filter(|&&s| s > 0).count().saturating_sub(1) as f64;
    (statistic, used(&row_sums) * used(&column_sums))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contingency_of_a_textbook_table() {
        let (statistic, df) = contingency(&[vec![10, 20, 0], vec![30, 20, 0]]);
        assert!((statistic - 16.0 / 3.0).abs() < 1e-12, "{statistic}");
        assert_eq!(df, 1.0);
    }

    #[test]
    fn looking_often_costs() {
        let look = |p| Statistic { what: String::new(), statistic: 0.0, p_value: p };
        assert_eq!(oddest("x", vec![look(0.5), look(0.01)], "").p_value, 0.02);
        assert!(!oddest("x", Vec::new(), "nothing").judged);
    }
}
