//! The round trips of a query of the paper's construction, counted in what the server sees.

use super::checks::{Checks, PAGE};
use super::net::Setting;
use super::paper::{self, Paper};
use super::work::{Fill, Side, Uniform};
use crate::report::{Report, Table};
use anyhow::Result;
use oblivio_lab::pyramid_paper::bloom_filter::FilterRule;
use oblivio_lab::pyramid_paper::{QueryNumber, Record, View};
use std::collections::BTreeMap;

/// Bytes of a block: trips do not depend on it.
const BLOCK: usize = 16;

/// The requests of each query of a run.
fn requests(records: &[Record]) -> BTreeMap<QueryNumber, u64> {
    let mut requests = BTreeMap::new();
    for query in records.iter().filter_map(|record| record.view.query()) {
        *requests.entry(query).or_default() += 1;
    }
    requests
}

/// Levels that the queries of a run walk through.
fn levels(records: &[Record]) -> usize {
    let heights = records.iter().filter_map(|record| match &record.view {
        View::Walk(walk) => Some(walk.items.first()?.0.height),
        _ => None,
    });
    heights.collect::<std::collections::BTreeSet<_>>().len()
}

/// What was counted at one size: the least and the most trips, and live heights.
struct Counted {
    log: u32,
    queries: usize,
    trips: (u64, u64),
    heights: usize,
}

/// Fills a volume of `2^log` blocks, with a query a period, until its bottom lives, and counts.
fn count(log: u32) -> Result<Counted> {
    let mut config = paper::config(BLOCK, log, 1)?;
    // Sorts and filters that are cheap here; trips do not depend on them.
    config.sorting.run = 1 << 14;
    config.filter = FilterRule::cheapest(40);
    let mut side = Paper::new(config)?;
    let blocks = 1u64 << log;
    side.run(&mut Fill::of(blocks), 2 * blocks as usize)?;
    side.arrange(1, 1, Setting::far(50))?;
    let records = side.traced(&mut Uniform::on(blocks, 1), 8)?;
    let requests = requests(&records);
    let least = requests.values().copied().min().unwrap_or(0);
    let most = requests.values().copied().max().unwrap_or(0);
    Ok(Counted { log, queries: requests.len(), trips: (least, most), heights: levels(&records) })
}

fn checks(all: &[Counted]) -> Checks {
    let mut checks = Checks::default();
    for it in all {
        let expected = u64::from(it.log) + 4;
        let holds = it.trips == (expected, expected) && it.heights == it.log as usize + 1;
        let claim = format!("n/c = 2^{}: {expected} trips", it.log);
        let found = format!("{} to {}, {} live heights", it.trips.0, it.trips.1, it.heights);
        checks.add(&claim, found, holds && it.queries >= 8);
    }
    checks
}

/// Runs it.
///
/// # Errors
/// Those of the engine and of the page.
pub fn run(quick: bool, write: bool) -> Result<()> {
    let most = if quick { 8 } else { 16 };
    let mut report = Report::on(PAGE, "trips", "Round trips of the paper's construction");
    report.text(
        "Counted in what the server saw, on pyramids in which every height lives: one query a \
         period, blocks of 16 bytes, 2 n queries before. A query appends to the log, walks down all \
         heights and one more, and writes its result: log2(n/c) + 4 trips.",
    );
    let all: Vec<Counted> = (4..=most)
        .map(|log| {
            eprintln!("2^{log} blocks");
            count(log)
        })
        .collect::<Result<_>>()?;
    let mut table = Table::new(["n/c", "queries", "trips", "log2(n/c) + 4", "live heights"]);
    for it in &all {
        table.row([
            format!("2^{}", it.log),
            it.queries.to_string(),
            it.trips.1.to_string(),
            (it.log + 4).to_string(),
            it.heights.to_string(),
        ]);
    }
    report.table(&table);
    checks(&all).show(&mut report);
    report.finish(write)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trips_are_log2_and_four() -> Result<()> {
        let all: Vec<Counted> = (4..=7).map(count).collect::<Result<_>>()?;
        let checks = checks(&all);
        assert!(checks.all_hold(), "{checks:?}");
        Ok(())
    }
}
