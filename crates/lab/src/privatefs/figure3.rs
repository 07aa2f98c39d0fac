//! Figure 3: the bound on the rate of queries by round trips and bandwidth.

use super::checks::{Checks, PAGE};
use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table};
use anyhow::Result;
use oblivio_crypto::VolumeId;
use oblivio_lab::pyramid_paper::{Cost, PaperConfig};

/// The figure's volume: 100 GB in blocks of 10^4 bytes, on 100 Mbit/s.
const BLOCKS: f64 = 1e7;
const BLOCK: usize = 10_000;
const BANDWIDTH: f64 = 12.5e6;
const MOST_CLIENTS: u32 = 60;
const LATENCIES: [u32; 5] = [0, 10, 25, 50, 75];

/// The paper's formula (§5.2): queries a second of `clients` clients, `latency` ms away.
pub fn bound(clients: u32, latency: u32) -> f64 {
    let (clients, log2) = (f64::from(clients), BLOCKS.log2());
    let by_time = match latency {
        0 => f64::INFINITY,
        _ => clients / ((log2 + 3.0) * f64::from(latency) / 1e3),
    };
    by_time.min(BANDWIDTH / (((clients - 1.0) / 2.0 + log2) * BLOCK as f64))
}

/// The best number of clients, and its bound.
fn best(latency: u32, bound: impl Fn(u32, u32) -> f64) -> (u32, f64) {
    let all = (1..=MOST_CLIENTS).map(|clients| (clients, bound(clients, latency)));
    all.fold((0, 0.0), |best, it| if it.1 > best.1 { it } else { best })
}

/// The bound by bandwidth when constructions count too.
fn with_construction(clients: u32) -> Result<f64> {
    // A period has a power of two of queries.
    let log = u64::from(clients).next_power_of_two();
    let heights = (BLOCKS / log as f64).log2().ceil() as u32 + 1;
    let config = PaperConfig::new(VolumeId([0; 16]), log, heights, BLOCK)?;
    Ok(BANDWIDTH / Cost::of(&config).bytes_per_query() as f64)
}

/// What the paper's curves show.
fn checks() -> Checks {
    let mut checks = Checks::default();
    for (latency, clients, rate) in [(50, 39, 29.6), (10, 12, 43.5), (75, 51, 25.9)] {
        let found = best(latency, bound);
        let holds = found.0 == clients && (found.1 - rate).abs() < 0.05;
        let claim = format!("the most at {latency} ms is {rate} q/s with {clients} clients");
        checks.add(&claim, format!("{:.1} q/s with {}", found.1, found.0), holds);
    }
    checks
}

/// Runs it.
///
/// # Errors
/// Those of the page.
pub fn run(write: bool) -> Result<()> {
    let mut report = Report::on(PAGE, "figure3", "Figure 3: the bound on online queries");
    report.text(
        "The paper's formula, no run: n = 10^7 blocks of 10^4 bytes, 12.5 MB/s. It counts what \
         queries move online. *With constructions* is the bound by bandwidth when what levels are \
         made of counts too: the closed form of this construction, with 1,024 elements sorted in \
         memory. Beside it the trips hardly matter.",
    );
    let names = LATENCIES.map(|latency| format!("{latency} ms"));
    let head = [String::from("clients")].into_iter().chain(names.clone());
    let mut table = Table::new(head.chain(["with constructions".into()]));
    for clients in [1, 2, 5, 10, 12, 20, 30, 39, 51, 60] {
        let rates = LATENCIES.map(|latency| format!("{:.1}", bound(clients, latency)));
        let whole = format!("{:.2}", with_construction(clients)?);
        table.row([clients.to_string()].into_iter().chain(rates).chain([whole]));
    }
    report.table(&table);
    let most = bound(1, 0);
    let mut chart = Chart::new(
        "Figure 3: bound on online queries, 100 GB, 100 Mbit/s",
        Axis::linear("parallel clients", f64::from(MOST_CLIENTS)),
        Axis::linear("queries/s", most),
    );
    for (name, latency) in names.iter().zip(LATENCIES) {
        let points = (1..=MOST_CLIENTS).map(|it| (f64::from(it), bound(it, latency)));
        chart.add(name, Look::Line, points);
    }
    let whole = (1..=MOST_CLIENTS).map(|it| Ok((f64::from(it), with_construction(it)?)));
    chart.add("with constructions", Look::Dashed, whole.collect::<Result<Vec<_>>>()?);
    report.picture("privatefs-figure3.svg", &chart);
    checks().show(&mut report);
    report.finish(write)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_equals_the_print() {
        assert!(checks().all_hold(), "{:?}", checks());
    }

    #[test]
    fn constructions_are_most_of_it() -> Result<()> {
        for clients in [1, 10, 60] {
            assert!(with_construction(clients)? < bound(clients, 0) / 10.0);
        }
        Ok(())
    }
}
