//! Figure 9: the progress of a level that is made, over time.

use super::checks::{Checks, PAGE, straightness};
use super::model::Crowd;
use super::net::Setting;
use super::paper::Paper;
use super::sizes::full_paper;
use super::work::{Side, Uniform};
use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table};
use anyhow::{Context, Result};

/// Points of a curve.
const POINTS: usize = 100;

/// Points at regular distances, and the last.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(POINTS).max(1);
    points.iter().copied().step_by(step).chain(points.last().copied()).collect()
}

/// The least lead of the slowest construction over its queries, sampled at regular distances; and
/// the most. In shares of the whole.
fn leads(side: &mut Paper, blocks: u64, queries: usize) -> Result<(f64, f64)> {
    let crowd = Crowd::of(4);
    side.arrange(crowd.clients, crowd.requests, Setting::far(10))?;
    let (mut work, mut least, mut most) = (Uniform::on(blocks, 9), 1f64, 0f64);
    for _ in 0..queries {
        side.run(&mut work, 1)?;
        // The queries that began: each of them waited for its share.
        let (asked, done) = side.progress().context("no level is made")?;
        let each = 1.0 / blocks as f64;
        least = least.min(done - (asked - each));
        most = most.max(done - asked);
    }
    Ok((least, most))
}

fn checks(near: &[(f64, f64)], far: &[(f64, f64)], leads: (f64, f64)) -> Checks {
    let mut checks = Checks::default();
    for (name, curve) in [("near, where bytes bind", near), ("at 50 ms", far)] {
        let found = straightness(curve);
        let claim = format!("progress is straight {name}: R^2 at least 0.99");
        checks.add(&claim, format!("{found:.4}"), found >= 0.99);
    }
    checks.add(
        "beside queries, the enforced minimum is never crossed",
        format!("{:.2} % ahead at least, {:.2} % at most", 100.0 * leads.0, 100.0 * leads.1),
        leads.0 >= 0.0,
    );
    checks
}

/// Runs it.
///
/// # Errors
/// Those of the engine and of the page.
pub fn run(quick: bool, write: bool) -> Result<()> {
    let (log_blocks, queries) = if quick { (8, 100) } else { (11, 1000) };
    let mut report = Report::on(PAGE, "figure9", "Figure 9: progress of a level");
    report.text(&format!(
        "The bottom of a volume of 2^{log_blocks} blocks is made once more, alone: no queries, no \
         throttle, one request at a time, in virtual time on a line of 125 MB/s and the disk of 53 \
         MB/s. Progress is the share of its bytes that were moved, which is what the throttle goes \
         by. Then {queries} queries of 4 clients run beside it, under the throttle. The default has \
         no metered constructions: its merges are short, and their turns follow from the number of \
         asks."
    ));
    let mut side = full_paper(log_blocks, 16)?;
    let near = side.alone(Setting::far(0).on_disk())?;
    let far = side.alone(Setting::far(50).on_disk())?;
    let leads = leads(&mut full_paper(log_blocks.min(10), 16)?, 1 << log_blocks.min(10), queries)?;
    let mut table = Table::new(["share", "seconds, 0 ms", "seconds, 50 ms"]);
    for part in 1..=10 {
        let share = f64::from(part) / 10.0;
        let when = |curve: &[(f64, f64)]| {
            let at = curve.iter().find(|it| it.1 >= share - 1e-9).map_or(f64::NAN, |it| it.0);
            format!("{at:.1}")
        };
        table.row([format!("{share:.1}"), when(&near), when(&far)]);
    }
    report.table(&table);
    let end = far.last().map_or(1.0, |it| it.0);
    let mut chart = Chart::new(
        "Figure 9: progress of one level",
        Axis::linear("seconds", end),
        Axis::linear("share of its bytes", 1.0),
    );
    chart.add("0 ms", Look::Line, thinned(&near));
    chart.add("50 ms", Look::Line, thinned(&far));
    report.picture("privatefs-figure9.svg", &chart);
    checks(&near, &far, leads).show(&mut report);
    report.finish(write)
}
