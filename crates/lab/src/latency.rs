//! A volume behind a slow link: the time for a small file in a fresh session, and the share of the
//! link that sequential work uses; through the library, and through a mount.

use crate::engines::{Engine, passphrase};
use crate::lock::lock;
use crate::report::{Report, Table, bytes};
use anyhow::{Result, ensure};
use oblivio_serve::mount::within::mount_within;
use oblivio_store::record::{CallKind, StoreEvent};
use oblivio_store::{LocalStore, RecordStore, Store};
use oblivio_testkit::latency::Latency;
use oblivio_testkit::{LatencyStore, SplitMix64};
use oblivio_volume::fs::{FileSystem, Handle, NewNode, ROOT_INO};
use oblivio_volume::{DEFAULT_MEMORY, OpenOptions, Volume};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions as FileOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Milliseconds each way
    #[arg(long, default_value_t = 50)]
    pub each_way_ms: u64,
    /// Megabits a second in each direction
    #[arg(long, default_value_t = 100)]
    pub megabits: u64,
    /// MiB stored in the volume
    #[arg(long, default_value_t = 1024)]
    pub stored_mib: u64,
    /// MiB read and written in sequence
    #[arg(long, default_value_t = 8)]
    pub sequential_mib: u64,
    /// Block sizes in bytes
    #[arg(long, value_delimiter = ',', default_value = "4096,16384")]
    pub block_bytes: Vec<usize>,
    /// What the volume stands on
    #[arg(long, default_value = "tree")]
    pub engine: Engine,
}

/// Bytes of a library request, and of a program's call on the mount.
const REQUEST: usize = 1 << 20;
const CALL: usize = 128 << 10;
const SMALL: usize = 4096;

/// The traffic on the link.
#[derive(Clone, Copy, Default)]
struct Passed {
    calls: u64,
    bytes: u64,
    /// What an online store bills: objects read or parts of them, and objects stored.
    gets: u64,
    puts: u64,
}

/// Counts the traffic below it.
#[derive(Clone, Default)]
struct Meter(Arc<Mutex<(BTreeSet<u64>, Passed)>>);

impl Meter {
    fn see(&self, event: &StoreEvent) {
        let mut seen = lock(&self.0);
        if seen.0.insert(event.call) {
            seen.1.calls += 1;
        }
        if matches!(event.op, CallKind::Read | CallKind::Write | CallKind::Put) {
            seen.1.bytes += event.len;
        }
        seen.1.gets += u64::from(event.op == CallKind::Read);
        seen.1.puts += u64::from(matches!(event.op, CallKind::Write | CallKind::Put));
    }

    fn take(&self) -> Passed {
        let mut seen = lock(&self.0);
        std::mem::take(&mut *seen).1
    }
}

/// One measurement: work, time, traffic, bytes of the user.
type Line = (&'static str, Duration, Passed, u64);

/// Measures pieces of work in sequence.
struct Stopwatch {
    meter: Meter,
    lines: Vec<Line>,
}

impl Stopwatch {
    fn time<T>(
        &mut self,
        work: &'static str,
        user: u64,
        act: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.meter.take();
        let start = Instant::now();
        let done = act()?;
        self.lines.push((work, start.elapsed(), self.meter.take(), user));
        Ok(done)
    }
}

/// Runs the experiment.
///
/// # Errors
/// Those of the volume and of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let mut report = Report::new("latency", "Behind a slow line");
    report.text(&format!(
        "A volume with {} in it, over a folder behind {} ms each way and {} Mbit/s, with real \
         waiting. Nothing is warm. Through the library: opening it and reading metadata ahead, a \
         file of 4 KiB found by its name, and sequential work in requests of 1 MiB. Through FUSE: \
         the same in a fresh mount, by a program's ordinary calls of {}; the kernel reads ahead. \
         `of the line` is the time that the bytes moved take on the line alone, as a share of the \
         time that passed.",
        bytes(args.stored_mib << 20),
        args.each_way_ms,
        args.megabits,
        bytes(CALL as u64),
    ));
    let head = ["block", "work", "time", "round trips", "bytes moved", "user data", "of the line"];
    let mut table = Table::new(head);
    let mut skipped = None;
    for &block_bytes in &args.block_bytes {
        let (lines, why) = measure(args, block_bytes)?;
        skipped = skipped.or(why);
        for line in lines {
            let [work, time, calls, moved, user, share] = cells(args, line);
            table.row([bytes(block_bytes as u64), work, time, calls, moved, user, share]);
        }
    }
    report.table(&table);
    if let Some(why) = skipped {
        report.text(&why);
    }
    report.finish(write)
}

/// The work on a fresh volume, and why there is none through FUSE.
fn measure(args: &Args, block_bytes: usize) -> Result<(Vec<Line>, Option<String>)> {
    let scratch = tempfile::tempdir()?;
    let folder = scratch.path().join("volume");
    fill(args, block_bytes, &folder)?;
    let mut lines = library(args, &folder)?;
    settle(&folder)?;
    let dir = scratch.path().join("mount");
    std::fs::create_dir(&dir)?;
    let mut skipped = None;
    match mounted(args, &folder, &dir) {
        Ok(more) => lines.extend(more),
        Err(error) => skipped = Some(format!("Nothing through FUSE: {error:#}.")),
    }
    Ok((lines, skipped))
}

