//! What the memory can tell by the clock: pairs of request streams with different blocks and
//! contents give commands in the same cycles.

use super::bench::{Ask, Bench, Said};
use super::paper::PAGE;
use super::scheme::{requests, scheme};
use super::shape::{Block, LINE, Shape};
use crate::report::{Report, Table};
use anyhow::{Context, Result, ensure};
use oblivio_engine::tree::MapFormat;
use oblivio_testkit::SplitMix64;
use std::collections::{HashMap, VecDeque};

/// How much to compare.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Pairs of streams
    #[arg(long, default_value_t = 100)]
    pairs: usize,
}

/// Requests of a stream.
const REQUESTS: usize = 60;
/// Cycles between the starts of paths, where there is a pace.
const INTERVAL: u64 = 700;

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
    report.text(&format!(
        "With a path every {INTERVAL} cycles: {} pairs of streams that ask for different numbers of \
         blocks, with pauses of different lengths, in a tree whose map recurses. Up to the cycle in \
         which the shorter run ends, both have the same commands in the same cycles, and every \
         answer is right.",
        args.pairs
    ));
    let (shape, channels) = paced();
    let bench = Bench::build(&shape, channels, 16)?;
    for seed in 0..args.pairs as u64 {
        paced_pair(&bench, &shape, seed).with_context(|| format!("paced, {seed}"))?;
    }
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

/// A circuit with a pace.
pub fn paced() -> (Shape, usize) {
    let shape = scheme("PI_X8", 8, 16).expect("a name of the paper");
    (Shape { interval: INTERVAL, ..shape }, 2)
}

/// Compares two streams under a pace, and checks their answers. The commands that were compared.
///
/// # Errors
/// A cycle in which they differ, or a wrong answer.
pub fn paced_pair(bench: &Bench, shape: &Shape, seed: u64) -> Result<usize> {
    let run = |which: u64| -> Result<Vec<(u64, bool)>> {
        let (asks, mut wanted) = paused(shape, seed, which);
        let mut found = Vec::new();
        for said in bench.run(&asks, 0, seed + 1, &["+times"])? {
            match said? {
                Said::Command(cycle, write) => found.push((cycle, write)),
                Said::Answer(content, _) => {
                    ensure!(wanted.pop_front() == Some(content), "a wrong answer");
                }
                Said::Failed => anyhow::bail!("the port failed"),
                _ => {}
            }
        }
        ensure!(wanted.is_empty(), "{} answers are missing", wanted.len());
        Ok(found)
    };
    let (one, other) = (run(0)?, run(1)?);
    let unequal = one.iter().zip(&other).find(|(one, other)| one != other);
    ensure!(unequal.is_none(), "{unequal:?}");
    Ok(one.len().min(other.len()))
}

/// One of two streams with pauses, and what its reads must answer.
fn paused(shape: &Shape, seed: u64, which: u64) -> (Vec<Ask>, VecDeque<Block>) {
    let mut dice = SplitMix64::new(4 * seed + which);
    let (mut truth, mut answers) = (HashMap::new(), VecDeque::new());
    let mut asks = Vec::new();
    for ask in requests(shape, REQUESTS / 3 * (1 + which as usize), 2 * seed + which) {
        match ask {
            Ask::Read(block) => answers.push_back(*truth.get(&block).unwrap_or(&[0; LINE])),
            Ask::Write(block, content) => drop(truth.insert(block, content)),
            _ => {}
        }
        asks.push(ask);
        if dice.below(3) == 0 {
            asks.push(Ask::Delay(dice.below(3000)));
        }
    }
    (asks, answers)
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
