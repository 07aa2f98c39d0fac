//! Figure 10: a file system's rate over the asks that it has under way, near and far.

use super::checks::{Checks, PAGE};
use super::files::{Files, Way};
use super::model::BLOCK;
use super::net::Setting;
use super::shared::Askers;
use super::sizes::{full_default, full_paper};
use super::work::Side;
use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table};
use anyhow::Result;

/// Files, as in the paper; and blocks of each: the paper's have 128.
const FILES: usize = 10;
const BLOCKS: u64 = 32;
const TRIPS_MS: [u64; 4] = [0, 40, 80, 160];
/// The paper's best rate at any latency, in KB/s.
const PAPERS_BEST: f64 = 140.0;

/// One point: KB/s of writing all files, and of reading them.
struct Point {
    side: &'static str,
    rtt: u64,
    requests: usize,
    write: f64,
    read: f64,
}

/// KB/s of one way. All asks are one mount's, so they are one client's.
fn speed(side: &mut dyn Side, way: Way, setting: Setting, requests: usize) -> Result<f64> {
    side.arrange(1, requests, setting)?;
    let mut files = Files::new(way, FILES, BLOCKS, 0);
    let asks = files.asks();
    let served = side.run(&mut files, asks)?;
    let seconds = served.last().map_or(0.0, |last| last.ended.seconds());
    Ok((FILES as u64 * BLOCKS * BLOCK as u64) as f64 / 1e3 / seconds)
}

fn measure(
    name: &'static str,
    side: &mut dyn Side,
    requests: usize,
    points: &mut Vec<Point>,
) -> Result<()> {
    for rtt in TRIPS_MS {
        let setting = Setting::far(rtt);
        let write = speed(side, Way::Write, setting, requests)?;
        let read = speed(side, Way::Read, setting, requests)?;
        points.push(Point { side: name, rtt, requests, write, read });
    }
    Ok(())
}

fn all(quick: bool) -> Result<Vec<Point>> {
    let requests: &[usize] = if quick { &[1, 16] } else { &[1, 16, 40, 80] };
    let (log_paper, log_default) = if quick { (9, 10) } else { (10, 14) };
    let mut points = Vec::new();
    let mut paper = None;
    for &requests in requests {
        // A period has at least as many queries as may be under way, and 16.
        let log = (requests as u64).next_power_of_two().max(16);
        let (of, mut side) = match paper.take() {
            Some((of, side)) if of == log => (of, side),
            _ => (log, full_paper(log_paper, log)?),
        };
        measure("paper", &mut side, requests, &mut points)?;
        paper = Some((of, side));
    }
    for (name, askers) in
        [("default, follower", Askers::Followers), ("default, scribe", Askers::Scribe)]
    {
        let mut side = full_default(log_default, askers)?;
        for &requests in requests {
            measure(name, &mut side, requests, &mut points)?;
        }
    }
    Ok(points)
}

fn checks(points: &[Point]) -> Checks {
    let mut checks = Checks::default();
    let of =
        |side: &'static str, rtt| points.iter().filter(move |it| it.side == side && it.rtt == rtt);
    for side in ["paper", "default, follower", "default, scribe"] {
        let read: Vec<f64> = of(side, 160).map(|it| it.read).collect();
        let gain = read.last().unwrap_or(&0.0) / read.first().unwrap_or(&1.0);
        let grows = read.is_sorted();
        let claim = format!("{side}: reads at 160 ms grow with the requests");
        checks.add(&claim, format!("{gain:.1} times"), grows && gain > 2.0);
    }
    for side in ["default, follower", "default, scribe"] {
        for rtt in TRIPS_MS {
            let best = of(side, rtt).map(|it| it.read.max(it.write)).fold(0.0, f64::max);
            let claim = format!("{side}: 10 times the paper's best (1,400 KB/s), {rtt} ms");
            checks.add(&claim, format!("{best:.0} KB/s"), best >= 10.0 * PAPERS_BEST);
        }
    }
    for side in ["default, follower", "default, scribe"] {
        let read = of(side, 80).find(|it| it.requests == 16).map_or(0.0, |it| it.read);
        let claim = format!("{side}: reads 1,400 KB/s at 80 ms with 16 asks of 4 KiB");
        checks.add(&claim, format!("{read:.0} KB/s"), read >= 1400.0);
    }
    checks
}

/// Runs it.
///
/// # Errors
/// Those of the engines and of the page.
pub fn run(quick: bool, write: bool) -> Result<()> {
    let mut report = Report::on(PAGE, "figure10", "Figure 10: a file system, near and far");
    report.text(&format!(
        "A model of privatefs, not the file system: {FILES} files of {} KiB at once are made, \
         written and closed, then opened and read, as the asks that the design's table says, at most \
         so many under way. Both constructions answer them in virtual time on a line of 125 MB/s, \
         without a disk, on full volumes. One mount asks: as a follower of another client's scribe, \
         or as the scribe. The paper's files have 512 KiB, and its best rate is 140 KB/s.",
        BLOCKS * 4
    ));
    let points = all(quick)?;
    let head = ["side", "asks at once"].map(String::from).into_iter();
    let rtts = TRIPS_MS.map(|rtt| format!("{rtt} ms, write / read"));
    let mut table = Table::new(head.chain(rtts));
    for part in points.chunks(TRIPS_MS.len()) {
        let cells = part.iter().map(|it| format!("{:.0} / {:.0}", it.write, it.read));
        let head = [part[0].side.to_owned(), part[0].requests.to_string()];
        table.row(head.into_iter().chain(cells));
    }
    report.text("KB/s:");
    report.table(&table);
    let rates = [1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0].map(|it| (it, it.to_string()));
    let mut chart = Chart::new(
        "Figure 10: reading files over asks at once",
        Axis::linear("asks at once", 80.0),
        Axis::log("KB/s", rates),
    );
    for (side, look) in [
        ("paper", Look::Marked),
        ("default, follower", Look::Dashed),
        ("default, scribe", Look::Line),
    ] {
        for rtt in [0, 80, 160] {
            let points = points.iter().filter(|it| it.side == side && it.rtt == rtt);
            let points = points.map(|it| (it.requests as f64, it.read));
            chart.add(&format!("{side}, {rtt} ms"), look, points);
        }
    }
    report.picture("privatefs-figure10.svg", &chart);
    checks(&points).show(&mut report);
    report.finish(write)
}
