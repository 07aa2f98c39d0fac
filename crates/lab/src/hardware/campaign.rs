//! The long comparisons of the circuit with its model, for docs/hardware.md.

use super::bench::Bench;
use super::cosim::{Outcome, compare};
use super::paper::{PAGE, SCHEMES};
use super::scheme::{requests, scheme};
use crate::report::{Report, Table, count};
use anyhow::{Context, Result};

/// How much to compare.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Requests in each scheme
    #[arg(long, default_value_t = 100_000)]
    requests: usize,
    /// How many of them at 24 levels
    #[arg(long, default_value_t = 20_000)]
    deep: usize,
}

/// Levels of the deep trees below the root, and of the others.
const DEEP: u32 = 23;
const SHALLOW: u32 = 12;
/// Requests of a run.
const AT_ONCE: usize = 10_000;
/// Cycles of 16 in which the memory is not ready.
const STALL: u32 = 3;

/// Runs the comparison.
///
/// # Errors
/// The first difference.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let mut report = Report::on(PAGE, "cosim", "The circuit beside its model");
    report.text(&format!(
        "Random reads and writes, near and far, with a memory that is not ready in {STALL} of 16 \
         cycles. Every line that is read or written was compared, its number and all 512 bits of \
         ciphertext, and every answer; no difference. Cycles are of the whole run, stalls \
         included, by the paths in it."
    ));
    let mut table = Table::new([
        "scheme",
        "levels",
        "channels",
        "requests",
        "lines",
        "paths",
        "stash",
        "roll-overs",
        "cycles a path",
    ]);
    for (name, channels) in SCHEMES {
        let shallow = args.requests.saturating_sub(args.deep);
        for (depth, requests) in [(SHALLOW, shallow), (DEEP, args.deep)] {
            let outcome = one(name, depth, channels, requests)?;
            table.row([
                name.into(),
                (depth + 1).to_string(),
                channels.to_string(),
                outcome.answered.to_string(),
                count(outcome.lines as f64),
                count(outcome.paths as f64),
                outcome.stash_peak.to_string(),
                outcome.roll_overs.to_string(),
                format!("{:.0}", outcome.cycles as f64 / outcome.paths.max(1) as f64),
            ]);
        }
    }
    report.table(&table);
    report.finish(write)
}

fn one(name: &str, depth: u32, channels: usize, requests_in_all: usize) -> Result<Outcome> {
    let shape = scheme(name, depth, 128).context("a scheme of the paper")?;
    let table_bits = if depth > SHALLOW { 25 } else { 17 };
    let bench = Bench::fast(&shape, channels, table_bits)?;
    let run = |seed: usize| -> Result<Outcome> {
        let asks = requests(&shape, AT_ONCE.min(requests_in_all - seed * AT_ONCE), seed as u64);
        let outcome = compare(&bench, shape, &asks, STALL, seed as u64 + 1)
            .with_context(|| format!("{name}, {depth}, seed {seed}"))?;
        anyhow::ensure!(!outcome.failed, "{name}: the port failed");
        eprintln!("{name}, {} levels: {outcome:?}", depth + 1);
        Ok(outcome)
    };
    // As many runs at a time as there are processors.
    let runs = requests_in_all.div_ceil(AT_ONCE);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(runs);
    let work = |first: usize| -> Result<Outcome> {
        let mut sum = Outcome::default();
        for seed in (first..runs).step_by(workers) {
            sum.add(&run(seed)?);
        }
        Ok(sum)
    };
    let work = &work;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|first| scope.spawn(move || work(first))).collect();
        let mut sum = Outcome::default();
        for worker in workers {
            sum.add(&worker.join().expect("a worker's panic")?);
        }
        Ok(sum)
    })
}
