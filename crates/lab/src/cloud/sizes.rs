//! The paper's distribution of file sizes (its Figure 4, after Roselli, Lorch and Anderson,
//! USENIX 2000), and the 1,000 files drawn from it.

use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table, bytes};
use anyhow::Result;
use oblivio_testkit::SplitMix64;

/// Bytes, and the percentage of files of at most that size.
///
/// The paper has a curve without numbers, and the original's was not at hand, so these points are a
/// reconstruction. They match the published summaries. The median is one to a few KiB (1 to 3.5 KB
/// in Ramakrishnan et al. 1992, 1,080 bytes in 1984 and 2,475 in 2005 in Tanenbaum et al. 2006).
/// The mean is some twenty times that (140 million files in 10.5 TB, 75 KB each, in Douceur and
/// Bolosky 1999). A few large files hold most of the bytes.
pub const POINTS: [(f64, f64); 17] = [
    (64.0, 0.0),
    (256.0, 4.0),
    (512.0, 11.0),
    (1024.0, 24.0),
    (2048.0, 41.0),
    (4096.0, 57.0),
    (8192.0, 70.0),
    (16384.0, 80.0),
    (32768.0, 87.0),
    (65536.0, 91.8),
    (131072.0, 94.8),
    (262144.0, 96.8),
    (524288.0, 98.2),
    (1048576.0, 99.1),
    (2097152.0, 99.6),
    (4194304.0, 99.8),
    (8388608.0, 100.0),
];

/// The size at a percentile; linear in the logarithm of the size between two points.
pub fn quantile(percent: f64) -> u64 {
    for pair in POINTS.windows(2) {
        let ((small, from), (large, to)) = (pair[0], pair[1]);
        if percent <= to {
            let part = (percent - from) / (to - from);
            return (small.ln() + part * (large / small).ln()).exp() as u64;
        }
    }
    POINTS[POINTS.len() - 1].0 as u64
}

/// Draws `files` sizes, evenly spaced over the distribution: every draw has the same total of
/// bytes, in an order of its own.
pub fn draw(files: usize, seed: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> =
        (0..files).map(|file| quantile((file as f64 + 0.5) * 100.0 / files as f64)).collect();
    shuffle(&mut sizes, seed);
    sizes
}

/// The Fisher-Yates shuffle.
pub fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut rng = SplitMix64::new(seed);
    for at in (1..items.len()).rev() {
        items.swap(at, rng.below(at as u64 + 1) as usize);
    }
}

/// Draws the distribution.
///
/// # Errors
/// Those of the page.
pub fn run(files: usize, write: bool) -> Result<()> {
    let sizes = draw(files, 1);
    let total: u64 = sizes.iter().sum();
    let mut report = Report::on("cloud-paper.md", "sizes", "Figure 4: the files");
    let mut sorted = sizes.clone();
    sorted.sort_unstable();
    let tail: u64 = sorted.iter().rev().take(files / 20).sum();
    report.text(&format!(
        "The paper takes its sizes from Roselli, Lorch and Anderson (\"A Comparison of File \
         System Workloads\", USENIX 2000). They are a curve without numbers, and the original's \
         was not at hand. The points below are our reconstruction; between them the logarithm of \
         the size is interpolated. They keep to what is published in words. The median is one to \
         a few KiB: 1 to 3.5 KB in Ramakrishnan et al. 1992; 1,080 bytes in 1984 and 2,475 in \
         2005 in Tanenbaum, Herder and Bos 2006. The mean is some twenty times that: 140 million \
         files in 10.5 TB, 75 KB each, in Douceur and Bolosky 1999. {files} files at even steps \
         through it hold {} in all: median {}, mean {}, and the largest twentieth holds {:.0} % \
         of the bytes. Another choice of the large end moves every throughput here, of all ways \
         alike.",
        bytes(total),
        bytes(sorted[files / 2]),
        bytes(total / files as u64),
        100.0 * tail as f64 / total as f64
    ));
    let mut table = Table::new(["size at most", "files, %"]);
    for (size, percent) in &POINTS[1..] {
        table.row([bytes(*size as u64), format!("{percent}")]);
    }
    report.table(&table);
    let ticks = [64u64, 1 << 10, 16 << 10, 64 << 10, 1 << 20, 8 << 20];
    let x = Axis::log("file size", ticks.map(|size| (size as f64, bytes(size))));
    let mut chart = Chart::new(
        "Most files are small; a few large ones hold the bytes",
        x,
        Axis::linear("files at most so large, %", 100.0),
    );
    let drawn =
        (0..sorted.len()).map(|at| (sorted[at] as f64, 100.0 * (at + 1) as f64 / files as f64));
    chart.add(&format!("the {files} files"), Look::Line, drawn);
    let mut below = 0;
    let weighed: Vec<_> = sorted
        .iter()
        .map(|&size| {
            below += size;
            (size as f64, 100.0 * below as f64 / total as f64)
        })
        .collect();
    chart.add("their bytes", Look::Dashed, weighed);
    report.picture("cloud-figure4.svg", &chart);
    report.finish(write)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draw_follows_the_points() {
        for (size, percent) in POINTS {
            let found = quantile(percent) as f64;
            assert!((found / size - 1.0).abs() < 0.02, "{percent} %: {found} for {size}");
        }
        let sizes = draw(1000, 7);
        assert_eq!(sizes.iter().sum::<u64>(), draw(1000, 8).iter().sum::<u64>());
        let small = sizes.iter().filter(|&&size| size <= 65536).count();
        assert!((917..=919).contains(&small), "{small}");
    }
}
