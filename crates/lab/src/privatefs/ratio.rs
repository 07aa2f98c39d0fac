//! Both constructions on one line: 64 clients with 4 asks each, 50 ms away, 2^20 blocks.

use super::checks::{Checks, PAGE};
use super::model::{self, BLOCK, Crowd};
use super::net::Setting;
use super::paper;
use super::shared::Askers;
use super::sizes::{full, full_default, measure, small_default};
use crate::report::{Report, Table, bytes};
use anyhow::Result;
use oblivio_lab::pyramid_paper::Cost;

const CROWD: Crowd = Crowd { clients: 64, requests: 4 };
/// The volume, as a logarithm of its blocks.
const LARGE: u32 = 20;

/// Elements that the run's clients sort in memory, and send at once: 16 MiB. With fewer, the trips
/// of a construction would bind, which are one after the other.
const RUN: usize = 1 << 12;

/// The paper's construction with this many queries a period, of which it sorts `run` in memory.
fn of_paper(log: u64, run: usize, setting: Setting) -> Result<(f64, f64)> {
    let mut config = paper::config(BLOCK, LARGE, log)?;
    config.sorting.run = run;
    let bytes = Cost::of(&config).bytes_per_query() as f64;
    Ok((model::paper_rate(&config, CROWD, setting), bytes))
}

/// The rate of the paper's construction, with its bytes a query: in closed form,
/// which the runs of this page agree with. It has as many queries a period as are under way.
///
/// # Errors
/// Those of the engine.
pub fn paper_beside(log_blocks: u32, crowd: Crowd, rtt_ms: u64) -> Result<(f64, f64)> {
    let mut config = paper::config(BLOCK, log_blocks, crowd.lanes().next_power_of_two() as u64)?;
    config.sorting.run = RUN;
    let bytes = Cost::of(&config).bytes_per_query() as f64;
    Ok((model::paper_rate(&config, crowd, Setting::far(rtt_ms)), bytes))
}

/// Runs it.
///
/// # Errors
/// Those of the engines and of the page.
pub fn run(quick: bool, write: bool) -> Result<()> {
    let (log_paper, log_default, asks) = if quick { (10, 12, 512) } else { (11, 16, 1 << 15) };
    let mut report = Report::on(PAGE, "ratio", "Both constructions on one line");
    report.text(&format!(
        "64 clients with 4 asks each, 50 ms away, on a line of 125 MB/s that all bytes of all parties \
         share. First what was run in virtual time, on full volumes, beside the closed form for the \
         same size; then the closed form for 2^{LARGE} blocks, too many for the paper's construction \
         to be run here. Its bytes are equal to a trace at small sizes."
    ));
    let setting = Setting::far(50);
    let mut table =
        Table::new(["run", "blocks", "q/s", "closed form", "bytes a query", "closed form"]);
    let mut config = paper::config(BLOCK, log_paper, 256)?;
    (config.sorting.run, config.sorting.chunk) = (RUN, RUN);
    let mut paper = full(config)?;
    let found = measure(&mut paper, log_paper, CROWD, setting, 2048.min(asks))?;
    table.row([
        "paper, c = 256".to_owned(),
        format!("2^{log_paper}"),
        format!("{:.1}", found.rate),
        format!("{:.1}", model::paper_rate(&config, CROWD, setting)),
        bytes(found.bytes as u64),
        bytes(Cost::of(&config).bytes_per_query()),
    ]);
    let mut default = full_default(log_default, Askers::Followers)?;
    let found = measure(&mut default, log_default, CROWD, setting, asks)?;
    let config = small_default(log_default);
    table.row([
        "default".to_owned(),
        format!("2^{log_default}"),
        format!("{:.1}", found.rate),
        format!("{:.1}", model::default_rate(&config, CROWD, setting)),
        bytes(found.bytes as u64),
        bytes((model::Slots::of(&config).on_wire() * config.slot_bytes() as f64) as u64),
    ]);
    report.table(&table);
    let mut checks = Checks::default();
    let claim = format!("default: at least 1,000 q/s, run at 2^{log_default}");
    checks.add(
        &claim,
        format!("{:.0} q/s, median {:.0} ms", found.rate, 1e3 * found.median()),
        found.rate >= 1000.0,
    );
    let config = model::default_config(LARGE);
    let mut table = Table::new([
        "closed form, 2^20",
        "bytes a query",
        "q/s",
        "default / it",
        "on disk, q/s",
        "default / it",
    ]);
    let rates = [setting, setting.on_disk()].map(|it| model::default_rate(&config, CROWD, it));
    let wire = model::Slots::of(&config).on_wire() * config.slot_bytes() as f64;
    let row = |name: String, wire: f64, found: [f64; 2]| {
        let part =
            |at: usize| [format!("{:.1}", found[at]), format!("{:.0}", rates[at] / found[at])];
        [name, bytes(wire as u64)].into_iter().chain(part(0)).chain(part(1))
    };
    table.row(row("default".into(), wire, rates));
    for (log, run) in [
        (256, 1),
        (256, 1 << 10),
        (256, RUN),
        (256, 1 << 14),
        (64, 1),
        (64, 1 << 10),
        (64, 1 << 14),
    ] {
        let (rate, wire) = of_paper(log, run, setting)?;
        let on_disk = of_paper(log, run, setting.on_disk())?.0;
        table.row(row(format!("paper, c = {log}, {run} sorted in memory"), wire, [rate, on_disk]));
        if log == 256 {
            let claim = format!("default at least 50 times the paper, {run} sorted in memory");
            checks.add(&claim, format!("{:.0} times", rates[0] / rate), rates[0] / rate >= 50.0);
        }
    }
    report.table(&table);
    let slots = model::Slots::of(&config);
    checks.add(
        "default: at most 22 slots a query at 2^20, closed form",
        format!("{:.1}", slots.on_wire()),
        slots.on_wire() <= 22.0,
    );
    checks.show(&mut report);
    report.finish(write)
}
