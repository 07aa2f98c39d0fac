//! Figure 7: the rate of queries over the round trip, for 1, 2, 5 and 10 clients.

use super::checks::{Checks, PAGE};
use super::model::{self, Crowd, Slots};
use super::net::{DISK_OF_2012, Setting};
use super::shared::Askers;
use super::sizes::{Found, full_default, full_paper, measure, small_default};
use super::work::Side;
use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table};
use anyhow::{Error, Result};
use oblivio_engine::pyramid::PyramidConfig;
use oblivio_lab::pyramid_paper::Cost;

const CLIENTS: [usize; 4] = [1, 2, 5, 10];
const TRIPS_MS: [u64; 9] = [0, 10, 20, 30, 40, 50, 60, 70, 80];
/// The paper's 13 GB are 2^21.6 blocks, and a pyramid has a power of two of them.
const LARGE: u32 = 22;

/// The disks of both small volumes: as slow for their queries as the paper's for those of a large
/// one.
fn scaled_disks(log_paper: u32, log_default: u32) -> Result<[u64; 2]> {
    let of_paper = |log| Ok::<_, Error>(Cost::of(&model::paper_config(log)?).bytes_per_query());
    let part = of_paper(log_paper)? as f64 / of_paper(LARGE)? as f64;
    let of_default = |config: &PyramidConfig| Slots::of(config).on_disk();
    let small = of_default(&small_default(log_default));
    let other = small / of_default(&model::default_config(LARGE));
    Ok([part, other].map(|part| (DISK_OF_2012 as f64 * part) as u64))
}

/// Milliseconds of a query of one client on a line without a disk, at each round trip.
fn alone(side: &mut dyn Side, log_blocks: u32, asks: usize) -> Result<Vec<f64>> {
    let one = |rtt| {
        let found = measure(side, log_blocks, Crowd::of(1), Setting::far(rtt), asks)?;
        Ok(1e3 / found.rate)
    };
    TRIPS_MS.into_iter().map(one).collect()
}

/// A run for each number of clients and each round trip.
fn all(
    side: &mut dyn Side,
    log_blocks: u32,
    disk: u64,
    asks: usize,
) -> Result<Vec<(usize, Vec<Found>)>> {
    let one = |side: &mut dyn Side, clients| {
        let runs = TRIPS_MS.map(|rtt| {
            let setting = Setting { disk: Some(disk), ..Setting::far(rtt) };
            measure(side, log_blocks, Crowd::of(clients), setting, asks)
        });
        Ok((clients, runs.into_iter().collect::<Result<Vec<_>>>()?))
    };
    CLIENTS.into_iter().map(|clients| one(side, clients)).collect()
}

/// What one client of the paper's construction must show: its trips.
fn trips(checks: &mut Checks, log_blocks: u32, alone: &[f64]) -> Result<()> {
    let trips = model::paper_trips(&model::paper_config(log_blocks)?) as f64;
    for (rtt, millis) in TRIPS_MS.iter().zip(alone).skip(1) {
        let ratio = millis / (trips * *rtt as f64);
        let claim = format!("one client, no disk: (log2(n/c) + 4) trips of {rtt} ms, within 20 %");
        checks.add(&claim, format!("{ratio:.3}"), (ratio - 1.0).abs() <= 0.2);
    }
    Ok(())
}

/// What ten must show: a rate that the disk holds flat.
fn flat(checks: &mut Checks, log_blocks: u32, paper: &[(usize, Vec<Found>)]) -> Result<()> {
    let ten = &paper[3].1;
    let bound =
        DISK_OF_2012 as f64 / Cost::of(&model::paper_config(LARGE)?).bytes_per_query() as f64;
    let bound_by_disk = |rtt: u64| {
        let no_disk = Setting::far(rtt);
        let config = model::paper_config(log_blocks);
        config.map(|config| model::paper_rate(&config, Crowd::of(10), no_disk) > 1.5 * bound)
    };
    let mut flat = Vec::new();
    for (rtt, found) in TRIPS_MS.iter().zip(ten) {
        if bound_by_disk(*rtt)? {
            flat.push(found.rate);
        }
    }
    let most = flat.iter().copied().fold(0.0, f64::max);
    let least = flat.iter().copied().fold(f64::INFINITY, f64::min);
    checks.add(
        "ten clients are flat, within 20 %, where the disk binds",
        format!("{least:.2} to {most:.2} q/s at {} round trips", flat.len()),
        flat.len() >= 2 && least >= 0.8 * most,
    );
    Ok(())
}

