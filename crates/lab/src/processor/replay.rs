//! From misses to time: a trace under each configuration, and without ORAM.

use super::dram::{Dram, Shape, Timing, Way};
use super::frames::{Frames, Mapping};
use super::front::Front;
use super::scheme::{PROCESSOR_CYCLES, Scheme};
use anyhow::{Context, Result};
use oblivio_tracer::caches::Kind;
use oblivio_tracer::record::{Header, Reader, Record};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Memory channels of all figures but Table 2.
pub const CHANNELS: usize = 2;
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

impl Args {
    /// All traces of the folder, by the names of their programs.
    ///
    /// # Errors
    /// There is none; it is none.
    pub fn find(&self) -> Result<Vec<Trace>> {
        let shown = self.traces.display();
        let entries = self.traces.read_dir().with_context(|| {
            format!("{shown}: make traces first: oblivio-lab processor trace all")
        })?;
        let mut traces = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|it| it == "trace") {
                let header = open(&path)?.header().clone();
                traces.push(Trace { path, header });
            }
        }
        traces.sort_by(|one, other| one.header.about.program.cmp(&other.header.about.program));
        Ok(traces)
    }

    /// The records of a trace that count, with physical lines.
    ///
    /// # Errors
    /// The trace is damaged.
    pub fn each(
        &self,
        trace: &Trace,
        mapping: Mapping,
        mut take: impl FnMut(Record),
    ) -> Result<()> {
        let mut frames = Frames::new(mapping);
        for record in open(&trace.path)?.take(self.records as usize) {
            let record = record.with_context(|| trace.path.display().to_string())?;
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

    /// Paths for an access.
    pub fn paths_per_access(&self) -> f64 {
        let counts = self.front.as_ref().map(Front::counts);
        counts.map_or(1.0, |it| it.paths as f64 / it.accesses.max(1) as f64)
    }
}

/// A machine without ORAM: reads come first, writes are done together.
pub struct Insecure {
    dram: Dram,
    writes: Vec<u64>,
    /// Processor cycles so far.
    pub cycles: f64,
    reads: u64,
    waited: f64,
}

impl Insecure {
    /// At the beginning.
    pub fn new() -> Self {
        let dram = Dram::new(Timing::DDR3_1333, Shape::paper(CHANNELS));
        Self { dram, writes: Vec::new(), cycles: 0.0, reads: 0, waited: 0.0 }
    }

    /// Takes a record.
    pub fn take(&mut self, record: &Record) {
        self.cycles += record.cycles as f64;
        let now = (self.cycles / PROCESSOR_CYCLES).ceil() as u64;
        if record.kind == Kind::Eviction {
            self.writes.push(record.line);
            if self.writes.len() == WATERMARK {
                // The core does not wait, but the next read finds the banks and the bus busy.
                self.dram.serve(self.writes.drain(..), Way::Write, now);
            }
            return;
        }
        let waited =
            (self.dram.serve([record.line], Way::Read, now) - now) as f64 * PROCESSOR_CYCLES;
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
