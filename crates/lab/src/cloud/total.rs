//! All of the paper's optimizations together, against none.

use super::sizes::draw;
use super::space::{Batches, Counts, LATENCY, LINK};
use super::ways::{PATH_ORAM, Way, scheduled};
use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table, bytes, count, median};
use anyhow::Result;

/// Blocks fetched together.
const TOGETHER: usize = 8;

const fn ours(name: &'static str, packed: bool, together: usize) -> Way {
    scheduled(name, 4, packed, Batches::Most(together))
}

const WAYS: [Way; 5] = [
    Way { name: "Path ORAM, Z = 3, none", ..PATH_ORAM },
    ours("ours, none", false, 1),
    ours("ours, together", false, TOGETHER),
    ours("ours, packed", true, 1),
    ours("ours, all", true, TOGETHER),
];

/// The way in [`WAYS`] without optimizations: the baseline of the gain.
const NONE: usize = 1;

/// Runs the experiment.
///
/// # Errors
/// Those of the file system and of the page.
pub fn run(quick: bool, write: bool) -> Result<()> {
    let (files, rounds) = if quick { (20, 1) } else { (1000, 3) };
    let sizes = draw(files, 1);
    let total: u64 = sizes.iter().sum();
    let mut report = Report::on("cloud-paper.md", "total", "All together against none");
    report.text(&format!(
        "{files} files ({}) written and read through the file layer over the engine, no level \
         cached. `together`: up to {TOGETHER} blocks of a request in one round trip (multi-block \
         fetching). `packed`: tails and small files share blocks. The tree is always made for \
         what is stored, so it shrinks with packing, as in the paper. MB/s are both ways by \
         processor time, median of {rounds} rounds of all ways by turns. `far` adds {:.0} ms for \
         each call and the bytes over {:.0} MB/s. `moved` is store bytes for each byte of a file, \
         `gain` is against *ours, none*.",
        bytes(total),
        1e3 * LATENCY,
        LINK / 1e6
    ));
    let mut table = Table::new([
        "segment",
        "way",
        "blocks",
        "tree, buckets",
        "calls",
        "moved",
        "MB/s",
        "gain",
        "far MB/s",
        "far gain",
    ]);
    let segments: &[usize] = if quick { &[64] } else { &[64, 16] };
    let mut far_bars = Vec::new();
    for &kib in segments {
        let mut seen: Vec<(Vec<f64>, Vec<f64>, Counts)> = vec![Default::default(); WAYS.len()];
        for _ in 0..rounds {
            for (way, seen) in WAYS.iter().zip(&mut seen) {
                let (times, counts) = way.measure(kib << 10, &sizes)?;
                let seconds = times.write + times.read;
                let rate = |seconds: f64| 2.0 * total as f64 / 1e6 / seconds;
                seen.0.push(rate(seconds));
                seen.1.push(rate(seconds + counts.far()));
                seen.2 = counts;
            }
        }
        let none = (median(&seen[NONE].0), median(&seen[NONE].1));
        let mut bars = Vec::new();
        for (at, (way, (rates, far, counts))) in WAYS.iter().zip(&seen).enumerate() {
            let (rate, far) = (median(rates), median(far));
            bars.push((at as f64, far));
            let gain = |now: f64, none: f64| format!("{:+.0} %", 100.0 * (now / none - 1.0));
            let row = [
                bytes((kib << 10) as u64),
                way.name.to_owned(),
                count(counts.live as f64),
                count(counts.buckets() as f64),
                count((counts.reads + counts.writes) as f64),
                format!("{:.0}", counts.bytes as f64 / (2 * total) as f64),
                format!("{rate:.1}"),
                gain(rate, none.0),
                format!("{far:.2}"),
                gain(far, none.1),
            ];
            eprintln!("{}", row.join(" | "));
            table.row(row);
        }
        far_bars.push((kib, bars));
    }
    report.table(&table);
    report.text(
        "The paper's estimate for all of them together is 77 % (60 % in its section V-G: packing 15 %, \
         groups of three 52 %), and trees 50 to 70 % smaller.",
    );
    let most = far_bars.iter().flat_map(|(_, bars)| bars).map(|bar| bar.1).fold(0.0, f64::max);
    let mut chart = Chart::new(
        "A store 50 ms and 1 Gbit/s away: packing and fetching together",
        Axis::names("", WAYS.iter().map(|way| way.name)),
        Axis::linear("throughput, MB/s", most * 1.05),
    );
    for (kib, bars) in far_bars {
        chart.add(&format!("segments of {kib} KiB"), Look::Bar, bars);
    }
    report.picture("cloud-total.svg", &chart);
    report.finish(write)
}
