//! `oblivio-lab`: experiments that print a table and, with `--write`, keep it in
//! `docs/benchmarks.md` with the machine and the command.
#![allow(clippy::disallowed_methods, reason = "a program reads clocks, starts threads and waits")]
#![allow(clippy::print_stdout, reason = "a program that prints tables")]

mod breathe;
mod buckets;
mod clock;
mod cloud;
mod contender;
mod defaults;
mod engine;
mod engines;
mod exercise;
mod figure7;
mod files;
mod growth;
mod hardware;
mod hold;
mod integrity;
mod latency;
mod lock;
mod mapped;
mod mounted;
mod moved;
mod online;
mod papers;
mod plot;
mod privatefs;
mod processor;
mod profile;
mod pyramid;
mod recursive;
mod report;
#[cfg(feature = "rivals")]
mod rivals;
mod sequential;
mod served;
mod share;
mod slow_syncs;
mod stash;
mod sweep;
mod tool;
mod workload;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Oblivio's experiments; each prints a table")]
struct Cli {
    #[command(subcommand)]
    experiment: Experiment,
    /// Replace the experiment's section in docs/benchmarks.md
    #[arg(long, global = true)]
    write: bool,
}

#[derive(Subcommand)]
enum Experiment {
    /// The engine beside other ORAM libraries
    Engine(engine::Args),
    /// Where the engine's time goes
    Profile(profile::Args),
    /// The pyramid engine beside the tree, in memory
    Pyramid(pyramid::Args),
    /// A mount, which another experiment starts
    #[command(hide = true)]
    Served(served::Args),
    /// The figures of "PrivateFS: A Parallel Oblivious File System"
    PrivatefsPaper(privatefs::Args),
    /// A shared volume: the real server, clients, and a line that is far away
    Share(share::Args),
    /// How cost grows with the number of blocks
    Growth(growth::Args),
    /// Stash occupancy over millions of accesses, and what their paths reveal
    Stash(stash::Args),
    /// PMMAC beside the tag tree
    Integrity(integrity::Args),
    /// Freecursive in a processor: traces of misses, Table 2, Figures 5, 6, 8 and 9
    Processor(processor::Args),
    /// Freecursive's controller as a circuit, beside its model
    Hardware(hardware::Args),
    /// Bytes moved by the named configurations (Freecursive, Figure 7)
    Figure7(figure7::Args),
    /// Files on a local disk, beside plain sealed files
    Files(files::Args),
    /// A mounted volume beside gocryptfs, by fio
    Mounted(mounted::Args),
    /// The bytes that a volume moves: by a formula, by its own counts, at the store
    Moved(moved::Args),
    /// A volume behind a slow link
    Latency(latency::Args),
    /// A tree in an online store: requests, bytes and bills, beside the cloud paper's layout
    Online(online::Args),
    /// A volume that grows and is emptied again: space on the disk, and pauses
    Breathe(breathe::Args),
    /// The tables and figures of "Optimizing Path ORAM for Cloud Storage Applications"
    Cloud(cloud::Args),
    /// The sequential engine: what it writes and stores, and how fast it is
    Sequential(sequential::Args),
    /// Block size against bucket size and eviction
    Sweep(sweep::Args),
    /// Random operations on files, compared with a model; prints no table
    Exercise(exercise::Args),
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    match &cli.experiment {
        Experiment::Engine(args) => engine::run(args, cli.write),
        Experiment::Profile(args) => profile::run(args, cli.write),
        Experiment::Pyramid(args) => pyramid::run(args, cli.write),
        Experiment::Served(args) => served::run(args),
        Experiment::PrivatefsPaper(args) => privatefs::run(args, cli.write),
        Experiment::Share(args) => share::run(args, cli.write),
        Experiment::Growth(args) => growth::run(args, cli.write),
        Experiment::Stash(args) => stash::run(args, cli.write),
        Experiment::Integrity(args) => integrity::run(args, cli.write),
        Experiment::Processor(args) => processor::run(args, cli.write),
        Experiment::Hardware(args) => hardware::run(args, cli.write),
        Experiment::Figure7(args) => figure7::run(args, cli.write),
        Experiment::Files(args) => files::run(args, cli.write),
        Experiment::Mounted(args) => mounted::run(args, cli.write),
        Experiment::Moved(args) => moved::run(args, cli.write),
        Experiment::Latency(args) => latency::run(args, cli.write),
        Experiment::Online(args) => online::run(args, cli.write),
        Experiment::Breathe(args) => breathe::run(args, cli.write),
        Experiment::Cloud(args) => cloud::run(args, cli.write),
        Experiment::Sequential(args) => sequential::run(args, cli.write),
        Experiment::Sweep(args) => sweep::run(args, cli.write),
        Experiment::Exercise(args) => exercise::run(args),
    }
}
