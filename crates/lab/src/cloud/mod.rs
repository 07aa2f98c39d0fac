//! The evaluation of "Optimizing Path ORAM for Cloud Storage Applications" (Wolfe, Zou, Ren, Yu),
//! repeated with one command for each table and figure.

mod corpus;
mod figure5;
mod figure6;
mod figure6_report;
mod figure7;
mod figure8;
mod groups;
mod ranks;
mod sizes;
mod space;
mod table1;
mod total;
mod watched;
mod ways;

use anyhow::Result;
use clap::Subcommand;
use std::path::PathBuf;

/// Which experiment.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    part: Part,
    /// Small amounts of everything: shows that it works, not what it costs
    #[arg(long, global = true)]
    quick: bool,
}

#[derive(Subcommand, Debug)]
enum Part {
    /// The distribution of file sizes.
    Figure4,
    /// Disk, disk and encryption, disk and oblivious RAM
    Table1 {
        /// A directory on the disk to measure; by default the system's for temporary files.
        #[arg(long)]
        dir: Option<PathBuf>,
    },
    /// Segment and bucket size against throughput
    Figure5,
    /// Several segments at a time: groups and batches, and what the store can distinguish
    Figure6,
    /// Packing.
    Figure7,
    /// A tree that follows its content
    Figure8,
    /// All optimizations against none.
    Total,
}

/// Runs one.
///
/// # Errors
/// Those of the experiment.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let quick = args.quick;
    match &args.part {
        Part::Figure4 => sizes::run(if quick { 100 } else { 1000 }, write),
        Part::Table1 { dir } => table1::run(dir.as_deref(), quick, write),
        Part::Figure5 => figure5::run(quick, write),
        Part::Figure6 => figure6::run(quick, write),
        Part::Figure7 => figure7::run(quick, write),
        Part::Figure8 => figure8::run(quick, write),
        Part::Total => total::run(quick, write),
    }
}
