//! Figure 5: throughput for each segment size, with buckets of 3, 4 and 5 blocks.

use super::sizes::draw;
use super::space::{Batches, Counts, LATENCY, LINK};
use super::ways::{PATH_ORAM, Way, scheduled};
use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table, bytes, count};
use anyhow::Result;

const WAYS: [Way; 4] = [
    scheduled("Z = 3", 3, true, Batches::Volume),
    scheduled("Z = 4 (ours)", 4, true, Batches::Volume),
    scheduled("Z = 5", 5, true, Batches::Volume),
    Way { name: "Path ORAM, Z = 3, not packed", ..PATH_ORAM },
];

struct Point {
    rate: f64,
    far: f64,
    counts: Counts,
}

/// Runs the sweep.
///
/// # Errors
/// Those of the file system and of the page.
pub fn run(quick: bool, write: bool) -> Result<()> {
    let sizes = draw(if quick { 20 } else { 1000 }, 1);
    let total: u64 = sizes.iter().sum();
    let segments: &[usize] = if quick { &[4, 64] } else { &[4, 16, 64, 256, 1024] };
    let mut report = Report::on("cloud-paper.md", "segments", "Figure 5: segment and bucket size");
    report.text(&format!(
        "{} files ({}) are written and then all read in another order, through the file layer \
         over the engine. No level of the tree is cached and nothing commits, so every path goes \
         to the store, as in the paper. Our lines pack tails and serve as many blocks together as \
         a volume does: 8 MiB of paths, so one block at 64 KiB and more. The last line is the \
         paper's engine before its optimizations. MB/s are bytes of files both ways over \
         processor time. `far` adds {:.0} ms for each call and the bytes over {:.0} MB/s. `moved` \
         is store bytes for each byte of a file.",
        sizes.len(),
        bytes(total),
        1e3 * LATENCY,
        LINK / 1e6
    ));
    let mut table = Table::new([
        "segment",
        "way",
        "depth",
        "blocks",
        "accesses",
        "calls",
        "moved",
        "stash peak",
        "MB/s",
        "far MB/s",
    ]);
    let mut lines: Vec<Vec<Point>> = WAYS.iter().map(|_| Vec::new()).collect();
    for &kib in segments {
        for (way, line) in WAYS.iter().zip(&mut lines) {
            let point = measure(way, kib << 10, &sizes)?;
            let row = [
                bytes((kib << 10) as u64),
                way.name.to_owned(),
                point.counts.depth.to_string(),
                count(point.counts.live as f64),
                count(point.counts.accesses as f64),
                count((point.counts.reads + point.counts.writes) as f64),
                format!("{:.0}", point.counts.bytes as f64 / (2 * total) as f64),
                point.counts.stash.to_string(),
                format!("{:.1}", point.rate),
                format!("{:.2}", point.far),
            ];
            eprintln!("{}", row.join(" | "));
            table.row(row);
            line.push(point);
        }
    }
    report.table(&table);
    let near = chart(
        segments,
        &lines,
        "Near, segments of 16 KiB are fastest; Z hardly matters",
        |point| point.rate,
    );
    report.picture("cloud-figure5.svg", &near);
    let far =
        chart(segments, &lines, "The same over a store 50 ms and 1 Gbit/s away", |point| point.far);
    report.picture("cloud-figure5-far.svg", &far);
    report.finish(write)
}

fn chart(
    segments: &[usize],
    lines: &[Vec<Point>],
    title: &str,
    rate: impl Fn(&Point) -> f64,
) -> Chart {
    let names = segments.iter().map(|&kib| bytes((kib << 10) as u64));
    let most = lines.iter().flatten().map(&rate).fold(0.0, f64::max);
    let mut chart = Chart::new(
        title,
        Axis::names("segment size", names),
        Axis::linear("throughput, MB/s", most),
    );
    for (way, line) in WAYS.iter().zip(lines) {
        let points = line.iter().enumerate().map(|(at, point)| (at as f64, rate(point)));
        chart.add(way.name, Look::Marked, points);
    }
    chart
}

fn measure(way: &Way, segment: usize, sizes: &[u64]) -> Result<Point> {
    let (times, counts) = way.measure(segment, sizes)?;
    let bytes: u64 = sizes.iter().sum();
    let far = 2.0 * bytes as f64 / 1e6 / (times.write + times.read + counts.far());
    Ok(Point { rate: times.rate(bytes), far, counts })
}
