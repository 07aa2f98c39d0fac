//! The circuit as a program: built by Verilator, run as a child.

use super::shape::{Block, LINE, Shape};
use anyhow::{Context, Result, bail, ensure};
use oblivio_engine::tree::MapFormat;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What is asked of the controller, or done to its memory.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    /// Read a block.
    Read(u64),
    /// Write a block.
    Write(u64, Block),
    /// Flip bits of a line.
    Flip(u64, [u8; LINE]),
    /// Keep a line as it is.
    Keep(u64),
    /// Put the kept line back.
    PutBack(u64),
    /// Make a line zeros.
    Zero(u64),
    /// Ask for nothing for some cycles.
    Delay(u64),
}

/// What the bench says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A line was read or written.
    Line(super::memory::Transfer),
    /// The answer to a read, and the cycles since the request was taken.
    Answer(Block, u64),
    /// A write was taken.
    Taken(u64),
    /// The port failed.
    Failed,
    /// A command was valid in this cycle; whether it writes.
    Command(u64, bool),
    /// What moves in a cycle, a bit each.
    Wave(u64, u64),
    /// The end, and the cycles since the beginning.
    End(u64),
}

/// A built circuit.
pub struct Bench {
    program: PathBuf,
    _folder: tempfile::TempDir,
}

/// The folder of the circuit's sources.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hardware")
}

/// What of Verilator and the tools that it uses is not installed.
pub fn missing() -> Option<&'static str> {
    let answers = |tool: &&str| Command::new(tool).arg("--version").output().is_ok();
    ["verilator", "make", "g++"].into_iter().find(|tool| !answers(tool))
}

impl Bench {
    /// Builds the circuit of a shape, for this many memory channels.
    ///
    /// # Errors
    /// What Verilator said.
    pub fn build(shape: &Shape, channels: usize, table_bits: u32) -> Result<Self> {
        Self::compiled(shape, channels, table_bits, "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O0")
    }

    /// As [`Self::build`], and as fast as the compiler makes it: for long runs.
    ///
    /// # Errors
    /// What Verilator said.
    pub fn fast(shape: &Shape, channels: usize, table_bits: u32) -> Result<Self> {
        let all = "OPT_FAST='-O3 -march=native' OPT_GLOBAL='-O3 -march=native'";
        Self::compiled(shape, channels, table_bits, all)
    }

    fn compiled(shape: &Shape, channels: usize, table_bits: u32, how: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut command = Command::new("verilator");
        command.args(["--binary", "--timing", "-O3", "-MAKEFLAGS", how, "--top-module"]);
        command.args(["oram_bench", "-Wno-fatal", "-Wno-WIDTH", "-Wno-UNUSEDSIGNAL"]);
        command.args(["-Wno-PINCONNECTEMPTY", "-j", "2"]).arg("-Mdir").arg(folder.path());
        for (name, value) in parameters(shape, channels, table_bits) {
            command.arg(format!("-G{name}={value}"));
        }
        command.arg(sources().join("bench/oram_bench.sv"));
        let mut circuit = Vec::new();
        for entry in std::fs::read_dir(sources().join("rtl"))? {
            circuit.push(entry?.path());
        }
        circuit.sort();
        let done = command.args(circuit).output().context("verilator")?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "verilator: {said}");
        Ok(Self { program: folder.path().join("Voram_bench"), _folder: folder })
    }

    /// Runs it. `stall` of 16 cycles, the memory is not ready. `more` are options of the bench.
    ///
    /// # Errors
    /// Those of the child.
    pub fn run(&self, asks: &[Ask], stall: u32, seed: u64, more: &[&str]) -> Result<Run> {
        let mut text = String::new();
        for ask in asks {
            write_ask(&mut text, ask);
        }
        let requests = tempfile::NamedTempFile::new()?;
        std::fs::write(requests.path(), text)?;
        let mut command = Command::new(&self.program);
        command.arg(format!("+requests={}", requests.path().display()));
        command.arg(format!("+stall={stall}")).arg(format!("+seed={seed}"));
        command.args(more);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().context("a pipe")?;
        Ok(Run { lines: BufReader::with_capacity(1 << 16, out), child, _requests: requests })
    }
}

