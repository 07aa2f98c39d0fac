//! Traces of programs: what memory is asked for when the caches of Table 1 do not have it.

use super::paper::PAGE;
use super::programs::{ALL, Program};
use super::qemu::{Extent, Qemu, Traced};
use crate::report::{Report, Table, bytes, count};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// What to trace.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// A program, or all
    #[arg(default_value = "all")]
    program: String,
    /// Instructions that warm the caches up
    #[arg(long, default_value_t = 1_000_000_000)]
    warm: u64,
    /// Instructions that are traced
    #[arg(long, default_value_t = 3_000_000_000)]
    measure: u64,
    /// Misses that are traced, at most
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    misses: u64,
    /// Bytes of a cache line
    #[arg(long, default_value_t = 64)]
    line: u32,
    /// Programs that are traced at the same time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Where traces go, and in `inputs` what the programs read
    #[arg(long, default_value = "target/traces")]
    out: PathBuf,
    /// The folder with the tracer's plugin; by default that of this program
    #[arg(long)]
    tracer: Option<PathBuf>,
}

impl Args {
    fn extent(&self, program: &Program) -> Extent {
        let skip = self.warm + program.reading;
        Extent { skip, measure: self.measure, misses: self.misses, line: self.line }
    }
}

/// Runs the experiment.
///
/// # Errors
/// Those of QEMU, of the page, and an unknown program. A program that cannot be traced is named.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let programs: Vec<&Program> =
        ALL.iter().filter(|it| args.program == "all" || args.program == it.name).collect();
    let known = ALL.map(|it| it.name).join(", ");
    ensure!(!programs.is_empty(), "{}: not known; there are all, {known}", args.program);
    let qemu = Qemu::find(args.tracer.as_deref(), &args.out)?;
    let begin = std::time::Instant::now();
    let traced = side_by_side(&programs, args.jobs, |program| {
        let ready = program.prepare(&qemu.inputs, &qemu.examples)?;
        qemu.trace(program, &ready, args.extent(program), &place(&args.out, program))
    });
    let seconds = begin.elapsed().as_secs_f64();
    let skipped: Vec<String> = programs
        .iter()
        .zip(&traced)
        .filter_map(|(program, it)| Some(format!("{}: {:#}", program.name, it.as_ref().err()?)))
        .collect();
    for line in &skipped {
        println!("skipped: {line}");
    }
    if args.program == "all" {
        page(args, &programs, &traced, &skipped, seconds)?.finish(write)?;
    } else {
        println!("{}", table(&programs, &traced).render());
        ensure!(skipped.is_empty(), "it could not be traced");
    }
    Ok(())
}

fn place(out: &Path, program: &Program) -> PathBuf {
    out.join(format!("{}.trace", program.name))
}

/// Does the same with each program, with this many at once.
fn side_by_side<T: Send>(
    programs: &[&Program],
    jobs: usize,
    work: impl Fn(&Program) -> T + Sync,
) -> Vec<T> {
    let waiting = Mutex::new(programs.iter().enumerate());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().map(|mut it| it.next());
                    let Ok(Some((at, program))) = next else { break };
                    println!("{} ...", program.name);
                    let result = work(program);
                    if let Ok(mut done) = done.lock() {
                        done.push((at, result));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

fn table(programs: &[&Program], traced: &[Result<Traced>]) -> Table {
    let mut table = Table::new([
        "paper",
        "program",
        "skipped",
        "instructions",
        "cycles",
        "MPKI",
        "misses",
        "written back",
        "trace",
        "processor time",
    ]);
    for (program, traced) in programs.iter().zip(traced) {
        let Ok(Traced { header, bytes: long, seconds }) = traced else { continue };
        let totals = header.totals;
        let mpki = 1000.0 * totals.counts.l2_misses as f64 / totals.instructions as f64;
        table.row([
            program.paper.to_owned(),
            program.name.to_owned(),
            count(totals.skipped as f64),
            count(totals.instructions as f64),
            count(totals.cycles as f64),
            format!("{mpki:.2}"),
            count(totals.counts.l2_misses as f64),
            count(totals.counts.evictions as f64),
            bytes(*long),
            format!("{seconds:.0} s"),
        ]);
    }
    table
}

fn page(
    args: &Args,
    programs: &[&Program],
    traced: &[Result<Traced>],
    skipped: &[String],
    seconds: f64,
) -> Result<Report> {
    let (name, title) = match args.line {
        64 => ("traces", "Traces".to_owned()),
        line => ("traces-wide", format!("Traces with lines of {line} bytes")),
    };
    let mut report = Report::on(PAGE, name, &title);
    report.text(&format!(
        "Programs that stand for the paper's, under QEMU's user mode with `crates/tracer` inside: \
         L1 of 32 KB for instructions and for data (4-way), L2 of 1 MB (16-way), LRU, lines of {} \
         bytes, and an in-order core with the latencies of Table 1. {} instructions warm the caches \
         up and {} are traced. A miss is a line that L2 does not have, for a load, a store or a \
         fetch; `cycles` are without waiting for memory. {} programs at a time took {seconds:.0} s \
         in all, and {} s of processor time. The format is in [traces.md](traces.md).",
        args.line,
        count(args.warm as f64),
        count(args.measure as f64),
        args.jobs,
        count(traced.iter().flatten().map(|it| it.seconds).sum()),
    ));
    report.table(&table(programs, traced));
    if args.line == 64 {
        explain(&mut report, traced);
    }
    if !skipped.is_empty() {
        report.text(&format!("Not traced: {}.", skipped.join("; ")));
    }
    Ok(report)
}

/// What the programs are, and what of them differs from the paper's.
fn explain(report: &mut Report, traced: &[Result<Traced>]) {
    report.text(
        "These are open programs on generated inputs, for x86-64 and by today's compilers, where \
         the paper has SPEC06 with reference inputs. There is no TLB, no prefetch and no operating \
         system. What a program reads before its own work is skipped besides (`dimacs-solver`). \
         `x264`, `gnugo`, `perltidy` and `toga2` ask for the time: two runs had misses that differ \
         by up to 0.03 %. Those of `bzip2`, `cc1`, `hmm2search`, `quantum` and `astar` were equal. \
         Addresses are virtual: whoever replays a trace chooses the frames. Of the \
         paper's benchmarks omnetpp has no stand-in.",
    );
    let mut what = Table::new(["program", "package", "arguments"]);
    for traced in traced.iter().flatten() {
        let about = &traced.header.about;
        let cell = |text: &str| if text.is_empty() { "-".into() } else { format!("`{text}`") };
        what.row([about.program.clone(), about.package.clone(), cell(&about.arguments)]);
    }
    report.table(&what);
}
