//! Freecursive's evaluation in a processor (section 7.1): what its memory costs.

mod constants;
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
