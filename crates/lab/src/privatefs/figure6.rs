//! Figure 6: the rate of queries over the size of the volume, for 1, 2, 5 and 10 clients.

use super::checks::{Checks, PAGE, straightness};
use super::model::{self, Crowd, Slots};
use super::net::Setting;
use super::shared::Askers;
use super::sizes::{full_default, full_paper, measure, small_default};
use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table, bytes, count};
use anyhow::Result;
use oblivio_lab::pyramid_paper::Cost;

const CLIENTS: [usize; 4] = [1, 2, 5, 10];
/// Blocks of the modelled volumes, as logarithms: 2^14.6 of them are 10^8 bytes.
const MODELLED: [u32; 6] = [15, 18, 21, 24, 28, 31];

/// A measured point beside the closed form.
struct Point {
    log_blocks: u32,
    name: &'static str,
    clients: usize,
    rate: f64,
    modelled: f64,
    bytes: f64,
    modelled_bytes: f64,
}

fn setting() -> Setting {
    Setting::far(50).on_disk()
}

fn measured(quick: bool) -> Result<Vec<Point>> {
    let (paper, default): (&[u32], &[u32]) =
        if quick { (&[8], &[10]) } else { (&[8, 9, 10], &[12, 14, 15]) };
    let mut points = Vec::new();
    for &log_blocks in paper {
        let (mut side, config) = (full_paper(log_blocks, 16)?, model::paper_config(log_blocks)?);
        for clients in CLIENTS {
            let crowd = Crowd::of(clients);
            let found = measure(&mut side, log_blocks, crowd, setting(), 480)?;
            points.push(Point {
                log_blocks,
                name: "paper",
                clients,
                rate: found.rate,
                modelled: model::paper_rate(&config, crowd, setting()),
                bytes: found.bytes,
                modelled_bytes: Cost::of(&config).bytes_per_query() as f64,
            });
        }
    }
    for &log_blocks in default {
        let mut side = full_default(log_blocks, Askers::Followers)?;
        let config = small_default(log_blocks);
        for clients in CLIENTS {
            let crowd = Crowd::of(clients);
            // A cycle, in which every base is merged once.
            let found = measure(&mut side, log_blocks, crowd, setting(), 1 << (log_blocks - 1))?;
            let slot = config.slot_bytes() as f64;
            points.push(Point {
                log_blocks,
                name: "default",
                clients,
                rate: found.rate,
                modelled: model::default_rate(&config, crowd, setting()),
                bytes: found.bytes,
                modelled_bytes: Slots::of(&config).on_wire() * slot,
            });
        }
    }
    Ok(points)
}

/// Bytes of a query at a size, of the paper's construction and of the default.
fn costs(log_blocks: u32) -> Result<(f64, f64)> {
    let paper = Cost::of(&model::paper_config(log_blocks)?).bytes_per_query() as f64;
    let config = model::default_config(log_blocks);
    Ok((paper, Slots::of(&config).on_wire() * config.slot_bytes() as f64))
}

/// What the closed forms must show.
fn shapes(checks: &mut Checks) -> Result<()> {
    let logs: Vec<u32> = (18..=31).collect();
    let costs: Vec<(f64, f64)> = logs.iter().map(|&log| costs(log)).collect::<Result<_>>()?;
    let over = |power: i32, of: fn(&(f64, f64)) -> f64| {
        let points: Vec<(f64, f64)> = logs
            .iter()
            .zip(&costs)
            .map(|(&log, it)| (f64::from(log).powi(power), of(it)))
            .collect();
        straightness(&points)
    };
    let (square, line) = (over(2, |it| it.0), over(1, |it| it.0));
    checks.add(
        "the paper's bytes of a query grow as log^2: R^2 over log^2 above that over log",
        format!("{square:.5}, {line:.5}"),
        square > line && square > 0.999,
    );
    let (square, line) = (over(2, |it| it.1), over(1, |it| it.1));
    checks.add(
        "the default's grow as log: R^2 over log above that over log^2",
        format!("{line:.5}, {square:.5}"),
        line > square,
    );
    Ok(())
}

/// What a doubling costs the default. Its partitions double, and their turns shrink, at 2^21 and
/// 2^22 blocks with 64 MiB.
fn steps(checks: &mut Checks) {
    let slots = |log| Slots::of(&model::default_config(log)).on_wire();
    let most = (18..22).map(|log| slots(log + 1) - slots(log)).fold(0.0, f64::max);
    checks.add(
        "the default's: at most 2.2 slots more for each doubling from 2^18 to 2^22",
        format!("{most:.2}"),
        most <= 2.2,
    );
}