/// Runs it.
///
/// # Errors
/// Those of the engines and of the page.
pub fn run(quick: bool, write: bool) -> Result<()> {
    let (log_paper, log_default, asks) = if quick { (8, 10, 96) } else { (10, 13, 240) };
    let mut report = Report::on(PAGE, "figure7", "Figure 7: round trips against queries");
    let [disk, other] = scaled_disks(log_paper, log_default)?;
    report.text(&format!(
        "Measured in virtual time at 2^{log_paper} blocks for the paper's construction and \
         2^{log_default} for the default, on a line of 125 MB/s. Their disks are scaled to \
         {:.1} and {:.1} MB/s: a query of the small volume takes its disk as long as one of 2^{LARGE} \
         blocks (the paper has 13 GB, 2^21.6) takes one of 53 MB/s. `2^{LARGE}` is the closed form \
         for that size and disk. `no disk` are milliseconds of a query.",
        disk as f64 / 1e6,
        other as f64 / 1e6
    ));
    let mut paper = full_paper(log_paper, 16)?;
    let alone = alone(&mut paper, log_paper, asks / 2)?;
    let paper = all(&mut paper, log_paper, disk, asks)?;
    let mut default = full_default(log_default, Askers::Followers)?;
    let default = all(&mut default, log_default, other, 8 * asks)?;
    let head = ["side", "clients"].map(String::from).into_iter();
    let mut table = Table::new(head.chain(TRIPS_MS.map(|rtt| format!("{rtt} ms"))));
    let mut row = |name: &str, clients: usize, rates: Vec<f64>| {
        let cells = [name.to_owned(), clients.to_string()].into_iter();
        table.row(cells.chain(rates.into_iter().map(|rate| format!("{rate:.2}"))));
    };
    for (name, side) in [("paper", &paper), ("default", &default)] {
        for (clients, found) in side {
            row(name, *clients, found.iter().map(|it| it.rate).collect());
        }
    }
    for clients in CLIENTS {
        let rate = |rtt| {
            let config = model::paper_config(LARGE)?;
            Ok(model::paper_rate(&config, Crowd::of(clients), Setting::far(rtt).on_disk()))
        };
        let rates = TRIPS_MS.map(rate).into_iter().collect::<Result<Vec<_>>>()?;
        row(&format!("paper, 2^{LARGE}"), clients, rates);
    }
    row("paper, no disk, ms", 1, alone.clone());
    report.table(&table);
    let mut chart = Chart::new(
        "Figure 7: queries over the round trip, disk scaled to 13 GB",
        Axis::linear("round trip, ms", 80.0),
        Axis::log(
            "queries/s of all clients",
            [0.1, 1.0, 10.0, 100.0, 1000.0].map(|it| (it, it.to_string())),
        ),
    );
    for (name, side, look) in [("paper", &paper, Look::Marked), ("default", &default, Look::Dashed)]
    {
        for (clients, found) in side {
            let points = TRIPS_MS.iter().zip(found).map(|(&rtt, it)| (rtt as f64, it.rate));
            chart.add(&format!("{name}, {clients}"), look, points);
        }
    }
    report.picture("privatefs-figure7.svg", &chart);
    let mut checks = Checks::default();
    trips(&mut checks, log_paper, &alone)?;
    flat(&mut checks, log_paper, &paper)?;
    checks.show(&mut report);
    report.finish(write)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_is_bound_by_its_trips() -> Result<()> {
        let (mut side, mut checks) = (full_paper(6, 16)?, Checks::default());
        let alone = alone(&mut side, 6, 48)?;
        trips(&mut checks, 6, &alone)?;
        assert!(checks.all_hold(), "{checks:?}");
        Ok(())
    }
}
