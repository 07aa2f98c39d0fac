//! A volume behind a slow line: how long a small file takes in a fresh session, and how much of the
//! line sequential work makes use of.

use crate::report::{Report, Table, bytes};
use crate::workload::Rng;
use anyhow::{Result, ensure};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::latency::Latency;
use oblivio_store::record::{Event, Op};
use oblivio_store::{LatencyStore, MemoryStore, RecordStore, Store};
use oblivio_volume::fs::{FileSystem, Handle, NewNode, ROOT_INO};
use oblivio_volume::{CreateOptions, OpenOptions, Volume};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Milliseconds each way.
    #[arg(long, default_value_t = 50)]
    each_way_ms: u64,
    /// Megabits a second in each direction.
    #[arg(long, default_value_t = 100)]
    megabits: u64,
    /// MiB stored in the volume.
    #[arg(long, default_value_t = 1024)]
    stored_mib: u64,
    /// MiB read and written in sequence.
    #[arg(long, default_value_t = 8)]
    sequential_mib: u64,
    /// Block sizes in bytes.
    #[arg(long, value_delimiter = ',', default_value = "4096,16384")]
    block_bytes: Vec<usize>,
}

/// Bytes of one request, as a kernel's read-ahead asks.
const REQUEST: usize = 1 << 20;
const SMALL: usize = 4096;

/// What passed the line.
#[derive(Clone, Copy, Default)]
struct Passed {
    calls: u64,
    bytes: u64,
}

/// Counts what passes below it.
#[derive(Clone, Default)]
struct Meter(Arc<Mutex<(BTreeSet<u64>, Passed)>>);

impl Meter {
    fn see(&self, event: &Event) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.0.insert(event.call) {
            seen.1.calls += 1;
        }
        if matches!(event.op, Op::Read | Op::Write | Op::Put) {
            seen.1.bytes += event.len;
        }
    }

    fn take(&self) -> Passed {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *seen).1
    }
}

/// Runs the experiment.
///
/// # Errors
/// Those of the volume and of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let latency =
        Latency::new(Duration::from_millis(2 * args.each_way_ms), args.megabits * 1_000_000 / 8);
    let mut report = Report::new("latency", "Behind a slow line");
    report.text(&format!(
        "A volume with {} in it, over a store with {} ms each way and {} Mbit/s, real waiting. In a \
         fresh session: the time to open it and to read metadata ahead, which a mount does before \
         anybody asks; then a file of 4 KiB, found by its name; then sequential work in requests of \
         1 MiB. `of the line`: the time that the bytes moved take on the line alone, as a share of \
         the time that passed.",
        bytes(args.stored_mib << 20),
        args.each_way_ms,
        args.megabits
    ));
    let mut table = Table::new([
        "block",
        "work",
        "time",
        "round trips",
        "bytes moved",
        "user data",
        "of the line",
    ]);
    for &block_bytes in &args.block_bytes {
        for (work, time, passed, user) in session(args, block_bytes, latency)? {
            let line = passed.bytes as f64 / latency.read_rate as f64;
            table.row([
                bytes(block_bytes as u64),
                work.to_owned(),
                format!("{:.2} s", time.as_secs_f64()),
                passed.calls.to_string(),
                bytes(passed.bytes),
                bytes(user),
                format!("{:.0} %", 100.0 * line / time.as_secs_f64()),
            ]);
        }
    }
    report.table(&table);
    report.finish(write)
}

type Line = (&'static str, Duration, Passed, u64);

fn session(args: &Args, block_bytes: usize, latency: Latency) -> Result<Vec<Line>> {
    let stored = fill(args, block_bytes)?;
    let meter = Meter::default();
    let seen = meter.clone();
    let slow = LatencyStore::new(stored, latency);
    let store = Arc::new(RecordStore::watching(slow, move |event| seen.see(event)));
    let mut lines = Vec::new();
    let mut timed = |work: &'static str, user: u64, act: &mut dyn FnMut() -> Result<()>| {
        meter.take();
        let start = Instant::now();
        act()?;
        lines.push((work, start.elapsed(), meter.take(), user));
        anyhow::Ok(())
    };
    let mut opened = None;
    timed("open", 0, &mut || {
        let store: Arc<dyn Store> = store.clone();
        let volume = Volume::open(
            store,
            &passphrase(),
            OpenOptions { short_pauses: true, ..Default::default() },
        )?;
        let fs = FileSystem::open(Box::new(volume))?;
        fs.warm(64)?;
        opened = Some(fs);
        Ok(())
    })?;
    let Some(fs) = opened else { return Ok(lines) };
    timed("read 4 KiB", SMALL as u64, &mut || {
        let file = fs.open_file(fs.lookup(ROOT_INO, b"small")?.ino)?;
        ensure!(fs.read(file, 0, SMALL)? == [7; SMALL], "the small file is not what it was");
        Ok(fs.close(file)?)
    })?;
    let total = args.sequential_mib << 20;
    let file = fs.open_file(fs.lookup(ROOT_INO, b"large")?.ino)?;
    timed("read in sequence", total, &mut || {
        for at in (0..total).step_by(REQUEST) {
            ensure!(fs.read(file, at, REQUEST)?.len() == REQUEST, "the large file is too short");
        }
        Ok(())
    })?;
    timed("write in sequence, committed", total, &mut || {
        sequence(&fs, file, total)?;
        Ok(fs.commit()?)
    })?;
    Ok(lines)
}

fn passphrase() -> Passphrase {
    Passphrase::new("lab")
}

/// A store that holds a volume with a large file and a small one.
fn fill(args: &Args, block_bytes: usize) -> Result<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let create = CreateOptions { block_bytes, capacity_bytes: 64 << 30, kdf: KdfParams::TEST };
    let shared: Arc<dyn Store> = store.clone();
    let volume = Volume::create(shared, &passphrase(), create, OpenOptions::default())?;
    let fs = FileSystem::format(Box::new(volume))?;
    let (_, small) = fs.create(ROOT_INO, b"small", NewNode::default())?;
    fs.write(small, 0, &[7; SMALL])?;
    let (_, large) = fs.create(ROOT_INO, b"large", NewNode::default())?;
    sequence(&fs, large, args.stored_mib << 20)?;
    drop(fs.into_blocks()?);
    Ok(Arc::into_inner(store).unwrap_or_default())
}

fn sequence(fs: &FileSystem, file: Handle, total: u64) -> Result<()> {
    let mut rng = Rng::new(3);
    let content: Vec<u8> = (0..REQUEST).map(|_| rng.next() as u8).collect();
    for at in (0..total).step_by(REQUEST) {
        fs.write(file, at, &content)?;
    }
    Ok(())
}
