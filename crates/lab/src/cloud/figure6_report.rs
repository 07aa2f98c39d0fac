//! The results of Figure 6's experiment, in a table and pictures.

use super::space::{LATENCY, LINK};
use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table, bytes, count};
use anyhow::Result;

/// The experiment's facts for the report.
pub struct Shown<'a> {
    /// Bytes of the paper's files.
    pub sizes: &'a [u64],
    /// Depth of the leaves in the tree of equal files.
    pub depth: u32,
    /// Seconds for a bucket of 3 and of 4 slots.
    pub costs: [f64; 2],
    /// Segments in each file of the test whether the store can distinguish the two.
    pub equal: usize,
    /// Separate stores for each workload of the exact test.
    pub stores: usize,
    /// The false-alarm rate of all comparisons together.
    pub false_alarms: f64,
}

/// One row of the report.
#[derive(Clone, Debug)]
pub struct Row {
    /// The way.
    pub way: &'static str,
    /// Segments in a group or batch.
    pub group: usize,
    /// Buckets per segment of the paper's files, and of the equal ones, times their slots.
    pub moved: (f64, f64),
    /// Store calls for 1,000 of the paper's files.
    pub calls: u64,
    /// MB/s of the paper's files, and of the equal ones, by processor time.
    pub rate: (f64, f64),
    /// MB/s of the paper's files over a far store.
    pub far: f64,
    /// The stash peak in blocks.
    pub stash: usize,
    /// Extra paths for 1,000 accesses, one file and many.
    pub extra: (f64, f64),
    /// The p-value of the exact test.
    pub p_value: f64,
    /// Whether the store can distinguish the two.
    pub leaks: bool,
    /// Whether the stash could not be emptied.
    pub gave_up: bool,
}

/// Writes the section.
///
/// # Errors
/// Those of the page.
pub fn write(shown: &Shown<'_>, rows: &[Row], write: bool) -> Result<()> {
    let mut report = Report::on("cloud-paper.md", "groups", "Figure 6: several segments at a time");
    let files = shown.sizes.len();
    let Shown { equal, stores, false_alarms, .. } = *shown;
    report.text(
        "Segments of 64 KiB, n at a time, side by side. **a** is the paper's way: n consecutive \
         segments of a file share a label and lie on one path. Z = 3, every path that is read is \
         written back, and random paths follow while the stash holds more than 100 blocks. **b** \
         has the same groups with Oblivio's schedule: Z = 4, a path is rewritten after every 3 \
         blocks. Each access counts as n blocks even if its group is not full; otherwise the \
         store would see how full it is. **b'** counts a group as the blocks it has. It is the \
         same for whole files, but reading a part of a file then shows how full that group is. \
         **c** is what Oblivio does: n segments in one batch, each on a path of its own. a, b and \
         b' are a model that moves block numbers and counts; c is the engine. Trees are about \
         half full, no level is cached.",
    );
    report.text(&format!(
        "`moved` is blocks read and written for each segment asked for. It is for the paper's \
         {files} files ({}, nothing packed, each read once) and, after the stroke, for files of \
         {equal} segments in a tree of {} levels. `calls` are those of the store for the {files} \
         files, one file and one group after the other. MB/s come from the counted buckets and \
         {:.0} and {:.0} µs of processor for one of 3 and of 4 slots, measured on the engine. \
         `far` adds {:.0} ms for each call and the bytes over {:.0} MB/s. `extra` are the paths \
         that only the stash asked for, per 1,000 accesses: when one file of {equal} segments is \
         read again and again, and when many are. `>` means that some access gave up after 50. \
         For **a** the verdict is an exact Mann-Whitney test of these over {stores} stores for \
         each workload. For the others each access must have as many paths, and \
         `oblivio_audit::compare` must not tell the leaves apart. False alarms of all lines \
         together are at most {false_alarms:e}.",
        bytes(shown.sizes.iter().sum()),
        shown.depth + 1,
        1e6 * shown.costs[0],
        1e6 * shown.costs[1],
        1e3 * LATENCY,
        LINK / 1e6,
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
            match (row.leaks, row.gave_up) {
                (true, _) => "**yes**".into(),
                (false, true) => "the stash never settles".into(),
                (false, false) => "no".to_owned(),
            },
        ]);
    }
    report.table(&table);
    report.picture(
        "cloud-figure6.svg",
        &chart(
            rows,
            "The paper's files, near: groups move fewer bytes, unless padded",
            "throughput of the paper's files, MB/s",
            |row| row.rate.0,
        ),
    );
    report.picture(
        "cloud-figure6-far.svg",
        &chart(
            rows,
            "The paper's files, 50 ms and 1 Gbit/s away",
            "throughput of the paper's files, MB/s",
            |row| row.far,
        ),
    );
    report.picture(
        "cloud-figure6-large.svg",
        &chart(
            rows,
            "Files of 24 segments, near: groups gain until paths are congested",
            "throughput, MB/s",
            |row| row.rate.1,
        ),
    );
    report.picture("cloud-figure6-tell.svg", &tell(rows));
    report.picture("cloud-figure6-stash.svg", &stash(rows));
    report.finish(write)
}

const WAYS: usize = 4;

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

fn stash(rows: &[Row]) -> Chart {
    let ticks = [1u32, 4, 16, 64, 256, 1024, 2048].map(|tick| (f64::from(tick), tick.to_string()));
    let label = "most blocks in the stash (64 is what is padded to)";
    let mut chart =
        Chart::new("Groups fill the stash, batches do not", axis(rows), Axis::log(label, ticks));
    for way in of_ways(rows) {
        let points = way.iter().enumerate().map(|(at, row)| (at as f64, row.stash as f64));
        chart.add(way[0].way, Look::Marked, points);
    }
    chart
}

fn tell(rows: &[Row]) -> Chart {
    let ticks = [1u32, 10, 100, 1000, 10_000, 100_000];
    let ticks = ticks.map(|tick| (f64::from(tick), count(f64::from(tick))));
    let mut chart = Chart::new(
        "Eviction on demand tells re-reading one file from reading many",
        axis(rows),
        Axis::log("extra paths per 1,000 accesses (1 or less)", ticks),
    );
    let ways: Vec<&[Row]> = of_ways(rows).collect();
    let points = |way: &[Row], many: bool| {
        let value = |row: &Row| if many { row.extra.1 } else { row.extra.0 };
        way.iter().enumerate().map(|(at, row)| (at as f64, value(row))).collect::<Vec<_>>()
    };
    chart.add("a: many files", Look::Marked, points(ways[0], true));
    chart.add("a: one file again and again", Look::Marked, points(ways[0], false));
    chart.add("b, b', c: either", Look::Dashed, points(ways[WAYS - 1], true));
    chart
}
