//! fio's jobs over NBD.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The length of a job.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// The time given on the command line; the job restarts where it ends.
    Time,
    /// Until this many bytes are moved.
    Bytes(u64),
}

/// A job.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its name in tables.
    pub name: String,
    /// fio's name of the pattern.
    pub rw: &'static str,
    /// Percentage of reads in a mix.
    pub reads: u32,
    /// Bytes of a request.
    pub request: u64,
    /// Requests under way.
    pub depth: u32,
    /// The part of the disk that it works on, in bytes; all of it if `None`.
    pub area: Option<Range<u64>>,
    pub limit: Limit,
    /// A flush after each write.
    pub flushes: bool,
}

/// Throughput, reads and writes together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    pub bytes: f64,
    pub requests: f64,
}

const LARGE: u64 = 1 << 20;
const SMALL: u64 = 4096;
/// Longer than any flush at the end of a job.
const LATE: Duration = Duration::from_secs(120);
/// Large requests under way, as in the kernel's read-ahead or write-back.
const SEQUENTIAL_DEPTH: u32 = 4;

impl Job {
    /// Large requests, one after the other: `read` or `write`.
    pub fn sequential(rw: &'static str) -> Self {
        Self {
            name: format!("sequential {rw}, 1 MiB"),
            rw,
            reads: 0,
            request: LARGE,
            depth: SEQUENTIAL_DEPTH,
            area: None,
            limit: Limit::Time,
            flushes: false,
        }
    }

    /// Requests of 4 KiB anywhere: `randread` or `randwrite`, `depth` of them under way.
    pub fn random(rw: &'static str, depth: u32) -> Self {
        let what = rw.trim_start_matches("rand");
        let name = format!("random {what}, 4 KiB, {depth} at a time");
        Self { name, rw, request: SMALL, depth, ..Self::sequential("read") }
    }

    /// Requests of 4 KiB anywhere, `reads` percent of them reads.
    pub fn mixed(reads: u32, depth: u32) -> Self {
        let name = format!("{reads} % reads, 4 KiB, {depth} at a time");
        Self { name, reads, ..Self::random("randrw", depth) }
    }

    /// Writes of 4 KiB anywhere, one at a time, each with a flush.
    pub fn flushed() -> Self {
        let name = "random write, 4 KiB, a flush after each".into();
        Self { name, flushes: true, ..Self::random("randwrite", 1) }
    }

    /// Whether its rate is in bytes and not in requests.
    pub fn in_bytes(&self) -> bool {
        self.request >= LARGE
    }

    /// Its rate in the job's unit.
    pub fn value(&self, rate: Rate) -> f64 {
        if self.in_bytes() { rate.bytes } else { rate.requests }
    }

    /// Whether it is more than a read-only job.
    pub fn writes(&self) -> bool {
        self.rw != "read" && self.rw != "randread"
    }

    /// Runs it on a disk of `size` bytes; the same seed makes the same requests. A job that runs
    /// minutes past its time was stuck until fio gave it up: its rate means nothing, and it is run
    /// once more.
    ///
    /// # Errors
    /// Those of fio.
    pub fn run(&self, uri: &str, size: u64, seconds: u64, seed: usize) -> Result<Rate> {
        for _ in 0..2 {
            let begun = Instant::now();
            let rate = self.once(uri, size, seconds, seed)?;
            let late = begun.elapsed() > Duration::from_secs(2 * seconds) + LATE;
            if !late || matches!(self.limit, Limit::Bytes(_)) {
                return Ok(rate);
            }
            eprintln!("{} was stuck for {} s", self.name, begun.elapsed().as_secs());
        }
        bail!("{} was stuck twice", self.name)
    }

    fn once(&self, uri: &str, size: u64, seconds: u64, seed: usize) -> Result<Rate> {
        let mut fio = Command::new("fio");
        fio.args(["--name=job", "--ioengine=nbd", "--output-format=json", "--norandommap"]);
        fio.arg(format!("--uri={uri}")).arg(format!("--rw={}", self.rw));
        fio.arg(format!("--bs={}", self.request)).arg(format!("--iodepth={}", self.depth));
        let area = self.area.clone().unwrap_or(0..size);
        fio.arg(format!("--offset={}", area.start));
        fio.arg(format!("--size={}", area.end - area.start));
        fio.arg(format!("--randseed={}", seed + 1)).arg(format!("--rwmixread={}", self.reads));
        match self.limit {
            Limit::Time => fio.arg("--time_based").arg(format!("--runtime={seconds}")),
            Limit::Bytes(bytes) => fio.arg(format!("--io_size={bytes}")),
        };
        if self.flushes {
            fio.arg("--fsync=1");
        }
        if self.writes() {
            // This time counts: a write is done when it is durable.
            fio.arg("--end_fsync=1");
        }
        let output = fio.stderr(Stdio::inherit()).output().context("fio (is it installed?)")?;
        ensure!(output.status.success(), "fio failed: {}", self.name);
        // Its engine prints a greeting before the answer.
        let text = String::from_utf8_lossy(&output.stdout);
        let answer = text.find("{\n").map(|at| &text[at..]).context("fio gave no answer")?;
        let answer: Value = serde_json::from_str(answer)?;
        let job = &answer["jobs"][0];
        ensure!(job["error"].as_i64() == Some(0), "fio had an error: {}", self.name);
        let both = |field: &str| {
            let side = |side: &str| job[side][field].as_f64().context("fio gave no rate");
            Ok::<_, anyhow::Error>(side("read")? + side("write")?)
        };
        Ok(Rate { bytes: both("bw_bytes")?, requests: both("iops")? })
    }
}
