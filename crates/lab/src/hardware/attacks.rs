//! Memories that were tampered with (Freecursive sections 6.1 and 6.4): the circuit ends where the
//! model says, never with a wrong answer, and no pad comes twice.

use super::bench::{Ask, Bench};
use super::cosim::compare;
use super::paper::PAGE;
use super::scheme::{requests, scheme};
use super::shape::{LINE, Shape};
use crate::report::{Report, Table};
use anyhow::{Context, Result, ensure};
use oblivio_testkit::SplitMix64;

/// How much to try.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Memories to tamper with
    #[arg(long, default_value_t = 1000)]
    memories: usize,
}

/// What is done to a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// A bit of a path is flipped.
    Flip,
    /// A bucket is put back as it was.
    Replay,
    /// A bucket's seed alone is put back: the attack of section 6.4.
    Seed,
    /// A bucket becomes zeros, as if it had never been written.
    Wipe,
}

/// All of them.
pub const ATTACKS: [Attack; 4] = [Attack::Flip, Attack::Replay, Attack::Seed, Attack::Wipe];

/// Requests before and after.
const BEFORE: usize = 60;
const AFTER: usize = 120;

/// Runs the attacks.
///
/// # Errors
/// The first difference between circuit and model, or a wrong answer.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let mut report = Report::on(PAGE, "tamper", "Memories that were tampered with");
    report.text(&format!(
        "{BEFORE} requests; then the memory is changed; then {AFTER} more. A change on a path near \
         the root is met by the next request, one below perhaps never. The circuit and the model \
         said the same to the end, each answer was right, and no bucket was written under a seed \
         that had been used."
    ));
    let mut table =
        Table::new(["what is done", "memories", "the port ended", "met too late or never"]);
    let bench = builds()?;
    for attack in ATTACKS {
        let count = args.memories / ATTACKS.len();
        let mut ended = 0;
        for seed in 0..count as u64 {
            ended += usize::from(one(&bench, attack, seed)?);
        }
        ensure!(ended > 0 || count < 20, "{attack:?} is never found");
        let name = match attack {
            Attack::Flip => "a bit flipped",
            Attack::Replay => "a bucket put back as it was",
            Attack::Seed => "a bucket's seed put back",
            Attack::Wipe => "a bucket zeroed",
        };
        let cells = [count, ended, count - ended].map(|it| it.to_string());
        table.row(std::iter::once(name.to_owned()).chain(cells));
    }
    report.table(&table);
    report.finish(write)
}

/// The shape of the circuit that is attacked.
pub fn small() -> Shape {
    scheme("PI_X8", 6, 4).expect("a name of the paper")
}

/// That circuit.
///
/// # Errors
/// Those of Verilator.
pub fn builds() -> Result<Bench> {
    Bench::build(&small(), 2, 14)
}

/// Attacks a memory. Whether the port ended.
///
/// # Errors
/// A difference, or a wrong answer.
pub fn one(bench: &Bench, attack: Attack, seed: u64) -> Result<bool> {
    let shape = small();
    let mut dice = SplitMix64::new(seed ^ 0x7a3b);
    let lines = shape.bucket_lines() as u64;
    let leaf = dice.below(1 << shape.depth) as u32;
    let level = dice.below(u64::from(shape.depth) / 2 + 1) as usize;
    let bucket = shape.path(leaf).nth(level).context("a bucket of the path")?;
    let first = bucket * lines;
    let mut asks = requests(&shape, BEFORE + AFTER, seed);
    let after = asks.split_off(BEFORE);
    match attack {
        Attack::Flip => {
            let mut mask = [0; LINE];
            mask[dice.below(LINE as u64) as usize] = 1 << dice.below(8);
            asks.push(Ask::Flip(first + dice.below(lines), mask));
        }
        Attack::Replay | Attack::Seed => {
            // As it was half-way.
            let half: Vec<Ask> = (first..first + lines).map(Ask::Keep).collect();
            asks.splice(BEFORE / 2..BEFORE / 2, half);
            let back = if attack == Attack::Seed { 1 } else { lines };
            asks.extend((first..first + back).map(Ask::PutBack));
        }
        Attack::Wipe => asks.extend((first..first + lines).map(Ask::Zero)),
    }
    asks.extend(after);
    let outcome = compare(bench, shape, &asks, 2, seed + 1)
        .with_context(|| format!("{attack:?}, seed {seed}"))?;
    Ok(outcome.failed)
}
