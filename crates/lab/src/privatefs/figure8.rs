//! Figure 8: how long each of 1,000 queries of one client takes.

use super::checks::{Checks, PAGE};
use super::model::Crowd;
use super::net::Setting;
use super::shared::Askers;
use super::sizes::{full_default, full_paper, measure};
use super::work::Served;
use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table, median};
use anyhow::Result;

/// Queries of a period.
const LOG: usize = 16;

/// Milliseconds of each query, from the answer before it to its own: a client that waits for
/// nothing else.
fn waits(served: &[Served]) -> Vec<f64> {
    served.iter().map(|it| 1e3 * it.seconds()).collect()
}

/// The largest share of values within 10 % of one of them: the main band.
fn main_band(waits: &[f64]) -> f64 {
    let middle = median(waits);
    let within = waits.iter().filter(|&&it| (it / middle - 1.0).abs() <= 0.1).count();
    within as f64 / waits.len() as f64
}

/// The shortest wait for the end of a period, over the longest of at least nine tenths of others.
fn band(waits: &[f64]) -> (f64, f64) {
    let mut sorted = waits.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ends = waits.len() / LOG;
    let (others, late) = sorted.split_at(sorted.len() - ends);
    (median(late), median(others))
}

fn checks(paper: &[f64], default: &[f64]) -> Checks {
    let mut checks = Checks::default();
    let (late, others) = band(paper);
    checks.add(
        "paper: a band of its own where the top level is made, a query in 16",
        format!("{late:.0} ms beside {others:.0} ms"),
        late > 1.2 * others,
    );
    let share = main_band(paper);
    checks.add(
        "paper: all others in one band",
        format!("{:.1} % within a tenth of the median", 100.0 * share),
        share >= 0.9,
    );
    checks.add(
        "paper: the bands are gone with rotating_log",
        "not built, see period_end.rs",
        false,
    );
    let share = main_band(default);
    checks.add(
        "default: one band",
        format!("{:.1} % within a tenth of the median", 100.0 * share),
        share >= 0.99,
    );
    checks
}

/// Runs it.
///
/// # Errors
/// Those of the engines and of the page.
pub fn run(quick: bool, write: bool) -> Result<()> {
    let (log_paper, log_default, queries) = if quick { (8, 10, 160) } else { (10, 14, 1000) };
    let mut report = Report::on(PAGE, "figure8", "Figure 8: each query's time");
    report.text(&format!(
        "One client, 50 ms away, {queries} queries one after the other, on full volumes: \
         2^{log_paper} blocks with 16 queries a period in the paper's construction, 2^{log_default} in \
         the default. No disk. A query's time begins with the answer before it. Virtual time."
    ));
    let (crowd, setting) = (Crowd::of(1), Setting::far(50));
    let paper =
        measure(&mut full_paper(log_paper, LOG as u64)?, log_paper, crowd, setting, queries)?;
    let mut default = full_default(log_default, Askers::Followers)?;
    let default = measure(&mut default, log_default, crowd, setting, queries)?;
    let sides = [("paper", waits(&paper.served)), ("default", waits(&default.served))];
    let mut table = Table::new(["ms", "least", "median", "90 %", "95 %", "99 %", "most"]);
    for (name, waits) in &sides {
        let mut sorted = waits.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |part: usize| format!("{:.0}", sorted[(sorted.len() - 1) * part / 100]);
        let cells = [0, 50, 90, 95, 99, 100].map(at);
        table.row([(*name).to_owned()].into_iter().chain(cells));
    }
    report.table(&table);
    let all = sides.iter().flat_map(|side| &side.1);
    let mut chart = Chart::new(
        "Figure 8: each query's time, one client, 50 ms",
        Axis::linear("query", queries as f64),
        Axis::linear("ms", all.fold(0.0, |most, &it| it.max(most))),
    );
    for (name, waits) in &sides {
        let points = waits.iter().enumerate().map(|(at, &it)| (at as f64, it));
        chart.add(name, Look::Line, points);
    }
    report.picture("privatefs-figure8.svg", &chart);
    checks(&sides[0].1, &sides[1].1).show(&mut report);
    report.finish(write)
}