/// What a table says of a measurement: work, time, round trips, bytes moved, bytes of the user, and
/// the share of the line.
fn cells(args: &Args, (work, time, passed, user): Line) -> [String; 6] {
    let line = passed.bytes as f64 / latency(args).read_rate as f64;
    let cells = [
        work.to_owned(),
        format!("{:.2} s", time.as_secs_f64()),
        format!("{} ({} gets, {} puts)", passed.calls, passed.gets, passed.puts),
        bytes(passed.bytes),
        bytes(user),
        format!("{:.0} %", 100.0 * line / time.as_secs_f64()),
    ];
    eprintln!("{}", cells.join(" | "));
    cells
}

fn latency(args: &Args) -> Latency {
    Latency::new(Duration::from_millis(2 * args.each_way_ms), args.megabits * 1_000_000 / 8)
}

/// The folder behind the link, and the link's meter.
fn slow(args: &Args, folder: &Path) -> Result<(Arc<dyn Store>, Stopwatch)> {
    let meter = Meter::default();
    let seen = meter.clone();
    let slow = LatencyStore::new(LocalStore::open(folder)?, latency(args));
    let store = RecordStore::watching(slow, move |event| seen.see(event));
    Ok((Arc::new(store), Stopwatch { meter, lines: Vec::new() }))
}

fn library(args: &Args, folder: &Path) -> Result<Vec<Line>> {
    let (store, mut watch) = slow(args, folder)?;
    let fs = watch.time("open", 0, || {
        let open = OpenOptions { short_pauses: true, ..OpenOptions::default() };
        let volume = Box::new(Volume::open(store, &passphrase(), open)?);
        // As in a mount.
        Ok(FileSystem::open_ahead(volume, 64)?)
    })?;
    watch.time("read 4 KiB", SMALL as u64, || {
        let file = fs.open_file(fs.lookup(ROOT_INO, b"small")?.ino)?;
        ensure!(fs.read(file, 0, SMALL)? == [7; SMALL], "the small file is not what it was");
        Ok(fs.close(file)?)
    })?;
    let total = args.sequential_mib << 20;
    let file = fs.open_file(fs.lookup(ROOT_INO, b"large")?.ino)?;
    watch.time("read in sequence", total, || {
        for at in (0..total).step_by(REQUEST) {
            ensure!(fs.read(file, at, REQUEST)? == content(), "the large file is not what it was");
        }
        Ok(())
    })?;
    watch.time("write in sequence, committed", total, || {
        sequence(&fs, file, total)?;
        Ok(fs.commit()?)
    })?;
    Ok(watch.lines)
}

/// The same by a program on a mount.
fn mounted(args: &Args, folder: &Path, dir: &Path) -> Result<Vec<Line>> {
    let (store, mut watch) = slow(args, folder)?;
    let mount = watch.time("FUSE: mount", 0, || {
        Ok(mount_within(store, &passphrase(), dir, OpenOptions::default())?)
    })?;
    let used = on_mount(args, dir, &mut watch);
    // Also after a failure: the folder must be removed.
    let ended = watch.time("FUSE: unmount", 0, || Ok(mount.end()?));
    used?;
    ended?;
    Ok(watch.lines)
}

fn on_mount(args: &Args, dir: &Path, watch: &mut Stopwatch) -> Result<()> {
    watch.time("FUSE: read 4 KiB", SMALL as u64, || {
        let found = std::fs::read(dir.join("small"))?;
        ensure!(found == [7; SMALL], "the small file is not what it was");
        Ok(())
    })?;
    let (large, total) = (dir.join("large"), args.sequential_mib << 20);
    let (content, mut buf) = (content(), vec![0; CALL]);
    watch.time("FUSE: read in sequence", total, || {
        let mut file = File::open(&large)?;
        for at in (0..total as usize).step_by(CALL) {
            file.read_exact(&mut buf)?;
            let wanted = &content[at % REQUEST..][..CALL];
            ensure!(buf == wanted, "the large file is not what it was");
        }
        Ok(())
    })?;
    watch.time("FUSE: write in sequence, fsync", total, || {
        let mut file = FileOptions::new().write(true).open(&large)?;
        for at in (0..total as usize).step_by(CALL) {
            file.write_all(&content[at % REQUEST..][..CALL])?;
        }
        Ok(file.sync_all()?)
    })
}

/// Makes a volume with a large file and a small one.
fn fill(args: &Args, block_bytes: usize, folder: &Path) -> Result<()> {
    let capacity = 64 << 30;
    let store = Arc::new(LocalStore::create(folder)?);
    let volume = args.engine.create(store, block_bytes, capacity, DEFAULT_MEMORY)?;
    let fs = FileSystem::format(Box::new(volume))?;
    let (_, small) = fs.create(ROOT_INO, b"small", NewNode::default())?;
    fs.write(small, 0, &[7; SMALL])?;
    let (_, large) = fs.create(ROOT_INO, b"large", NewNode::default())?;
    sequence(&fs, large, args.stored_mib << 20)?;
    drop(fs.into_blocks()?);
    Ok(())
}

/// Ends a session that was left open.
fn settle(folder: &Path) -> Result<()> {
    let store = Arc::new(LocalStore::open(folder)?);
    let volume = Volume::open(store, &passphrase(), OpenOptions::default())?;
    drop(FileSystem::open(Box::new(volume))?.into_blocks()?);
    Ok(())
}

fn sequence(fs: &FileSystem, file: Handle, total: u64) -> Result<()> {
    let content = content();
    for at in (0..total).step_by(REQUEST) {
        fs.write(file, at, &content)?;
    }
    Ok(())
}

fn content() -> Vec<u8> {
    let mut rng = SplitMix64::new(3);
    (0..REQUEST).map(|_| rng.next_u64() as u8).collect()
}
