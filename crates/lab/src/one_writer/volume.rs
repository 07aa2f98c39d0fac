//! Random accesses to volumes of both engines over memory, by turns, each in its own process.

use super::side::{self, Round, SYNC_EVERY};
use crate::engines::Engine;
use crate::report::{Report, Table, bytes, count, median};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Volumes: the logarithm of the number of blocks, the bytes of a block, the MiB of the budget
    #[arg(long, value_delimiter = ',', default_values = ["16:4096:64", "20:1024:448"])]
    volumes: Vec<String>,
    /// Operations in a batch
    #[arg(long, value_delimiter = ',', default_value = "1,32")]
    batches: Vec<usize>,
    /// Rounds; the tables show the medians
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of processor time for each engine in each round
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Milliseconds that a slow line adds to each call
    #[arg(long, default_value_t = 50)]
    line_ms: u64,
    /// Megabits a second of that line
    #[arg(long, default_value_t = 100)]
    megabits: u64,
}

/// A side in its process.
struct Contender {
    engine: Engine,
    child: Child,
    tell: ChildStdin,
    hear: BufReader<ChildStdout>,
}

impl Contender {
    fn start(args: side::Args) -> Result<Self> {
        let side::Args { engine, blocks, block_bytes, memory_bytes } = args;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["one-writer", "side", "--engine", engine.name()]);
        command.args(["--blocks", &blocks.to_string()]);
        command.args(["--block-bytes", &block_bytes.to_string()]);
        command.args(["--memory-bytes", &memory_bytes.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let tell = child.stdin.take().context("a pipe")?;
        let hear = BufReader::new(child.stdout.take().context("a pipe")?);
        Ok(Self { engine, child, tell, hear })
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.hear.read_line(&mut line)? > 0, "the {} failed", self.engine.name());
        Ok(line.trim().to_owned())
    }

    fn round(&mut self, seconds: f64, batch: usize, seed: usize) -> Result<Round> {
        writeln!(self.tell, "{seconds} {batch} {seed}")?;
        Round::heard(&self.answer()?)
    }

    /// Ends it, which frees its memory.
    fn end(self) -> Result<()> {
        let Self { mut child, tell, .. } = self;
        drop(tell);
        ensure!(child.wait()?.success(), "a side failed at its end");
        Ok(())
    }
}

/// Runs the comparison.
///
/// # Errors
/// Those of the sides and of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let mut report = Report::new("one-writer", "One writer: tree and pyramid, as volumes");
    report.text(&explanation(args));
    let head = [
        "volume",
        "batch",
        "engine",
        "accesses/s",
        "ratio",
        "read",
        "written",
        "calls",
        "longest",
        "behind the line",
        "ratio",
    ];
    let mut speed = Table::new(head);
    let mut space = Table::new(["volume", "engine", "stored / blocks", "peak memory", "budget"]);
    for volume in &args.volumes {
        compare(args, volume, &mut speed, &mut space)?;
    }
    report.table(&speed);
    report.table(&space);
    report.finish(write)
}

fn explanation(args: &Args) -> String {
    format!(
        "Both engines make volumes of the same blocks over a store in memory, with the same memory \
         budget; the pyramid's stash is an eighth of it. One thread makes uniformly random reads \
         and writes, half and half, in batches with the reads first. It syncs after each \
         {SYNC_EVERY}. Every block was written before, and as many random writes made since. Each \
         engine works in a process of its own, by turns; medians of {} rounds of {} seconds of \
         processor time. `read`, `written` and `calls` (to the store) are of each access, with \
         journal, merges and commits. `longest` is the processor time of the longest batch in a \
         round. `behind the line` is accesses per second if each call takes {} ms more and the \
         bytes pass at {} Mbit/s: counted calls and bytes, as the slow store of the tests waits \
         for them. Nobody overlaps calls, and neither engine does. `peak memory` is the resident \
         set without what the store holds, looked at in each write of 64 KiB and more.",
        args.rounds, args.seconds, args.line_ms, args.megabits
    )
}

/// The volume that a text asks for.
fn parsed(volume: &str) -> Result<(u32, usize, usize)> {
    let parts: Vec<&str> = volume.split(':').collect();
    let [log, block, memory] = parts[..] else { anyhow::bail!("log:bytes:MiB, not {volume}") };
    Ok((log.parse()?, block.parse()?, memory.parse()?))
}

