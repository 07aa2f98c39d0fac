//! A volume that grows from empty and is emptied again, step by step, on a real disk: its space
//! there, and all waiting times.

mod beside;
mod plain;
mod shared;
mod times;

use crate::hold;
use crate::lock::lock;
use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table, bytes};
use anyhow::{Context, Result, ensure};
use beside::{Beside, Told};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::tree::STASH_BOUND;
use oblivio_store::LocalStore;
use oblivio_testkit::SplitMix64;
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO};
use oblivio_volume::tree::{TreeInfo, TreeVolume};
use oblivio_volume::{CreateOptions, EngineVolume, OpenOptions};
use plain::Plain;
use shared::Shared;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use times::{Times, Took, Waits};

/// Bytes of one write, and of one read.
const PIECE: usize = 1 << 20;
/// Bytes of one file.
const FILE: u64 = 16 << 20;
/// The mount commits after this many bytes written.
const COMMIT: u64 = 96 << 20;
/// One idle moment in this many has a read arrive as it begins.
const COMES: usize = 16;
/// Names of the timed operations.
const KINDS: [&str; 8] = [
    "write",
    "read",
    "read in idle",
    "commit between",
    "commit",
    "delete",
    "commit deletes",
    "idle",
];

/// How far it grows.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Bytes of files at the top, as 4G or 512M
    #[arg(long, default_value = "4G", value_parser = size)]
    to: u64,
    /// Bytes in a step.
    #[arg(long, default_value = "256M", value_parser = size)]
    step: u64,
    /// A directory on the disk to measure; by default the system's for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// MiB of memory that the volume may use.
    #[arg(long, default_value_t = 448)]
    memory_mib: usize,
    #[command(flatten)]
    hold: hold::Args,
}

fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.strip_suffix(['G', 'M']) {
        Some(digits) => (digits, if text.ends_with('G') { 30 } else { 20 }),
        None => (text, 0),
    };
    digits.parse::<u64>().map(|n| n << shift).map_err(|error| error.to_string())
}

/// The state after a step.
struct Point {
    files: u64,
    allocated: u64,
    info: TreeInfo,
    bytes_stored: u64,
    stash_peak: u64,
    times: Times,
}

struct Breath {
    fs: FileSystem,
    volume: Arc<Mutex<TreeVolume>>,
    dir: PathBuf,
    beside: Beside,
    plain: Plain,
    rng: SplitMix64,
    files: u64,
    uncommitted: u64,
    points: Vec<Point>,
}

/// Runs the experiment.
///
/// # Errors
/// Those of the volume and of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    ensure!(args.step >= FILE && args.to >= args.step, "a step is a file of 16 MiB at least");
    ensure!(args.to.is_multiple_of(FILE), "it grows by whole files of 16 MiB");
    let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let _held = args.hold.hold()?;
    let scratch = tempfile::tempdir_in(&dir).with_context(|| dir.display().to_string())?;
    let mut breath = Breath::new(scratch.path(), args.memory_mib << 20)?;
    breath.look(Times::default())?;
    while breath.files * FILE < args.to {
        breath.step("commit", |breath, times| {
            let end = (breath.files * FILE + args.step).min(args.to) / FILE;
            while breath.files < end {
                breath.write_file(times)?;
            }
            Ok(())
        })?;
    }
    while breath.files > 0 {
        breath.step("commit deletes", |breath, times| {
            let end = breath.files.saturating_sub(args.step / FILE);
            while breath.files > end {
                breath.delete_file(times)?;
            }
            Ok(())
        })?;
    }
    breath.plain.took.iter_mut().for_each(|took| took.look_at(&breath.beside));
    report(args, &breath, write)
}

