//! The sequential engine (SqORAM): what it costs, counted on its schedule and measured in memory.

mod cost;
mod speed;

use anyhow::Result;
use clap::Subcommand;

/// Which experiment.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand, Debug)]
enum Part {
    /// Bytes written and stored for each byte of data, from 1 GiB to 1 TiB, on the schedule alone.
    Cost,
    /// The engine over plain memory: megabytes a second, and what it reads for them.
    Speed(speed::Args),
}

/// Runs one.
///
/// # Errors
/// Its own.
pub fn run(args: &Args, write: bool) -> Result<()> {
    match &args.part {
        Part::Cost => cost::run(write),
        Part::Speed(args) => speed::run(args, write),
    }
}
