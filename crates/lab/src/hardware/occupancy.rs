//! The stash over many accesses, in the model.

use super::cosim::keys;
use super::frontend::{Controller, Request};
use super::paper::{PAGE, SCHEMES};
use super::scheme::scheme;
use super::secrets::AesLabels;
use crate::report::{Report, Table};
use anyhow::{Context, Result, bail};
use oblivio_testkit::SplitMix64;

/// How much to do.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Accesses of each scheme
    #[arg(long, default_value_t = 1_000_000)]
    accesses: u64,
}

/// Levels of the trees below the root.
const DEPTH: u32 = 16;

/// Runs the experiment.
///
/// # Errors
/// A port that failed.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let mut report = Report::on(PAGE, "stash", "The stash");
    report.text(&format!(
        "Blocks that a path left in the stash, in the model: every block of a tree of {} levels is \
         written once, in order, and then random blocks. Half of the tree's slots are for data, and \
         the map's blocks come on top. The circuit has 200 slots beyond those of a path.",
        DEPTH + 1
    ));
    let mut table = Table::new(["scheme", "accesses", "paths", "the most", "after half of them"]);
    for (name, _) in SCHEMES {
        let shape = scheme(name, DEPTH, 128).context("a scheme of the paper")?;
        let keys = keys();
        let mut model = Controller::new(shape, &keys, AesLabels::new(&keys.label));
        let mut dice = SplitMix64::new(1);
        let mut left = Vec::new();
        for number in 0..args.accesses {
            let blocks = shape.blocks();
            let block = if number < blocks { number } else { dice.below(blocks) };
            if let Err(fault) = model.serve(Request { block, write: Some([number as u8; 64]) }) {
                bail!("{name}, access {number}: {fault:?}");
            }
            left.push(model.backend.held());
        }
        left.sort_unstable();
        table.row([
            name.to_owned(),
            args.accesses.to_string(),
            model.backend.paths.to_string(),
            model.backend.stash_peak.to_string(),
            format!("at most {}", left[left.len() / 2]),
        ]);
    }
    report.table(&table);
    report.finish(write)
}
