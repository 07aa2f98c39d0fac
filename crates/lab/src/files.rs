//! Real files through the `oblivio` command, beside plain sealed files on the same disk.

use crate::report::{Report, Table, bytes, count};
use crate::tool;
use anyhow::{Context, Result, ensure};
use oblivio_crypto::{
    Kind, Place, SEAL_HEADER, SEAL_OVERHEAD, SealRoot, Sealer, SeededEntropy, TAG_BYTES, VolumeId,
};
use oblivio_testkit::SplitMix64;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The files to store.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    tool: tool::Tool,
    /// A directory on the disk to measure; by default the system's for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// MiB of the large file
    #[arg(long, default_value_t = 1024)]
    large_mib: u64,
    /// Number of small files
    #[arg(long, default_value_t = 10_000)]
    small_files: u64,
    /// Bytes of a small file
    #[arg(long, default_value_t = 4096)]
    small_bytes: usize,
}

/// The cost of one step.
struct Step {
    seconds: f64,
    /// The child's memory peak, if there was a child.
    memory: Option<u64>,
}

/// Runs the experiment.
///
/// # Errors
/// Those of the child, the file system and the page; a file comes back changed.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let oblivio = args.tool.path()?;
    let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let scratch = tempfile::tempdir_in(&dir).with_context(|| dir.display().to_string())?;
    let at = |name: &str| scratch.path().join(name);
    let tool = Tool { oblivio, state: at("state") };
    eprintln!("making files in {}", scratch.path().display());
    make_files(args, &at("large"), &at("small"))?;
    let mut table = Table::new(["what", "time", "rate", "peak memory", "on disk", "disk / data"]);
    let large = args.large_mib << 20;
    let small = args.small_files * args.small_bytes as u64;
    let mut row = |what: &str, step: &Step, data: u64, files: u64, stored: Option<u64>| {
        let rate = if files > 1 {
            format!("{} files/s", count(files as f64 / step.seconds))
        } else {
            format!("{:.0} MB/s", data as f64 / 1e6 / step.seconds)
        };
        let cells = [
            what.to_owned(),
            format!("{:.2} s", step.seconds),
            rate,
            step.memory.map_or("-".into(), bytes),
            stored.map_or("-".into(), bytes),
            stored.map_or("-".into(), |stored| format!("{:.2}", stored as f64 / data as f64)),
        ];
        eprintln!("{}", cells.join(" | "));
        table.row(cells);
    };

    let volume = at("volume-large");
    tool.run(&["init", path(&volume)])?;
    let put = tool.run(&["put", path(&volume), path(&at("large")), "/"])?;
    row("oblivio put, one large file", &put, large, 1, Some(on_disk(&volume)?));
    let get = tool.run(&["get", path(&volume), "/large", path(&at("back"))])?;
    row("oblivio get, one large file", &get, large, 1, None);
    same(&at("large"), &at("back"))?;
    std::fs::remove_file(at("back"))?;
    std::fs::remove_dir_all(&volume)?;

    let mut plain = Plain::new();
    let step = timed(|| plain.seal(&at("large"), &at("sealed"), true))?;
    row("sealed file, write", &step, large, 1, Some(on_disk(&at("sealed"))?));
    let step = timed(|| plain.open(&at("sealed"), &at("back")))?;
    row("sealed file, read", &step, large, 1, None);
    same(&at("large"), &at("back"))?;
    for name in ["back", "sealed", "large"] {
        std::fs::remove_file(at(name))?;
    }

    let volume = at("volume-small");
    tool.run(&["init", path(&volume)])?;
    let put = tool.run(&["put", "-r", path(&volume), path(&at("small")), "/"])?;
    row("oblivio put -r, small files", &put, small, args.small_files, Some(on_disk(&volume)?));
    std::fs::create_dir(at("back"))?;
    let get = tool.run(&["get", "-r", path(&volume), "/small", path(&at("back"))])?;
    row("oblivio get -r, small files", &get, small, args.small_files, None);
    let back =
        [at("back").join("small"), at("back")].into_iter().find(|dir| dir.join("0").exists());
    let back = back.context("get -r brought nothing back")?;
    for file in 0..args.small_files {
        same(&at("small").join(file.to_string()), &back.join(file.to_string()))?;
    }

    for (what, each) in [("sealed files, fsync each", true), ("sealed files, one sync", false)] {
        let folder = at(if each { "sealed-each" } else { "sealed-once" });
        std::fs::create_dir(&folder)?;
        let step = timed(|| {
            for file in 0..args.small_files {
                let name = file.to_string();
                plain.seal(&at("small").join(&name), &folder.join(&name), each)?;
            }
            rustix::fs::syncfs(File::open(&folder)?)?;
            Ok(())
        })?;
        row(what, &step, small, args.small_files, Some(on_disk(&folder)?));
    }

    let mut report = Report::new("files", "Files on a local disk");
    report.text(&format!(
        "The `oblivio` command with its defaults on a fresh volume in a local directory; the \
         start of the process and the passphrase are included. Beside it are plain sealed files: \
         AES-256-GCM over chunks of 64 KiB, written with fsync. One file of {} and {} files of \
         {}, random content, are compared byte by byte after they came back. Times are \
         wall-clock; memory is the child's highest resident set.",
        bytes(large),
        count(args.small_files as f64),
        bytes(args.small_bytes as u64)
    ));
    report.table(&table);
    report.finish(write)
}

/// The command under test.
struct Tool {
    oblivio: PathBuf,
    state: PathBuf,
}

