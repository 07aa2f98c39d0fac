//! Runs a program under QEMU with the tracer inside.

use super::programs::{Program, Ready};
use anyhow::{Context, Result, bail, ensure};
use oblivio_tracer::record::{Header, Reader};
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What runs programs, and where.
#[derive(Clone, Debug)]
pub struct Qemu {
    plugin: PathBuf,
    /// The version of the plugin interface.
    version: u32,
    /// Inputs, and what is compiled.
    pub inputs: PathBuf,
    /// Our own programs.
    pub examples: PathBuf,
}

/// How much of a program is traced.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Instructions that warm the caches up.
    pub skip: u64,
    /// Instructions that are traced, at most.
    pub measure: u64,
    /// Misses that are traced, at most.
    pub misses: u64,
    /// Bytes of a line.
    pub line: u32,
}

/// A trace that was made.
#[derive(Clone, Debug)]
pub struct Traced {
    /// What it says.
    pub header: Header,
    /// Of the file.
    pub bytes: u64,
    /// Processor time that it took.
    pub seconds: f64,
}

const EMULATOR: &str = "qemu-x86_64";
/// QEMU reads it as it loads the plugin; the program does not see it.
const VERSION_VARIABLE: &str = "OBLIVIO_QEMU_PLUGIN_VERSION";

impl Qemu {
    /// Finds QEMU and the plugin, and makes the folder of inputs in `folder`.
    ///
    /// # Errors
    /// One of them is missing.
    pub fn find(tracer: Option<&Path>, folder: &Path) -> Result<Self> {
        let beside = std::env::current_exe()?.parent().map(Path::to_owned).unwrap_or_default();
        let tracer = std::path::absolute(tracer.unwrap_or(&beside))?;
        let plugin = tracer.join("liboblivio_tracer.so");
        ensure!(
            plugin.is_file(),
            "{} is missing (cargo build --profile dist -p oblivio-tracer --lib --examples)",
            plugin.display()
        );
        let asked = Command::new(EMULATOR).arg("--version").output();
        let asked = asked.context("qemu-x86_64 is missing (apt install qemu-user)")?;
        let text = String::from_utf8_lossy(&asked.stdout).into_owned();
        let major = text.split("version ").nth(1).and_then(|it| it.split('.').next()?.parse().ok());
        let version = match major.with_context(|| format!("{EMULATOR} says {text:?}"))? {
            0..9_u32 => 1,
            9 => 2,
            _ => 4,
        };
        let inputs = std::path::absolute(folder)?.join("inputs");
        std::fs::create_dir_all(&inputs)?;
        Ok(Self { plugin, version, inputs, examples: tracer.join("examples") })
    }

    /// Runs a program and leaves its trace in `out`.
    ///
    /// # Errors
    /// The program cannot be traced, or ends before it is.
    pub fn trace(
        &self,
        program: &Program,
        ready: &Ready,
        extent: Extent,
        out: &Path,
    ) -> Result<Traced> {
        let out = std::path::absolute(out)?;
        let about = out.with_extension("about");
        let lines = [program.name, &ready.package, program.arguments];
        std::fs::write(&about, lines.map(|line| format!("{line}\n")).concat())?;
        let plugin = format!(
            "{},out={},about={},skip={},measure={},misses={},line={}",
            self.plugin.display(),
            out.display(),
            about.display(),
            extent.skip,
            extent.measure,
            extent.misses,
            extent.line
        );
        ensure!(plugin.matches(',').count() == 6, "a folder with a comma in its name: use another");
        let mut command = clean("setarch", &self.inputs);
        command.args(["-R", EMULATOR, "-seed", "1", "-U", VERSION_VARIABLE, "-plugin", &plugin]);
        command.env(VERSION_VARIABLE, self.version.to_string());
        command.envs(program.environment.iter().copied());
        command.arg(&ready.path).args(program.arguments.split(' ').filter(|it| !it.is_empty()));
        let typed = program.typed.map(|name| self.inputs.join(name));
        let (said, seconds) = run(&mut command, typed)?;
        let _ = std::fs::remove_file(about);
        if let Some(refused) = said.lines().find_map(|line| line.split_once("oblivio-tracer: ")) {
            bail!("{}", refused.1);
        }
        let header = Reader::new(BufReader::new(File::open(&out)?))
            .map(|reader| reader.header().clone())
            .with_context(|| said.lines().last().unwrap_or("it left no trace").to_owned())?;
        if header.totals.instructions == 0 {
            bail!("it ended after {} instructions, while it warmed up", header.totals.skipped);
        }
        Ok(Traced { header, bytes: out.metadata()?.len(), seconds })
    }
}

/// A command whose environment is the same for everybody: programs keep theirs in memory.
pub fn clean(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(name);
    command.env_clear().current_dir(folder).stdin(Stdio::null());
    command.envs([
        ("PATH", "/usr/bin:/bin"),
        ("LC_ALL", "C"),
        ("OMP_NUM_THREADS", "1"),
        ("PERL_HASH_SEED", "0"),
    ]);
    command
}

/// Runs a command to its end. What is typed into it stays open as long: a program that reads the
/// end of its input might stop. Returns what it said of errors, and its seconds of processor time.
pub fn run(command: &mut Command, typed: Option<PathBuf>) -> Result<(String, f64)> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    if typed.is_some() {
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn().with_context(|| name)?;
    let mut line = child.stdin.take();
    if let (Some(line), Some(typed)) = (&mut line, typed) {
        // Shorter than a pipe holds, so this does not wait for the program.
        line.write_all(&std::fs::read(typed)?)?;
    }
    let mut said = Vec::new();
    if let Some(mut errors) = child.stderr.take() {
        errors.read_to_end(&mut said)?;
    }
    let seconds = processor_seconds(child.id());
    child.wait()?;
    drop(line);
    Ok((String::from_utf8_lossy(&said).into_owned(), seconds))
}

/// What a process has used that has ended, or is about to, and was not waited for.
fn processor_seconds(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in brackets, may hold spaces. Of what follows, fields 12 and 13 are ticks, of which
    // Linux has 100 a second.
    let fields = text.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|it| it.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}