impl Breath {
    fn new(scratch: &Path, memory_bytes: usize) -> Result<Self> {
        let plain = Plain::new(&scratch.join("plain"))?;
        let beside = Beside::begin(&scratch.join("beside"))?;
        let dir = scratch.join("v");
        let store = Arc::new(LocalStore::create(&dir)?);
        let create = CreateOptions { kdf: KdfParams::TEST, ..CreateOptions::default() };
        let open = OpenOptions { memory_bytes, short_pauses: true, ..OpenOptions::default() };
        let volume = TreeVolume::create(store, &Passphrase::new("lab"), create, open)?;
        let volume = Arc::new(Mutex::new(volume));
        let shared = Shared::new(Arc::clone(&volume));
        let fs = FileSystem::format(Box::new(shared))?;
        let (rng, files, uncommitted, points) = (SplitMix64::new(6), 0, 0, Vec::new());
        Ok(Breath { fs, volume, dir, beside, plain, rng, files, uncommitted, points })
    }

    /// Some work, a commit, and idle work.
    fn step(
        &mut self,
        commit: &'static str,
        work: impl FnOnce(&mut Self, &mut Times) -> Result<()>,
    ) -> Result<()> {
        let mut times = Times::default();
        work(self, &mut times)?;
        self.commit(commit, &mut times)?;
        self.quiet_moments(&mut times)?;
        self.look(times)
    }

    fn quiet_moments(&mut self, times: &mut Times) -> Result<()> {
        let mut moments = 0;
        loop {
            let (next, moment) = Took::of(|| self.fs.idle())?;
            // A shorter one had nothing to do, or found the disk at work.
            if moment.ms >= 0.1 {
                times.add("idle", moment);
                moments += 1;
                if moments % COMES == 0 && self.files > 0 {
                    let read = self.read_a_piece()?;
                    times.add("read in idle", moment.and(read));
                    self.between(times)?;
                }
            }
            let Some(pause) = next else { return Ok(()) };
            std::thread::sleep(pause);
        }
    }

    fn write_file(&mut self, times: &mut Times) -> Result<()> {
        let name = self.files.to_string();
        let (_, handle) = self.fs.create(ROOT_INO, name.as_bytes(), NewNode::default())?;
        for at in 0..FILE / PIECE as u64 {
            let mut piece = vec![0; PIECE];
            for word in piece.chunks_mut(8) {
                word.copy_from_slice(&self.rng.next_u64().to_le_bytes());
            }
            times.time("write", || self.fs.write(handle, at * PIECE as u64, &piece))?;
            self.between(times)?;
        }
        self.fs.close(handle)?;
        self.files += 1;
        self.read_something(times)?;
        self.uncommitted += FILE;
        if self.uncommitted >= COMMIT { self.commit("commit", times) } else { Ok(()) }
    }

    fn read_something(&mut self, times: &mut Times) -> Result<()> {
        self.plain.write()?;
        let read = self.read_a_piece()?;
        times.add("read", read);
        self.between(times)
    }

    /// Reads at a random place.
    fn read_a_piece(&mut self) -> Result<Took> {
        let name = self.rng.below(self.files).to_string();
        let handle = self.fs.open_file(self.fs.lookup(ROOT_INO, name.as_bytes())?.ino)?;
        let at = self.rng.below(FILE / PIECE as u64) * PIECE as u64;
        let (read, took) = Took::of(|| self.fs.read(handle, at, PIECE))?;
        ensure!(read.len() == PIECE, "a file is too short");
        self.fs.close(handle)?;
        Ok(took)
    }

    /// The work of a mount after an answer.
    fn between(&mut self, times: &mut Times) -> Result<()> {
        if self.fs.wants_commit() {
            self.uncommitted = 0;
            times.time("commit between", || self.fs.commit())?;
        }
        Ok(())
    }

    fn delete_file(&mut self, times: &mut Times) -> Result<()> {
        self.files -= 1;
        let name = self.files.to_string();
        times.time("delete", || self.fs.unlink(ROOT_INO, name.as_bytes()))?;
        self.uncommitted += FILE;
        if self.files > 0 {
            self.read_something(times)?;
        }
        if self.uncommitted >= COMMIT { self.commit("commit deletes", times) } else { Ok(()) }
    }