fn parameters(shape: &Shape, channels: usize, table_bits: u32) -> [(&'static str, u64); 13] {
    let (group, bits) = match shape.map {
        MapFormat::Flat { .. } => (0, 14),
        MapFormat::Compressed { individual_bits } => (1, individual_bits),
    };
    [
        ("NCHANNEL", channels as u64),
        ("DEPTH", shape.depth.into()),
        ("SUBTREE", shape.subtree.into()),
        ("STASH", shape.stash as u64),
        ("GROUP", group),
        ("BITS", bits.into()),
        ("MACS", shape.macs.into()),
        ("RECURSION", shape.recursion as u64),
        ("PLB_ROWS", shape.plb_rows as u64),
        ("MAP_ROWS", shape.map_rows as u64),
        ("BACKLOG", shape.backlog as u64),
        ("INTERVAL", shape.interval),
        ("TABLE_BITS", table_bits.into()),
    ]
}

fn write_ask(text: &mut String, ask: &Ask) {
    let done = match ask {
        Ask::Read(block) => writeln!(text, "r {block:x}"),
        Ask::Write(block, data) => writeln!(text, "w {block:x} {}", hex(data)),
        Ask::Flip(line, mask) => writeln!(text, "x {line:x} {}", hex(mask)),
        Ask::Keep(line) => writeln!(text, "k {line:x}"),
        Ask::PutBack(line) => writeln!(text, "b {line:x}"),
        Ask::Zero(line) => writeln!(text, "z {line:x}"),
        Ask::Delay(cycles) => writeln!(text, "d {cycles:x}"),
    };
    done.expect("memory");
}

/// The last byte first, as the bench reads numbers.
fn hex(bytes: &[u8; LINE]) -> String {
    bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Result<[u8; LINE]> {
    ensure!(text.len() == 2 * LINE && text.is_ascii(), "{text}: no line of memory");
    let mut bytes = [0; LINE];
    for (at, byte) in bytes.iter_mut().rev().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16)?;
    }
    Ok(bytes)
}

/// A circuit at work: what it says, until it ends.
pub struct Run {
    lines: BufReader<std::process::ChildStdout>,
    child: Child,
    _requests: tempfile::NamedTempFile,
}

impl Run {
    fn said(line: &str) -> Result<Option<Said>> {
        let mut words = line.split_ascii_whitespace();
        let letter = words.next().unwrap_or("");
        let mut number = || -> Result<u64> {
            Ok(u64::from_str_radix(words.next().context("a number is missing")?, 16)?)
        };
        Ok(Some(match letter {
            "R" | "W" => {
                let (write, line) = (letter == "W", number()?);
                let bytes = from_hex(words.next().unwrap_or(""))?;
                Said::Line(super::memory::Transfer { write, line, bytes })
            }
            "A" => {
                let data = from_hex(words.next().unwrap_or(""))?;
                Said::Answer(data, u64::from_str_radix(words.next().unwrap_or(""), 16)?)
            }
            "D" => Said::Taken(number()?),
            "C" => Said::Command(number()?, number()? == 1),
            "V" => Said::Wave(number()?, number()?),
            "F" => Said::Failed,
            "E" => Said::End(number()?),
            // The simulator's own farewell.
            "-" => return Ok(None),
            _ => bail!("the bench says {line:?}"),
        }))
    }
}

impl Iterator for Run {
    type Item = Result<Said>;

    fn next(&mut self) -> Option<Result<Said>> {
        loop {
            let mut line = String::new();
            match self.lines.read_line(&mut line) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some(Err(error.into())),
            }
            if let Some(said) = Self::said(&line).transpose() {
                return Some(said);
            }
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // It may wait for a reader of its pipe, which is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
