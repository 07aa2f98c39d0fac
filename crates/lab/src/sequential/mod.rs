//! The sequential engine (SqORAM): its cost, counted on its schedule and measured in memory; and
//! its disks beside others, over NBD.

mod area;
mod bench;
mod beside;
mod cost;
mod detwo;
mod disk;
mod fio;
mod paper;
mod plain;
mod served;
mod speed;
mod systems;
mod turning;
mod waiting;
mod writes;

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
    /// Bytes written and stored for each byte of data, from 1 GiB to 1 TiB, on the schedule alone
    Cost,
    /// The engine over plain memory: megabytes a second, and the reads behind them
    Speed(speed::Args),
    /// Disks side by side: fio's jobs over NBD
    Disk(bench::Bench),
    /// The same, beside the figures of the authors' own code; for `--size 1G --warm`
    OwnCode(bench::Bench),
    /// Sequential reads before and after random writes (the paper's Table 2)
    Ageing(paper::Ageing),
    /// Sequential and random access (the paper's Table 1)
    Table1(bench::Bench),
    /// Sequential, random and mixed access, plotted (the paper's Figure 7)
    Figure7(bench::Bench),
    /// Ageing and the mix of 70 % reads, on the model of a rotating disk
    Seeks(paper::Ageing),
    /// Started by the others to serve a disk
    #[command(hide = true)]
    Serve(served::Args),
}

/// Runs one.
///
/// # Errors
/// Those of the experiment.
pub fn run(args: &Args, write: bool) -> Result<()> {
    match &args.part {
        Part::Cost => cost::run(write),
        Part::Speed(args) => speed::run(args, write),
        Part::Disk(bench) => disk::run(bench, write),
        Part::OwnCode(bench) => disk::own_code(bench, write),
        Part::Ageing(args) => paper::ageing(args, write),
        Part::Table1(bench) => paper::table1(bench, write),
        Part::Figure7(bench) => paper::figure7(bench, write),
        Part::Seeks(args) => paper::seeks(args, write),
        Part::Serve(args) => served::run(args),
    }
}