    fn commit(&mut self, kind: &'static str, times: &mut Times) -> Result<()> {
        // A commit with nothing to do is not worth a measurement.
        if std::mem::take(&mut self.uncommitted) == 0 {
            return Ok(());
        }
        Ok(times.time(kind, || self.fs.commit())?)
    }

    fn look(&mut self, mut times: Times) -> Result<()> {
        times.look_at(&self.beside);
        let volume = lock(&self.volume);
        let point = Point {
            files: self.files * FILE,
            allocated: on_disk(&self.dir)?,
            info: volume.tree_info(),
            bytes_stored: volume.info()?.bytes_stored,
            stash_peak: volume.meters().stash_peak,
            times,
        };
        drop(volume);
        eprintln!("{}", cells(&point).join(" | "));
        self.points.push(point);
        Ok(())
    }
}

/// Bytes that a folder's files take on the disk.
fn on_disk(dir: &Path) -> Result<u64> {
    let blocks = dir.read_dir()?.map(|entry| Ok(entry?.metadata()?.blocks()));
    Ok(blocks.sum::<Result<u64>>()? * 512)
}

fn cells(point: &Point) -> Vec<String> {
    let factor = match point.files {
        0 => "-".into(),
        files => format!("{:.2}", point.allocated as f64 / files as f64),
    };
    let mut cells = vec![
        bytes(point.files),
        bytes(point.bytes_stored),
        bytes(point.allocated),
        factor,
        point.info.size_class.to_string(),
        point.info.depth.to_string(),
        point.stash_peak.to_string(),
    ];
    for kind in KINDS {
        let Waits { median, highest, .. } = Waits::of(point.times.of(kind));
        cells.push(if highest == 0.0 { "-".into() } else { format!("{median:.0} / {highest:.0}") });
    }
    cells
}

fn report(args: &Args, breath: &Breath, write: bool) -> Result<()> {
    let points = &breath.points[..];
    let mut report = Report::new("breathe", "A volume that grows and is emptied again");
    report.text(&format!(
        "Files of {} through the file system, over a volume with blocks of 16 KiB and {} MiB of \
         memory in a local directory. They are written up to {} and then deleted, in steps of {}, \
         with one read of 1 MiB at a random place for each file. A commit comes between \
         operations when the volume wants one, as in a mount. One more is asked for after each \
         step, where it may find much to write, and for every {} deleted. After each step idle \
         maintenance runs until no sweep is left. `allocated` is what the disk gives, without \
         holes. Times are wall-clock milliseconds, median and highest of the step: for 1 MiB \
         written or read, for each of these commits, for a file deleted, and for one round of \
         idle maintenance. `read in idle` is a read that comes as one of {COMES} such rounds \
         begins, and waits for its end.{}",
        bytes(FILE),
        args.memory_mib,
        bytes(args.to),
        bytes(args.step),
        bytes(COMMIT),
        args.hold.told()
    ));
    let head = ["files", "stored", "allocated", "factor", "class", "depth", "stash"];
    let mut table = Table::new(head.into_iter().chain(KINDS));
    points.iter().for_each(|point| table.row(cells(point)));
    report.table(&table);
    report.text(
        "All steps together, in milliseconds. Beside them 4 KiB are written over existing data \
         and made durable every 5 ms. `disturbed` operations met a moment in which that took 50 \
         ms and more, or in which the host took processors away from this virtual machine, as it \
         reports. `highest other` is without them.",
    );
    report.table(&waits(points, &breath.plain));
    report.text("The longest of each, and what its thread did meanwhile, in milliseconds:");
    report.table(&longest(points));
    let Told { count, median, highest, held_up } = breath.beside.told();
    report.text(&format!(
        "The plain file is what the disk does by itself: {} written in pieces of {} to random places and \
         synced, once for each read, in the same run. The 4 KiB beside took {median:.2} ms and at most \
         {highest:.0}, {:.0} times the median; {held_up} of {count} took 50 ms and more.",
        bytes(Plain::PIECES * Plain::PIECE as u64),
        bytes(Plain::PIECE as u64),
        highest / median.max(1e-3),
    ));
    report.text(&factors(points));
    let peak = points.iter().map(|point| point.stash_peak).max().unwrap_or(0);
    report.text(&format!("Largest stash: {peak} blocks; the bound is {STASH_BOUND}."));
    report.picture("breathe-space.svg", &space(points));
    report.picture("breathe-waits.svg", &highest_waits(points));
    report.finish(write)
}

