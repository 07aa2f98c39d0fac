//! The tracer beside Valgrind's cachegrind, with the same caches.

use super::paper::PAGE;
use super::programs::{Program, SHORT};
use super::qemu::{Extent, Qemu, clean, run as run_command};
use crate::report::{Report, Table, count};
use anyhow::{Context, Result, ensure};
use oblivio_tracer::caches::Kind;
use oblivio_tracer::record::Reader;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// What to compare.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Where traces go, and in `inputs` what the programs read
    #[arg(long, default_value = "target/traces")]
    out: PathBuf,
    /// The folder with the tracer's plugin; by default that of this program
    #[arg(long)]
    tracer: Option<PathBuf>,
}

/// What both count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counted {
    instructions: u64,
    l1d: u64,
    l2: u64,
    /// Of those of L2, the stores.
    stores: u64,
}

/// The most that they may differ by, in percent: instructions, then misses.
const MOST: [f64; 4] = [0.1, 1.0, 1.0, 1.0];
/// A program with fewer instructions says little.
const LEAST_INSTRUCTIONS: u64 = 1_000_000_000;

/// Runs the experiment.
///
/// # Errors
/// A program or a tool is missing; the two differ by more than they may; two traces differ.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let qemu = Qemu::find(args.tracer.as_deref(), &args.out)?;
    let mut report = Report::on(PAGE, "tracer", "The tracer beside cachegrind");
    report.text(
        "Whole runs of three programs, traced and run by Valgrind's cachegrind with the same \
         caches. Each was traced twice. The programs get another processor from each simulator, so \
         the C library may choose another version of its functions for strings. `hmm2search` takes \
         all its memory from the heap here (`MALLOC_MMAP_MAX_=0`): elsewhere the simulators place \
         large arrays differently, which alone changes its misses in L1 by 44 %.",
    );
    let mut table = Table::new([
        "program",
        "counted",
        "tracer",
        "cachegrind",
        "difference",
        "at most",
        "two traces",
    ]);
    let mut far = Vec::new();
    for program in &SHORT {
        let ready = program.prepare(&qemu.inputs, &qemu.examples)?;
        let names = [1, 2].map(|run| args.out.join(format!("{}-{run}.check", program.name)));
        let extent = Extent { skip: 0, measure: u64::MAX, misses: u64::MAX, line: 64 };
        let traced = qemu.trace(program, &ready, extent, &names[0])?;
        qemu.trace(program, &ready, extent, &names[1])?;
        let same = std::fs::read(&names[0])? == std::fs::read(&names[1])?;
        let totals = traced.header.totals;
        let ours = Counted {
            instructions: totals.instructions,
            l1d: totals.counts.l1d_misses,
            l2: totals.counts.l2_misses,
            stores: stores(&names[0])?,
        };
        let theirs = cachegrind(program, &ready.path, &qemu.inputs)?;
        ensure!(ours.instructions >= LEAST_INSTRUCTIONS, "{}: too short", program.name);
        let pairs = [
            ("instructions", ours.instructions, theirs.instructions),
            ("L1D misses", ours.l1d, theirs.l1d),
            ("L2 misses", ours.l2, theirs.l2),
            ("L2 misses of stores", ours.stores, theirs.stores),
        ];
        for ((what, ours, theirs), most) in pairs.into_iter().zip(MOST) {
            let difference = 100.0 * (ours as f64 / theirs as f64 - 1.0);
            table.row([
                program.name.to_owned(),
                what.to_owned(),
                count(ours as f64),
                count(theirs as f64),
                format!("{difference:+.3} %"),
                format!("{most} %"),
                if same { "equal" } else { "different" }.to_owned(),
            ]);
            if !(difference.abs() <= most && same) {
                far.push(format!("{}: {what} {difference:+.3} %, equal: {same}", program.name));
            }
        }
        names.iter().try_for_each(std::fs::remove_file)?;
    }
    report.table(&table);
    report.finish(write && far.is_empty())?;
    ensure!(far.is_empty(), "{}", far.join("; "));
    Ok(())
}

fn cachegrind(program: &Program, path: &Path, folder: &Path) -> Result<Counted> {
    let mut command = clean("valgrind", folder);
    command.envs(program.environment.iter().copied());
    command.args(["--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null"]);
    command.args(["--I1=32768,4,64", "--D1=32768,4,64", "--LL=1048576,16,64"]);
    command.arg(path).args(program.arguments.split(' '));
    let (said, _) = run_command(&mut command, None)
        .context("valgrind is missing or fails (apt install valgrind)")?;
    let read = |name: &str| {
        let line = said.lines().find_map(|line| line.split_once(name));
        let number = line.and_then(|(_, rest)| rest.split_whitespace().next());
        let number = number.and_then(|text| text.replace(',', "").parse().ok());
        number.with_context(|| format!("cachegrind says nothing of {name}"))
    };
    // `LL misses: 3 ( 2 rd + 1 wr)`
    let stores = said.lines().find(|line| line.contains("LL misses:"));
    let stores = stores.and_then(|line| line.split('+').nth(1)?.split_whitespace().next());
    let stores = stores.and_then(|text| text.replace(',', "").parse().ok());
    Ok(Counted {
        instructions: read("I   refs:")?,
        l1d: read("D1  misses:")?,
        l2: read("LL misses:")?,
        stores: stores.context("cachegrind says nothing of stores")?,
    })
}

/// Misses of stores in a trace.
fn stores(path: &Path) -> Result<u64> {
    let mut stores = 0;
    for record in Reader::new(BufReader::new(File::open(path)?))? {
        stores += u64::from(record?.kind == Kind::Store);
    }
    Ok(stores)
}
