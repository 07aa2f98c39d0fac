//! The hardware controller of Freecursive (section 7.2): its specification as a program, and the
//! comparison of the circuit with it.

mod attacks;
mod backend;
mod backlog;
mod bench;
mod campaign;
mod cosim;
#[cfg(test)]
mod engine;
mod frontend;
mod memory;
mod occupancy;
mod paper;
mod picture;
mod scheme;
mod secrets;
mod shape;
#[cfg(test)]
mod tests;
mod timing;

use anyhow::{Result, bail};
use clap::Subcommand;

/// What to compare.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand, Debug)]
enum Part {
    /// The circuit beside its model: every line and every answer
    Cosim(campaign::Args),
    /// The same with memories that were tampered with
    Tamper(attacks::Args),
    /// Pairs of request streams: the memory's commands come in the same cycles
    Timing(timing::Args),
    /// The stash over many accesses, in the model
    Stash(occupancy::Args),
    /// Draws an access, cycle by cycle
    Picture,
}

/// Runs the experiment.
///
/// # Errors
/// Those of the page, and Verilator's absence.
pub fn run(args: &Args, write: bool) -> Result<()> {
    if let (false, Some(tool)) = (matches!(args.part, Part::Stash(_)), bench::missing()) {
        bail!("{tool} is not installed (Debian's packages are verilator, make and g++)");
    }
    match &args.part {
        Part::Cosim(args) => campaign::run(args, write),
        Part::Tamper(args) => attacks::run(args, write),
        Part::Timing(args) => timing::run(args, write),
        Part::Picture => picture::run(write),
        Part::Stash(args) => occupancy::run(args, write),
    }
}
