//! The time of a path by the number of channels (Table 2), in the model of `dram.rs`.

use super::dram::{Shape, WINDOW};
use super::layout::Layout;
use super::machine::Machine;
use super::paper::PAGE;
use super::scheme::{LEVELS, PIPELINE, mean_path};
use crate::report::{Report, Table};
use anyhow::Result;

/// What to compute.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Random leaves of each mean
    #[arg(long, default_value_t = 1000)]
    leaves: u64,
}

/// The paper's, for 1, 2, 4 and 8 channels.
const PAPER: [f64; 4] = [2147.0, 1208.0, 697.0, 463.0];
const CHANNELS: [usize; 4] = [1, 2, 4, 8];
/// Lines of a bucket with four blocks of 64 bytes, and one with their addresses and leaves.
const BUCKET_LINES: u64 = 5;
/// A path that is read, then written.
#[derive(Clone, Copy)]
struct Access {
    layout: fn(u32, u64, &Shape) -> Layout,
    levels: u32,
    pipeline: u64,
}

const PLAIN: Access = Access { layout: Layout::subtrees, levels: LEVELS, pipeline: 0 };

/// Runs the experiment.
///
/// # Errors
/// Those of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let mut report = Report::on(PAGE, "table2", "The time of a path (Table 2)");
    report.text(&format!(
        "Processor cycles for a path of {LEVELS} buckets of {BUCKET_LINES} lines that is read and \
         then written, the mean of {} random leaves. DDR3-1333 with open rows, first-ready \
         first-come scheduling over {} requests for each channel, refreshes, and subtrees in rows. \
         Nothing is fitted in the second row; the third adds {PIPELINE} memory cycles of controller \
         to each of the two phases, which is a fit to the first.",
        args.leaves,
        WINDOW
    ));
    let mut table = Table::new(["channels", "1", "2", "4", "8"]);
    table.row(std::iter::once("the paper".to_owned()).chain(PAPER.map(|it| format!("{it:.0}"))));
    let rows = [
        ("model", PLAIN),
        ("model, pipeline fitted", Access { pipeline: PIPELINE, ..PLAIN }),
        ("heap order", Access { layout: heap, ..PLAIN }),
        ("25 levels", Access { levels: LEVELS - 1, ..PLAIN }),
    ];
    for (name, access) in rows {
        let means = CHANNELS.map(|channels| access.mean(channels, args.leaves));
        let cells = means
            .iter()
            .zip(PAPER)
            .map(|(mean, paper)| format!("{mean:.0} ({:+.1} %)", 100.0 * (mean / paper - 1.0)));
        table.row(std::iter::once(name.to_owned()).chain(cells));
    }
    report.table(&table);
    report.finish(write)
}

fn heap(levels: u32, bucket_lines: u64, _: &Shape) -> Layout {
    Layout::heap(levels, bucket_lines)
}

impl Access {
    /// The mean time in processor cycles.
    fn mean(&self, channels: usize, leaves: u64) -> f64 {
        let shape = Shape::paper(channels);
        let layout = (self.layout)(self.levels, BUCKET_LINES, &shape);
        mean_path(&layout, Machine::with_channels(channels), leaves, self.pipeline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bounds were set after a prototype had run: they guard a result.
    #[test]
    fn the_model_is_near_the_paper() {
        for (channels, paper) in CHANNELS.into_iter().zip(PAPER) {
            let near = |access: Access, most: f64| {
                let mean = access.mean(channels, 300);
                assert!((mean / paper - 1.0).abs() < most, "{channels}: {mean}");
            };
            near(PLAIN, 0.08);
            near(Access { pipeline: PIPELINE, ..PLAIN }, 0.05);
        }
        let (ours, heap) = (PLAIN.mean(8, 300), Access { layout: heap, ..PLAIN }.mean(8, 300));
        assert!(heap > 1.3 * ours, "{heap} {ours}");
    }
}
