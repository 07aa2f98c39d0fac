//! A shared volume as it is used: the real server over TLS in a process of its own, real clients,
//! and a line that delays what passes.

mod crowd;
mod files;
mod memory;
pub mod mounts;
pub mod place;
pub mod process;
pub mod proxy;
mod seen;
mod speed;

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
    /// Queries of many clients at the same time, beside the paper's construction
    Speed(speed::Args),
    /// The memory of a mount that is the scribe, and of one that is not
    Memory(memory::Args),
    /// Files of a mount that is far away
    Files(files::Args),
    /// The line, a process that the others start
    #[command(hide = true)]
    Proxy(proxy::Args),
}

/// Runs it.
///
/// # Errors
/// Those of the experiment.
pub fn run(args: &Args, write: bool) -> Result<()> {
    match &args.part {
        Part::Speed(args) => speed::run(args, write),
        Part::Memory(args) => memory::run(args, write),
        Part::Files(args) => files::run(args, write),
        Part::Proxy(args) => proxy::run(args),
    }
}