impl Tool {
    fn run(&self, args: &[&str]) -> Result<Step> {
        let begun = Instant::now();
        let mut child = Command::new(&self.oblivio)
            .args(args)
            .env("OBLIVIO_PASSPHRASE", "lab")
            .env("XDG_STATE_HOME", &self.state)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| self.oblivio.display().to_string())?;
        let status = format!("/proc/{}/status", child.id());
        let mut memory = 0;
        let ended = loop {
            if let Ok(text) = std::fs::read_to_string(&status) {
                memory = memory.max(high_water(&text));
            }
            if let Some(ended) = child.try_wait()? {
                break ended;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let seconds = begun.elapsed().as_secs_f64();
        ensure!(ended.success(), "oblivio {} failed", args.join(" "));
        Ok(Step { seconds, memory: Some(memory) })
    }
}

/// The resident set's peak in a `/proc` status.
pub fn high_water(status: &str) -> u64 {
    kilobytes(status, "VmHWM:") << 10
}

/// A number of kilobytes in a `/proc` status.
pub fn kilobytes(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    number.unwrap_or(0)
}

fn path(path: &Path) -> &str {
    path.to_str().expect("scratch paths are text")
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Step> {
    let begun = Instant::now();
    work()?;
    Ok(Step { seconds: begun.elapsed().as_secs_f64(), memory: None })
}

fn make_files(args: &Args, large: &Path, small: &Path) -> Result<()> {
    let mut rng = SplitMix64::new(11);
    let mut fill = |bytes: &mut [u8]| {
        for word in bytes.chunks_mut(8) {
            word.copy_from_slice(&rng.next_u64().to_le_bytes()[..word.len()]);
        }
    };
    let mut chunk = vec![0; 1 << 20];
    let mut file = File::create(large)?;
    for _ in 0..args.large_mib {
        fill(&mut chunk);
        file.write_all(&chunk)?;
    }
    file.sync_all()?;
    std::fs::create_dir(small)?;
    let mut content = vec![0; args.small_bytes];
    for name in 0..args.small_files {
        fill(&mut content);
        std::fs::write(small.join(name.to_string()), &content)?;
    }
    rustix::fs::syncfs(File::open(small)?)?;
    Ok(())
}

/// Bytes that a file or a folder takes on the disk.
pub fn on_disk(path: &Path) -> Result<u64> {
    let meta = std::fs::symlink_metadata(path)?;
    let mut total = meta.blocks() * 512;
    if meta.is_dir() {
        for entry in std::fs::read_dir(path)? {
            total += on_disk(&entry?.path())?;
        }
    }
    Ok(total)
}

/// Fails unless two files are equal.
fn same(a: &Path, b: &Path) -> Result<()> {
    let (mut x, mut y) = (BufReader::new(File::open(a)?), BufReader::new(File::open(b)?));
    let (mut left, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let (n, m) = (read_full(&mut x, &mut left)?, read_full(&mut y, &mut right)?);
        ensure!(left[..n] == right[..m], "{} came back changed", a.display());
        if n == 0 {
            return Ok(());
        }
    }
}

fn read_full(from: &mut impl Read, into: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match from.read(&mut into[filled..])? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}

/// Plain encryption, nothing else.
pub struct Plain(Sealer);

/// Plain bytes in a sealed chunk.
const CHUNK: usize = 64 << 10;

impl Plain {
    /// With a fixed key.
    pub fn new() -> Self {
        Self(Sealer::new(SealRoot::from_seed(1), Box::new(SeededEntropy::new(1))))
    }

    fn place(index: u64) -> Place {
        Place { volume: VolumeId([1; 16]), kind: Kind::Bucket, index, version: 0 }
    }

    fn seal(&mut self, from: &Path, to: &Path, sync: bool) -> Result<()> {
        let mut to = BufWriter::new(File::create(to)?);
        self.seal_into(&mut File::open(from)?, &mut to)?;
        let file = to.into_inner().map_err(|error| error.into_error())?;
        if sync {
            file.sync_all()?;
        }
        Ok(())
    }

    /// Seals a stream, chunk by chunk.
    ///
    /// # Errors
    /// Those of the streams and of the sealer.
    pub fn seal_into(&mut self, from: &mut impl Read, to: &mut impl Write) -> Result<()> {
        let mut chunk = vec![0; CHUNK + SEAL_OVERHEAD];
        for index in 0.. {
            let n = read_full(from, &mut chunk[SEAL_HEADER..SEAL_HEADER + CHUNK])?;
            if n == 0 {
                break;
            }
            let sealed = &mut chunk[..n + SEAL_OVERHEAD];
            self.0.seal(&Self::place(index), sealed)?;
            to.write_all(sealed)?;
        }
        Ok(())
    }

    fn open(&mut self, from: &Path, to: &Path) -> Result<()> {
        let mut to = BufWriter::new(File::create(to)?);
        self.open_into(&mut File::open(from)?, &mut to)?;
        to.flush()?;
        Ok(())
    }

    /// Opens a sealed stream, chunk by chunk.
    ///
    /// # Errors
    /// Those of the streams and of the sealer.
    pub fn open_into(&mut self, from: &mut impl Read, to: &mut impl Write) -> Result<()> {
        let mut chunk = vec![0; CHUNK + SEAL_OVERHEAD];
        for index in 0.. {
            let n = read_full(from, &mut chunk)?;
            if n == 0 {
                break;
            }
            to.write_all(self.0.open(&Self::place(index), &mut chunk[..n])?)?;
        }
        Ok(())
    }
}

const _: () = assert!(SEAL_OVERHEAD == SEAL_HEADER + TAG_BYTES);
