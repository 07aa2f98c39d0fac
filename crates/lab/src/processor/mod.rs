//! Freecursive's evaluation in a processor (section 7.1): what its memory costs.

mod dram;
mod layout;
mod table2;

use anyhow::Result;
use clap::Subcommand;

/// What to compute.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand, Debug)]
enum Part {
    /// The time of a path by the number of memory channels
    Table2(table2::Args),
}

/// Runs the experiment.
///
/// # Errors
/// Those of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    match &args.part {
        Part::Table2(args) => table2::run(args, write),
    }
}

/// The page of all parts.
const PAGE: &str = "processor.md";
/// Gigahertz of the processor, in whose cycles the paper gives all times (Table 1).
const PROCESSOR_GHZ: f64 = 1.3;
