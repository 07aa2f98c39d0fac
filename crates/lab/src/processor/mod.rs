//! Freecursive's evaluation in a processor (section 7.1): what its memory costs.

mod check;
mod dram;
mod figure5;
mod figure6;
mod figure8;
mod figure9;
mod frames;
mod front;
mod inputs;
mod layout;
mod machine;
mod pairs;
mod paper;
mod programs;
mod qemu;
mod replay;
mod scheme;
mod table2;
mod trace;

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
    /// Programs under QEMU: the lines that their caches do not have
    Trace(trace::Args),
    /// The tracer beside cachegrind
    CheckTracer(check::Args),
    /// The time of a path by the number of memory channels
    Table2(table2::Args),
    /// Runtime by the size of the PLB
    Figure5(replay::Args),
    /// Slowdown of the schemes over a machine without ORAM
    Figure6(replay::Args),
    /// Slowdown beside the Recursive ORAM before, on its machine
    Figure8(pairs::Args),
    /// Speed beside Phantom's blocks of 4 KB
    Figure9(pairs::Args),
}

/// Runs the experiment.
///
/// # Errors
/// Those of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    match &args.part {
        Part::Trace(args) => trace::run(args, write),
        Part::CheckTracer(args) => check::run(args, write),
        Part::Table2(args) => table2::run(args, write),
        Part::Figure5(args) => figure5::run(args, write),
        Part::Figure6(args) => figure6::run(args, write),
        Part::Figure8(args) => figure8::run(args, write),
        Part::Figure9(args) => figure9::run(args, write),
    }
}
