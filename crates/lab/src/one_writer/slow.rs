//! Files in a volume of each engine behind a slow line, with real waiting: the work of the
//! `latency` experiment.

use crate::engines::Engine;
use crate::latency;
use crate::report::{Report, Table, bytes};
use anyhow::Result;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Milliseconds of a round trip
    #[arg(long, default_value_t = 50)]
    line_ms: u64,
    /// Megabits a second in each direction
    #[arg(long, default_value_t = 100)]
    megabits: u64,
    /// MiB stored in the volume
    #[arg(long, default_value_t = 256)]
    stored_mib: u64,
    /// MiB read and written in sequence
    #[arg(long, default_value_t = 8)]
    sequential_mib: u64,
    /// Bytes of a block
    #[arg(long, default_value_t = 16384)]
    block_bytes: usize,
}

/// Runs the experiment.
///
/// # Errors
/// Those of the volume and of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let name = "one-writer-slow";
    let mut report =
        Report::new(name, "One writer: tree in windows and pyramid behind a slow line");
    report.text(&format!(
        "The work of \"Behind a slow line\" on a volume of each engine with {} in it and blocks of \
         {}, over a folder behind a round trip of {} ms and {} Mbit/s, with real waiting and the \
         default memory. The pyramid is made for twice as much as is in it.",
        bytes(args.stored_mib << 20),
        bytes(args.block_bytes as u64),
        args.line_ms,
        args.megabits,
    ));
    let work = latency::Args {
        each_way_ms: args.line_ms / 2,
        megabits: args.megabits,
        stored_mib: args.stored_mib,
        sequential_mib: args.sequential_mib,
        block_bytes: Vec::new(),
    };
    let head = ["engine", "work", "time", "round trips", "bytes moved", "user data", "of the line"];
    let (mut table, mut skipped) = (Table::new(head), None);
    for engine in [Engine::Windows, Engine::Pyramid] {
        let (lines, why) = latency::measure(&work, engine, args.block_bytes)?;
        skipped = skipped.or(why);
        for line in lines {
            let [what, time, calls, moved, user, share] = latency::cells(&work, line);
            table.row([engine.name().to_owned(), what, time, calls, moved, user, share]);
        }
    }
    report.table(&table);
    if let Some(why) = skipped {
        report.text(&why);
    }
    report.finish(write)
}
