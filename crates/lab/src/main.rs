//! `oblivio-lab`: experiments that print a table and, with `--write`, keep it in
//! `docs/benchmarks.md` with the machine and the command.
#![allow(clippy::print_stdout, reason = "a program that prints tables")]

mod buckets;
mod clock;
mod report;
mod sweep;
mod workload;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Oblivio's experiments; each prints a table")]
struct Cli {
    #[command(subcommand)]
    experiment: Experiment,
    /// Replace the experiment's section in docs/benchmarks.md.
    #[arg(long, global = true)]
    write: bool,
}

#[derive(Subcommand)]
enum Experiment {
    /// Block size against bucket size and eviction.
    Sweep(sweep::Args),
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    match &cli.experiment {
        Experiment::Sweep(args) => sweep::run(args, cli.write),
    }
}
