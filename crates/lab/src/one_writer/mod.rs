//! The two engines that have an adversary who sees reads too, side by side: tree and pyramid, as
//! volumes of one writer. The same store, memory and work, by turns.

mod counted;
mod files;
mod side;
mod slow;
mod volume;

use crate::served;
use anyhow::Result;
use clap::Subcommand;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand, Debug)]
enum Part {
    /// Random accesses to volumes over memory, and what a slow line adds
    Volume(volume::Args),
    /// Files on a mount
    Mounted(files::Args),
    /// Files in a volume behind a slow line, with real waiting
    Slow(slow::Args),
    /// One engine of `volume`, which the parent starts
    #[command(hide = true)]
    Side(side::Args),
    /// A mount, which the parent starts
    #[command(hide = true)]
    Served(served::Args),
}

/// Runs one.
///
/// # Errors
/// Those of the experiment.
pub fn run(args: &Args, write: bool) -> Result<()> {
    match &args.part {
        Part::Volume(args) => volume::run(args, write),
        Part::Mounted(args) => files::run(args, write),
        Part::Slow(args) => slow::run(args, write),
        Part::Side(args) => side::run(args),
        Part::Served(args) => served::run(args),
    }
}
