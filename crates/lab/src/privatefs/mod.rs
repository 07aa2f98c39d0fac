//! The evaluation of "PrivateFS: A Parallel Oblivious File System" (Williams, Sion and Tomescu,
//! CCS 2012) for both constructions, with one command for each figure.
//!
//! Messages, bytes and answers are the engines'. Time is not: it passes in [`net`]. Only [`beside`]
//! waits really.

mod beside;
mod checks;
mod figure10;
mod figure11;
mod figure3;
mod figure6;
mod figure7;
mod figure8;
mod figure9;
mod files;
mod model;
mod net;
mod paper;
mod ratio;
mod shared;
mod sizes;
mod trips;
mod work;

pub use model::Crowd;
pub use ratio::paper_beside;

use anyhow::Result;
use clap::Subcommand;

/// Which figure.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    part: Part,
    /// Small volumes: shows that it works, not what it costs
    #[arg(long, global = true)]
    quick: bool,
}

#[derive(Subcommand, Debug)]
enum Part {
    /// The bound by round trips and bandwidth
    Figure3,
    /// Size against queries
    Figure6,
    /// Round trips against queries
    Figure7,
    /// Each query's time
    Figure8,
    /// Progress of a level
    Figure9,
    /// A file system over the asks that it has under way
    Figure10,
    /// A file system over what it holds
    Figure11,
    /// Figure 10's work on real mounts: shared volumes, one writer, UtahFS
    Beside(beside::Args),
    /// Both constructions on one line
    Ratio,
    /// The round trips of a query of the paper's construction
    Trips,
}

/// Runs one.
///
/// # Errors
/// Those of the figure.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let quick = args.quick;
    match &args.part {
        Part::Figure3 => figure3::run(write),
        Part::Figure6 => figure6::run(quick, write),
        Part::Figure7 => figure7::run(quick, write),
        Part::Figure8 => figure8::run(quick, write),
        Part::Figure9 => figure9::run(quick, write),
        Part::Figure10 => figure10::run(quick, write),
        Part::Figure11 => figure11::run(quick, write),
        Part::Beside(args) => beside::run(args, quick, write),
        Part::Ratio => ratio::run(quick, write),
        Part::Trips => trips::run(quick, write),
    }
}