fn compare(args: &Args, volume: &str, speed: &mut Table, space: &mut Table) -> Result<()> {
    let (log, block_bytes, mib) = parsed(volume)?;
    let (blocks, memory_bytes) = (1u64 << log, mib << 20);
    let mut sides = Vec::new();
    for engine in Engine::BOTH {
        sides.push(Contender::start(side::Args { engine, blocks, block_bytes, memory_bytes })?);
    }
    for side in &mut sides {
        ensure!(side.answer()? == "ready", "a side is ready once it is full");
        eprintln!("{volume}: {} is full", side.engine.name());
    }
    let name = format!("2^{log} of {}", bytes(block_bytes as u64));
    let mut last = [Round::default(); 2];
    for &batch in &args.batches {
        let mut found = [Vec::new(), Vec::new()];
        for round in 0..=args.rounds {
            for (at, side) in sides.iter_mut().enumerate() {
                last[at] = side.round(args.seconds, batch, round)?;
                eprintln!("{name} x{batch} {}: {:?}", side.engine.name(), last[at]);
                // The first warms up.
                if round > 0 {
                    found[at].push(last[at]);
                }
            }
        }
        rows(args, &name, batch, &found, speed);
    }
    for (side, last) in sides.into_iter().zip(last) {
        space.row([
            name.clone(),
            side.engine.name().to_owned(),
            format!("{:.2}", last.stored as f64 / (blocks * block_bytes as u64) as f64),
            bytes(last.memory),
            bytes(memory_bytes as u64),
        ]);
        side.end()?;
    }
    Ok(())
}

/// Accesses a second behind the line.
fn behind(args: &Args, round: &Round) -> f64 {
    let moved = (round.passed.down + round.passed.up) as f64;
    let waited = round.passed.calls as f64 * args.line_ms as f64 / 1e3
        + moved * 8.0 / (args.megabits as f64 * 1e6);
    round.accesses as f64 / (round.seconds + waited)
}

fn rows(args: &Args, name: &str, batch: usize, found: &[Vec<Round>; 2], table: &mut Table) {
    let of = |rounds: &[Round], value: &dyn Fn(&Round) -> f64| {
        median(&rounds.iter().map(value).collect::<Vec<_>>())
    };
    let each = |rounds: &[Round], value: &dyn Fn(&Round) -> u64| {
        of(rounds, &|round| value(round) as f64 / round.accesses as f64)
    };
    let rate = |rounds: &[Round]| of(rounds, &|round| round.accesses as f64 / round.seconds);
    let slow = |rounds: &[Round]| of(rounds, &|round| behind(args, round));
    for (engine, rounds) in Engine::BOTH.iter().zip(found) {
        table.row([
            name.to_owned(),
            batch.to_string(),
            engine.name().to_owned(),
            count(rate(rounds)),
            format!("{:.2}", rate(rounds) / rate(&found[0])),
            bytes(each(rounds, &|round| round.passed.down) as u64),
            bytes(each(rounds, &|round| round.passed.up) as u64),
            format!("{:.2}", each(rounds, &|round| round.passed.calls)),
            format!("{:.0} ms", of(rounds, &|round| round.longest * 1e3)),
            format!("{:.1}/s", slow(rounds)),
            format!("{:.2}", slow(rounds) / slow(&found[0])),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::one_writer::counted::Passed;

    #[test]
    fn a_line_adds_its_waiting() -> Result<()> {
        let args = Args {
            volumes: Vec::new(),
            batches: Vec::new(),
            rounds: 1,
            seconds: 1.0,
            line_ms: 50,
            megabits: 8,
        };
        let passed = Passed { calls: 10, down: 400_000, up: 100_000 };
        let round = Round { accesses: 20, seconds: 1.0, passed, ..Round::default() };
        // 1 s of work, 0.5 s of calls, 0.5 s of bytes.
        assert!((behind(&args, &round) - 10.0).abs() < 1e-9);
        assert_eq!(parsed("16:4096:64")?, (16, 4096, 64));
        assert!(parsed("16").is_err());
        Ok(())
    }
}
