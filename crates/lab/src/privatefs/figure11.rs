//! Figure 11: the rate of writing over what a volume already holds.

use super::checks::{Checks, PAGE};
use super::files::{Files, Way};
use super::model::{self, BLOCK, Crowd};
use super::net::Setting;
use super::paper::Paper;
use super::shared::{Askers, Shared};
use super::work::Side;
use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table};
use anyhow::Result;

/// Files of 1 MiB at once, as in the paper.
const FILES: usize = 10;
const BLOCKS: u64 = 256;
/// Clients of the paper's run.
const CLIENTS: usize = 10;
/// MB that are written once and once again in the paper's run.
const MB_OF_A_ROUND: f64 = (FILES as u64 * BLOCKS * BLOCK as u64) as f64 / 1e6;

/// KB/s of each round, with the MB that were written before it.
fn rounds(side: &mut dyn Side, count: u64, setting: Setting) -> Result<Vec<(f64, f64)>> {
    side.arrange(CLIENTS, 1, setting)?;
    let mut points = Vec::new();
    let mut since = 0.0;
    for round in 0..count {
        let first = Files::new(Way::Write, FILES, BLOCKS, 0).blocks() * round;
        let mut files = Files::new(Way::Write, FILES, BLOCKS, first);
        let asks = files.asks();
        let served = side.run(&mut files, asks)?;
        let now = served.last().map_or(since, |last| last.ended.seconds());
        points.push((MB_OF_A_ROUND * round as f64, 1e3 * MB_OF_A_ROUND / (now - since)));
        since = now;
    }
    Ok(points)
}

/// The closed form where the paper's cannot be run: a volume that has as many heights as what it
/// holds needs, in steps of a power of two.
fn modelled(setting: Setting) -> Result<Vec<(f64, f64)>> {
    let rate = |log_blocks: u32| {
        let config = model::paper_config(log_blocks)?;
        let asks = model::paper_rate(&config, Crowd::of(CLIENTS), setting);
        let held = f64::from(log_blocks).exp2() * BLOCK as f64 / 1e6;
        Ok((held, asks * BLOCK as f64 / 1e3))
    };
    (11..=17).map(rate).collect()
}

fn fall(points: &[(f64, f64)]) -> f64 {
    match points {
        [first, .., last] => 1.0 - last.1 / first.1,
        _ => 0.0,
    }
}

/// Runs it.
///
/// # Errors
/// Those of the engines and of the page.
pub fn run(quick: bool, write: bool) -> Result<()> {
    let (log_paper, paper_rounds, log_default, default_rounds) =
        if quick { (12, 1, 14, 2) } else { (14, 3, 17, 29) };
    let mut report = Report::on(PAGE, "figure11", "Figure 11: writing into a growing volume");
    report.text(&format!(
        "Empty volumes; {FILES} files of 1 MiB at once, again and again, by {CLIENTS} clients with no \
         round trip, in virtual time on a line of 125 MB/s and the disk of 53 MB/s. A model of \
         privatefs by its asks, as for Figure 10. The paper's construction is run to {:.0} MB in a \
         volume of 2^{log_paper} blocks and modelled beyond; the default is run to {:.0} MB in one of \
         2^{log_default}.",
        MB_OF_A_ROUND * paper_rounds as f64,
        MB_OF_A_ROUND * default_rounds as f64
    ));
    let setting = Setting::far(0).on_disk();
    let paper = model::paper_config(log_paper)?;
    let paper = rounds(&mut Paper::new(paper)?, paper_rounds, setting)?;
    let model = modelled(setting)?;
    let config = super::sizes::small_default(log_default);
    let mut default = Shared::new(config, Askers::Followers)?;
    let default = rounds(&mut default, default_rounds, setting)?;
    let mut table = Table::new(["MB written", "paper, KB/s", "paper, modelled", "default, KB/s"]);
    let at = |points: &[(f64, f64)], mb: f64| {
        let near = points.iter().find(|point| (point.0 - mb).abs() < MB_OF_A_ROUND / 2.0);
        near.map_or_else(String::new, |point| format!("{:.0}", point.1))
    };
    for mb in [0.0, 10.5, 17.0, 33.5, 52.0, 67.0, 105.0, 134.0, 200.0, 268.0, 305.0] {
        table.row([format!("{mb:.0}"), at(&paper, mb), at(&model, mb), at(&default, mb)]);
    }
    report.table(&table);
    let rates = [10.0, 100.0, 1000.0, 10_000.0].map(|it| (it, it.to_string()));
    let mut chart = Chart::new(
        "Figure 11: writing over what was written, 10 clients, no round trip",
        Axis::linear("MB written", 300.0),
        Axis::log("KB/s", rates),
    );
    chart.add("paper", Look::Marked, paper.iter().copied());
    chart.add("paper, modelled", Look::Dashed, model.iter().copied());
    chart.add("default", Look::Line, default.iter().copied());
    report.picture("privatefs-figure11.svg", &chart);
    let mut checks = Checks::default();
    let slow = fall(&paper).max(fall(&model));
    checks.add(
        "paper: a slow fall (its axis: 50 to 15 KB/s)",
        format!(
            "{:.0} % in the run, {:.0} % in the model",
            100.0 * fall(&paper),
            100.0 * fall(&model)
        ),
        slow > 0.2,
    );
    let of_empty = fall(&default);
    checks.add(
        "default: at most 20 % from the first files in an empty volume on",
        format!("{:.0} %", 100.0 * of_empty),
        of_empty <= 0.2,
    );
    let later = fall(default.get(default.len() / 3..).unwrap_or(&[]));
    checks.add(
        "default: at most 20 % over the last two thirds",
        format!("{:.0} %", 100.0 * later),
        later <= 0.2,
    );
    checks.show(&mut report);
    report.finish(write)
}
