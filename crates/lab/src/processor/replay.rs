//! From misses to time: a trace under each configuration, and without ORAM.

use super::dram::{Dram, Shape, Timing, Way};
use super::frames::{Frames, Mapping};
use super::front::{Counts, Front};
use super::machine::Machine;
use super::scheme::Scheme;
use anyhow::{Context, Result, ensure};
use oblivio_tracer::caches::Kind;
use oblivio_tracer::record::{Header, Reader, Record};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Bytes of a line of the memory.
const MEMORY_LINE: u32 = 64;
/// Writes that the memory of a machine without ORAM waits for, to do them together.
const WATERMARK: usize = 32;

/// Which traces, and how much of them.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Folder with traces, made by `processor trace`
    #[arg(long, default_value = "target/traces")]
    pub traces: PathBuf,
    /// Records of each trace that are replayed
    #[arg(long, default_value_t = 20_000_000)]
    pub records: u64,
    /// Leave dirty evictions out
    #[arg(long)]
    pub exclusive: bool,
}

/// A trace on disk.
pub struct Trace {
    /// Its file.
    path: PathBuf,
    /// What it says of itself.
    pub header: Header,
}

/// How much of a trace is replayed.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// This many records.
    Records(u64),
    /// This share of the core's cycles.
    Share(f64),
}

impl Args {
    /// All traces of the folder, by the names of their programs.
    ///
    /// # Errors
    /// There is none; it is none.
    pub fn find(&self) -> Result<Vec<Trace>> {
        find(&self.traces)
    }

    /// The records of a trace that count, with physical lines.
    ///
    /// # Errors
    /// The trace is damaged.
    pub fn each(&self, trace: &Trace, mapping: Mapping, take: impl FnMut(Record)) -> Result<()> {
        trace.each(Extent::Records(self.records), mapping, take)
    }

    /// In words: how much of these traces is replayed, and what of it.
    pub fn describe<'a>(&self, traces: impl IntoIterator<Item = &'a Trace>) -> String {
        let longer = traces.into_iter().filter(|trace| trace.records() > self.records);
        let longer = longer.map(Trace::program).collect::<Vec<_>>().join(", ");
        let what = match longer.is_empty() {
            true => "All misses and dirty evictions of each trace are replayed".to_owned(),
            false => format!(
                "At most the first {} million misses and dirty evictions of each trace are \
                 replayed (there are more of {longer})",
                self.records as f64 / 1e6
            ),
        };
        let evictions = match self.exclusive {
            true => "evictions are left out with ORAM",
            false => "an eviction is an access, too",
        };
        format!("{what}; {evictions}. The core waits for each.")
    }
}

/// All traces of a folder, by the names of their programs.
///
/// # Errors
/// There is none; it is none.
pub fn find(folder: &Path) -> Result<Vec<Trace>> {
    let shown = folder.display();
    let advice = || format!("{shown}: make traces first: oblivio-lab processor trace all");
    let entries = folder.read_dir().with_context(advice)?;
    let mut traces = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "trace") {
            let header = open(&path)?.header().clone();
            traces.push(Trace { path, header });
        }
    }
    ensure!(!traces.is_empty(), advice());
    traces.sort_by(|one, other| one.header.about.program.cmp(&other.header.about.program));
    Ok(traces)
}

impl Trace {
    /// The records in it.
    pub fn records(&self) -> u64 {
        self.header.totals.counts.l2_misses + self.header.totals.counts.evictions
    }

    /// The program's name.
    pub fn program(&self) -> &str {
        &self.header.about.program
    }

    /// The records of its beginning, with physical lines.
    ///
    /// # Errors
    /// The trace is damaged.
    pub fn each(
        &self,
        extent: Extent,
        mapping: Mapping,
        mut take: impl FnMut(Record),
    ) -> Result<()> {
        let (records, end) = match extent {
            Extent::Records(records) => (records, f64::INFINITY),
            Extent::Share(share) => (u64::MAX, share * self.header.totals.cycles as f64),
        };
        let mut frames = Frames::new(mapping, self.header.about.geometry.line);
        let mut cycles = 0;
        for record in open(&self.path)?.take(records as usize) {
            let record = record.with_context(|| self.path.display().to_string())?;
            cycles += record.cycles;
            if cycles as f64 > end {
                break;
            }
            take(Record { line: frames.line(record.line), ..record });
        }
        Ok(())
    }
}

fn open(path: &Path) -> Result<Reader<BufReader<File>>> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    Reader::new(BufReader::new(file)).with_context(|| path.display().to_string())
}

/// A machine with ORAM.
pub struct Secure {
    front: Option<Front>,
    path_cycles: f64,
    exclusive: bool,
    /// Processor cycles so far.
    pub cycles: f64,
}

impl Secure {
    /// At the beginning.
    pub fn new(scheme: &Scheme, path_cycles: f64, exclusive: bool) -> Self {
        Self { front: scheme.front(), path_cycles, exclusive, cycles: 0.0 }
    }

    /// Takes a record. The core waits for every access, and an eviction is one.
    pub fn take(&mut self, record: &Record) {
        self.cycles += record.cycles as f64;
        if record.kind == Kind::Eviction && self.exclusive {
            return;
        }
        let paths = self.front.as_mut().map_or(1, |front| front.access(record.line));
        self.cycles += paths as f64 * self.path_cycles;
    }

    /// What its front end has counted, if it has one.
    pub fn counts(&self) -> Option<Counts> {
        self.front.as_ref().map(Front::counts)
    }

    /// Paths for an access.
    pub fn paths_per_access(&self) -> f64 {
        self.counts().map_or(1.0, |it| it.paths as f64 / it.accesses.max(1) as f64)
    }
}

/// A machine without ORAM: reads come first, writes are done together.
pub struct Insecure {
    machine: Machine,
    /// Lines of the memory in one of the caches.
    lines: u64,
    dram: Dram,
    writes: Vec<u64>,
    /// Processor cycles so far.
    pub cycles: f64,
    reads: u64,
    waited: f64,
}

impl Insecure {
    /// At the beginning. The caches' lines have this many bytes.
    pub fn new(machine: Machine, line_bytes: u32) -> Self {
        let dram = Dram::new(Timing::DDR3_1333, Shape::paper(machine.channels));
        let lines = u64::from(line_bytes / MEMORY_LINE);
        Self { machine, lines, dram, writes: Vec::new(), cycles: 0.0, reads: 0, waited: 0.0 }
    }

    /// Takes a record.
    pub fn take(&mut self, record: &Record) {
        self.cycles += record.cycles as f64;
        let now = (self.cycles / self.machine.memory_cycle()).ceil() as u64;
        let first = record.line * self.lines;
        let lines = first..first + self.lines;
        if record.kind == Kind::Eviction {
            self.writes.extend(lines);
            if self.writes.len() >= WATERMARK {
                // The core does not wait, but the next read finds the banks and the bus busy.
                self.dram.serve(self.writes.drain(..), Way::Write, now);
            }
            return;
        }
        let end = self.dram.serve(lines, Way::Read, now);
        let waited = (end - now) as f64 * self.machine.memory_cycle();
        self.cycles += waited;
        self.waited += waited;
        self.reads += 1;
    }

    /// Processor cycles that a read takes, in the mean.
    pub fn latency(&self) -> f64 {
        self.waited / self.reads.max(1) as f64
    }
}

/// The geometric mean.
pub fn geomean(values: &[f64]) -> f64 {
    (values.iter().map(|it| it.ln()).sum::<f64>() / values.len().max(1) as f64).exp()
}