fn gaps(checks: &mut Checks) -> Result<()> {
    for log_blocks in [18, 20, 24, 31] {
        let (paper, default) = costs(log_blocks)?;
        let gap = paper / default;
        let claim = format!("a gap of at least 50 where line or disk binds, 2^{log_blocks} blocks");
        checks.add(&claim, format!("{gap:.0}"), gap >= 50.0);
    }
    let (paper, crowd) = (model::paper_config(21)?, Crowd::of(10));
    let gap = model::default_rate(&model::default_config(21), crowd, setting())
        / model::paper_rate(&paper, crowd, setting());
    let claim = "a gap of at least 50 with 10 clients at 50 ms, 2^21 blocks";
    checks.add(claim, format!("{gap:.0}"), gap >= 50.0);
    Ok(())
}

fn chart(points: &[Point]) -> Result<Chart> {
    let ticks = (6..=13).map(|power| (10f64.powi(power), format!("10^{power}")));
    let rates = [0.1, 1.0, 10.0, 100.0].map(|rate| (rate, rate.to_string()));
    let mut chart = Chart::new(
        "Figure 6: queries at 50 ms over the size; marks measured, lines modelled",
        Axis::log("bytes of the volume", ticks),
        Axis::log("queries/s of all clients", rates),
    );
    let size = |log_blocks: u32| (model::BLOCK as f64) * f64::from(log_blocks).exp2();
    for clients in CLIENTS {
        let crowd = Crowd::of(clients);
        let rates = (10..=31).map(|log| {
            Ok((size(log), model::paper_rate(&model::paper_config(log)?, crowd, setting())))
        });
        chart.add(&format!("paper, {clients}"), Look::Line, rates.collect::<Result<Vec<_>>>()?);
    }
    for clients in [1, 10] {
        let rate =
            |log: u32| model::default_rate(&small_default(log), Crowd::of(clients), setting());
        let rates = (10..=31).map(|log| (size(log), rate(log)));
        chart.add(&format!("default, {clients}"), Look::Dashed, rates);
    }
    for (name, clients) in [("paper", 10), ("default", 10)] {
        let points = points.iter().filter(|it| it.name == name && it.clients == clients);
        let points = points.map(|it| (size(it.log_blocks), it.rate));
        chart.add(&format!("{name}, {clients}, measured"), Look::Marked, points);
    }
    Ok(chart)
}

/// Runs it.
///
/// # Errors
/// Those of the engines and of the page.
pub fn run(quick: bool, write: bool) -> Result<()> {
    let mut report = Report::on(PAGE, "figure6", "Figure 6: size against queries");
    report.text(
        "Clients with one query at a time, 50 ms away, a line of 125 MB/s and a disk of 53 MB/s \
         (what the paper's reached). `measured` are runs in virtual time on full volumes: every \
         message is the engine's. `modelled` is the closed form. The paper's construction has 16 \
         queries a period and sorts 1,024 elements in memory; the default's stash is 1/64 of the \
         measured volumes, and 64 MiB of the larger ones.",
    );
    let points = measured(quick)?;
    let mut table = Table::new([
        "blocks",
        "side",
        "clients",
        "measured q/s",
        "modelled",
        "measured bytes",
        "modelled bytes",
    ]);
    let mut checks = Checks::default();
    let (mut rates_off, mut bytes_off) = (0f64, 0f64);
    for it in &points {
        rates_off = rates_off.max((it.rate / it.modelled - 1.0).abs());
        bytes_off = bytes_off.max((it.bytes / it.modelled_bytes - 1.0).abs());
        table.row([
            format!("2^{}", it.log_blocks),
            it.name.to_owned(),
            it.clients.to_string(),
            format!("{:.2}", it.rate),
            format!("{:.2}", it.modelled),
            bytes(it.bytes as u64),
            bytes(it.modelled_bytes as u64),
        ]);
    }
    report.table(&table);
    let mut table =
        Table::new(["blocks", "size", "paper, bytes", "default, bytes", "gap"].map(String::from));
    for log_blocks in MODELLED {
        let (paper, default) = costs(log_blocks)?;
        table.row([
            format!("2^{log_blocks}"),
            bytes((model::BLOCK as u64) << log_blocks),
            count(paper),
            count(default),
            format!("{:.0}", paper / default),
        ]);
    }
    report.table(&table);
    report.picture("privatefs-figure6.svg", &chart(&points)?);
    let off = |off: f64| format!("{:.0} %", 100.0 * off);
    checks.add("the model's bytes are within 10 % of the runs'", off(bytes_off), bytes_off <= 0.1);
    checks.add("the model's rates are within 25 % of the runs'", off(rates_off), rates_off <= 0.25);
    shapes(&mut checks)?;
    steps(&mut checks);
    gaps(&mut checks)?;
    checks.show(&mut report);
    report.finish(write)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_grows_as_a_square_and_the_default_does_not() -> Result<()> {
        let mut checks = Checks::default();
        shapes(&mut checks)?;
        assert!(checks.all_hold(), "{checks:?}");
        Ok(())
    }
}
