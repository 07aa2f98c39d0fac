//! What Figure 6's experiment found, in a table and pictures.

use super::figure6::{EQUAL, FALSE_ALARMS, LATENCY, Row, STORES, Shown};
use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table, bytes, count};
use anyhow::Result;

/// Writes the section.
///
/// # Errors
/// Those of the page.
pub fn write(shown: &Shown<'_>, rows: &[Row], write: bool) -> Result<()> {
    let mut report = Report::on("cloud-paper.md", "groups", "Figure 6: several segments at a time");
    let files = shown.sizes.len();
    report.text(&format!(
        "Segments of 64 KiB, n at a time, three ways: **a**, the paper's, n consecutive segments of \
         a file share a label and lie on one path; Z = 3, every path that is read is written back, \
         and random paths follow while the stash holds more than 100 blocks. **b**: the same groups \
         with Oblivio's schedule; Z = 4, a path is rewritten after every 3 blocks, where each access \
         counts as n blocks whether the group is full or not (else the store would see how full it \
         is). **c**, what Oblivio does: n segments in one batch, each on a path of its own. a and b \
         are a model that moves block numbers and counts; c is the engine. Trees are about half \
         full, no level is cached.",
    ));
    report.text(&format!(
        "`moved` is blocks read and written for each segment that was asked for, of the paper's \
         {files} files ({}, nothing packed, each read once) and, after the stroke, of files of \
         {EQUAL} segments in a tree of {} levels. `calls` are those of the store for the {files} \
         files, one file and one group after the other. MB/s come from the counted buckets and {:.0} \
         and {:.0} µs of processor for one of 3 and of 4 slots, measured on the engine. `far` adds \
         {:.0} ms for each call. `extra` are the paths that only the stash asked for, per 1,000 \
         accesses, when one file of {EQUAL} segments is read again and again, and when many are. \
         For **a** the verdict is an exact Mann-Whitney test of these over {STORES} stores for each \
         workload; for **b** and **c** the paths of each access must be as many, and \
         `oblivio_audit::compare` must not tell the leaves apart. False alarms of all lines together \
         at most {FALSE_ALARMS:e}.",
        bytes(shown.sizes.iter().sum()),
        shown.depth + 1,
        1e6 * shown.costs[0],
        1e6 * shown.costs[1],
        1e3 * LATENCY,
    ));
    let mut table = Table::new([
        "way",
        "n",
        "moved",
        "calls",
        "MB/s",
        "far MB/s",
        "stash peak",
        "extra, one file",
        "extra, many",
        "p",
        "can the store tell?",
    ]);
    for row in rows {
        let above = if row.gave_up { "> " } else { "" };
        table.row([
            row.way.to_owned(),
            row.group.to_string(),
            format!("{:.0} / {:.0}", row.moved.0, row.moved.1),
            count(row.calls as f64),
            format!("{:.0} / {:.0}", row.rate.0, row.rate.1),
            format!("{:.2}", row.far),
            row.stash.to_string(),
            count(row.extra.0),
            format!("{above}{}", count(row.extra.1)),
            if row.way.starts_with('a') { format!("{:.1e}", row.p_value) } else { "-".into() },
            if row.leaks { "**yes**".into() } else { "no".into() },
        ]);
    }
    report.table(&table);
    report.picture(
        "cloud-figure6.svg",
        &chart(
            rows,
            "Processor: groups on one path move fewer bytes, batches the same for every n",
            "throughput of the paper's files, MB/s",
            |row| row.rate.0,
        ),
    );
    report.picture(
        "cloud-figure6-far.svg",
        &chart(
            rows,
            "Over a store 50 ms away: round trips decide",
            "throughput of the paper's files, MB/s",
            |row| row.far,
        ),
    );
    report.picture("cloud-figure6-tell.svg", &tell(rows));
    report.finish(write)
}

const WAYS: usize = 3;

fn of_ways(rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    rows.chunks(rows.len().div_ceil(WAYS).max(1))
}

fn chart(rows: &[Row], title: &str, label: &str, value: impl Fn(&Row) -> f64) -> Chart {
    let most = rows.iter().map(&value).fold(0.0, f64::max);
    let mut chart = Chart::new(title, axis(rows), Axis::linear(label, most));
    for way in of_ways(rows) {
        let points = way.iter().enumerate().map(|(at, row)| (at as f64, value(row)));
        chart.add(way[0].way, Look::Marked, points);
    }
    chart
}

fn axis(rows: &[Row]) -> Axis {
    let first = of_ways(rows).next().unwrap_or_default();
    Axis::names("segments at a time, n", first.iter().map(|row| row.group.to_string()))
}

fn tell(rows: &[Row]) -> Chart {
    let most = rows.iter().map(|row| row.extra.0.max(row.extra.1)).fold(1.0, f64::max);
    let mut chart = Chart::new(
        "Eviction on demand tells re-reading one file from reading many",
        axis(rows),
        Axis::linear("extra paths per 1,000 accesses", most),
    );
    let ways: Vec<&[Row]> = of_ways(rows).collect();
    let points = |way: &[Row], many: bool| {
        let value = |row: &Row| if many { row.extra.1 } else { row.extra.0 };
        way.iter().enumerate().map(|(at, row)| (at as f64, value(row))).collect::<Vec<_>>()
    };
    chart.add("a: many files", Look::Marked, points(ways[0], true));
    chart.add("a: one file again and again", Look::Marked, points(ways[0], false));
    chart.add("b and c: either", Look::Dashed, points(ways[WAYS - 1], true));
    chart
}