/// All operations of these kinds, over all steps.
fn all(points: &[Point], kinds: &[&str]) -> Vec<Took> {
    let of = |times| kinds.iter().flat_map(move |kind| Times::of(times, kind)).copied();
    points.iter().flat_map(|point| of(&point.times)).collect()
}

/// All waiting times.
fn waits(points: &[Point], plain: &Plain) -> Table {
    let mut table = Table::new(times::HEAD);
    KINDS.iter().for_each(|kind| table.row(Waits::of(&all(points, &[kind])).cells(kind)));
    table.row(Waits::of(&all(points, &KINDS)).cells("any of these"));
    table.row(Waits::of(&plain.took).cells("plain file"));
    table
}

/// How the longest operation of each kind spent its time.
fn longest(points: &[Point]) -> Table {
    let mut table = Table::new(times::LONGEST);
    let rows = KINDS.iter().filter_map(|kind| Waits::longest(&all(points, &[kind]), kind));
    rows.for_each(|row| table.row(row));
    table
}

/// The most disk space for each byte of files.
fn factors(points: &[Point]) -> String {
    let top = (0..points.len()).max_by_key(|&at| points[at].files).unwrap_or(0);
    let most = |points: &[Point]| {
        let some = points.iter().filter(|point| point.files > 0);
        some.map(|point| point.allocated as f64 / point.files as f64).fold(0.0, f64::max)
    };
    let (growing, shrinking) = points.split_at(top + 1);
    format!(
        "Allocated for each byte of files: at most {:.2} while growing, {:.2} while shrinking.",
        most(growing),
        most(shrinking)
    )
}

/// The axis of the steps.
fn steps(points: &[Point]) -> Axis {
    Axis::linear("step", points.len().saturating_sub(1) as f64)
}

fn space(points: &[Point]) -> Chart {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let most = points.iter().map(|point| point.bytes_stored.max(point.allocated)).max();
    let most = Axis::linear("GiB", gib(most.unwrap_or(0)));
    let mut chart = Chart::new("What is stored, and what it takes", steps(points), most);
    let line = |of: fn(&Point) -> u64| {
        points.iter().enumerate().map(move |(at, point)| (at as f64, gib(of(point))))
    };
    chart.add("files", Look::Line, line(|point| point.files));
    chart.add("allocated on disk", Look::Line, line(|point| point.allocated));
    chart.add("length of objects", Look::Dashed, line(|point| point.bytes_stored));
    chart
}

fn highest_waits(points: &[Point]) -> Chart {
    let ticks = [0.1, 1.0, 10.0, 100.0, 1e3, 1e4].map(|ms: f64| (ms, ms.to_string()));
    let title = "The longest wait of each step";
    let mut chart = Chart::new(title, steps(points), Axis::log("milliseconds", ticks));
    for kind in KINDS {
        let highest = points.iter().map(|point| Waits::of(point.times.of(kind)).highest);
        let some = highest.enumerate().filter(|&(_, ms)| ms > 0.0);
        chart.add(kind, Look::Marked, some.map(|(at, ms)| (at as f64, ms)));
    }
    chart
}
