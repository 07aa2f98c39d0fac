//! What the memory can tell by the clock: pairs of request streams with different blocks and
//! contents give commands in the same cycles.

use super::bench::{Ask, Bench, Said};
use super::paper::PAGE;
use super::scheme::scheme;
use super::shape::Shape;
use crate::report::{Report, Table};
use anyhow::{Context, Result, ensure};
use oblivio_engine::tree::MapFormat;
use oblivio_testkit::SplitMix64;

/// How much to compare.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Pairs of streams
    #[arg(long, default_value_t = 100)]
    pairs: usize,
}

/// Requests of a stream.
const REQUESTS: usize = 60;

/// Runs the comparison.
///
/// # Errors
/// The first cycle in which two streams differ.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let mut report = Report::on(PAGE, "timing", "Timing");
    report.text(&format!(
        "Pairs of {REQUESTS} requests for different blocks, with different contents, reads and \
         writes mixed differently, under the same stalls of the memory. The whole map is on-chip, so \
         that each request is one path and what moves are due. In every cycle both streams have \
         the same command, or none."
    ));
    let mut table = Table::new(["scheme", "pairs", "commands of a stream"]);
    for (name, shape, channels) in shapes() {
        let bench = Bench::build(&shape, channels, 16)?;
        let mut commands = 0;
        for seed in 0..args.pairs.div_ceil(2) as u64 {
            commands = pair(&bench, &shape, seed).with_context(|| format!("{name}, {seed}"))?;
        }
        let pairs = args.pairs.div_ceil(2).to_string();
        table.row([name.to_owned(), pairs, commands.to_string()]);
    }
    report.table(&table);
    report.finish(write)
}

/// Flat counters, and groups of which some roll over.
pub fn shapes() -> [(&'static str, Shape, usize); 2] {
    let flat = scheme("PI_X8", 8, 64).expect("a name of the paper");
    let mut compressed = scheme("PIC_X32", 9, 32).expect("a name of the paper");
    compressed.map = MapFormat::Compressed { individual_bits: 6 };
    [("PI_X8", flat, 2), ("PIC_X32", compressed, 4)]
}

/// Compares two streams. The cycles in which one has a command.
///
/// # Errors
/// A cycle in which they differ.
pub fn pair(bench: &Bench, shape: &Shape, seed: u64) -> Result<usize> {
    ensure!(shape.recursion == 1, "each request is one path");
    let stall = (seed % 4) as u32;
    let commands = |which: u64| -> Result<Vec<(u64, bool)>> {
        let mut found = Vec::new();
        for said in bench.run(&stream(shape, seed, which), stall, seed + 1, &["+times"])? {
            match said? {
                Said::Command(cycle, write) => found.push((cycle, write)),
                Said::Failed => anyhow::bail!("the port failed"),
                _ => {}
            }
        }
        Ok(found)
    };
    let (one, other) = (commands(0)?, commands(1)?);
    let unequal = one.iter().zip(&other).find(|(one, other)| one != other);
    ensure!(unequal.is_none(), "{unequal:?}");
    ensure!(one.len() == other.len(), "{} commands, and {}", one.len(), other.len());
    Ok(one.len())
}

/// One of two streams: to few blocks again and again, or to all.
fn stream(shape: &Shape, seed: u64, which: u64) -> Vec<Ask> {
    let mut dice = SplitMix64::new(2 * seed + which);
    let blocks = if which == 0 { 3 } else { shape.blocks() };
    let one = |_| {
        let block = dice.below(blocks);
        if dice.below(3) < which + 1 {
            Ask::Read(block)
        } else {
            Ask::Write(block, std::array::from_fn(|_| dice.below(256) as u8))
        }
    };
    (0..REQUESTS).map(one).collect()
}
