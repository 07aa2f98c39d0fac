//! The bytes that a volume moves in a long session: by a formula of public numbers, by its own
//! counts, and at the store.

mod formula;

use crate::engines::passphrase;
use crate::lock::lock;
use crate::report::{Report, Table, bytes, count};
use anyhow::Result;
use formula::Moves;
use oblivio_crypto::KdfParams;
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::record::{CallKind, StoreEvent};
use oblivio_store::{LocalStore, RecordStore};
use oblivio_testkit::SplitMix64;
use oblivio_volume::{
    BlockSpace, CreateOptions, OpenOptions, Rule, Shown, ShownKind, TopLogs, Volume,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// MiB of blocks
    #[arg(long, default_value_t = 1024)]
    mib: u64,
    /// Blocks of a request in order; a mount's are as long
    #[arg(long, default_value_t = 8)]
    batch: u64,
    /// MiB of memory, as a mount has them on a computer with 24 GiB
    #[arg(long, default_value_t = 1536)]
    memory_mib: usize,
    /// A directory on the disk to measure; by default the system's for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Bytes that a folder was asked for.
#[derive(Clone, Copy, Debug, Default)]
struct AtStore {
    read: u64,
    buckets: u64,
    entries: u64,
    /// The journal, and states.
    rest: u64,
}

impl AtStore {
    fn see(&mut self, event: &StoreEvent) {
        let of = match (event.op, &*event.object) {
            (CallKind::Read, slab) if slab.starts_with("slab") => &mut self.read,
            (CallKind::Write, "top-log") => &mut self.entries,
            (CallKind::Write, slab) if slab.starts_with("slab") => &mut self.buckets,
            (CallKind::Write, _) => &mut self.rest,
            _ => return,
        };
        *of += event.len;
    }
}

/// What the volume says of itself.
#[derive(Clone, Debug, Default)]
struct Said {
    rule: Rule,
    counted: Moves,
    by_formula: Moves,
    accesses: u64,
    paths: u64,
}

impl Said {
    fn hear(&mut self, shown: &Shown) {
        if let Some(rule) = &shown.rule {
            self.rule = rule.clone();
        }
        self.counted.read += shown.bytes_read as f64;
        self.counted.buckets += shown.bytes_written as f64;
        let entry_bytes = self.rule.log.as_ref().map_or(0, |log| log.entry_bytes);
        self.counted.entries += f64::from(shown.entries) * entry_bytes as f64;
        if shown.kind == ShownKind::Batch {
            let (paths, all) = (shown.scheduled as u64, shown.leaves.len() as u64);
            self.by_formula.add(&formula::batch(&self.rule, shown.depth, all - paths, paths));
            self.accesses += all - paths;
            self.paths += paths;
        }
    }

    /// Forgets what it counted.
    fn restart(&mut self) {
        *self = Self { rule: std::mem::take(&mut self.rule), ..Self::default() };
    }
}

/// A volume under measurement.
struct Measured {
    volume: Volume,
    moved: Arc<Mutex<AtStore>>,
    said: Arc<Mutex<Said>>,
}

/// Runs the experiment.
///
/// # Errors
/// Those of the volume and of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let mut report = Report::new("moved", "What a volume moves to read and write");
    report.text(&format!(
        "A volume with {} MiB in blocks of 16 KiB and {} MiB of memory, in the midst of a session, with \
         the top of the tree in a log and without. It reads all of it in order, {} blocks at a \
         time, and then does as many single reads and writes of random blocks. Each cell: by the \
         formula below / by the volume's own counts / at the store.",
        args.mib, args.memory_mib, args.batch
    ));
    let mut table = Table::new([
        "log",
        "work",
        "accesses",
        "paths",
        "read",
        "buckets written",
        "entries written",
        "the rest",
    ]);
    for (name, top_logs) in [("yes", TopLogs::Busy), ("no", TopLogs::Never)] {
        let scratch = tempfile::tempdir_in(&dir)?;
        let mut measured = Measured::fill(args, &scratch.path().join("volume"), top_logs)?;
        let blocks = args.mib << 6;
        let mut row = |work: &str, cells: [String; 6]| {
            table.row([name.to_owned(), work.to_owned()].into_iter().chain(cells));
        };
        row("in order", measured.in_order(blocks, args.batch)?);
        row("random, half of them writes", measured.random(blocks)?);
        measured.volume.finish()?;
    }
    report.table(&table);
    report.text(formula::TOLD);
    report.finish(write)
}

impl Measured {
    /// A volume whose blocks are all written, in a session that is busy.
    fn fill(args: &Args, at: &Path, top_logs: TopLogs) -> Result<Self> {
        let (moved, said) = <(Arc<Mutex<AtStore>>, Arc<Mutex<Said>>)>::default();
        let sees = Arc::clone(&moved);
        let see = move |event: &StoreEvent| lock(&sees).see(event);
        let store = RecordStore::watching(LocalStore::create(at)?, see);
        let hears = Arc::clone(&said);
        let open = OpenOptions {
            memory_bytes: args.memory_mib << 20,
            top_logs,
            on_shown: Some(Box::new(move |shown| lock(&hears).hear(shown))),
            ..OpenOptions::default()
        };
        let capacity_bytes = (4 * args.mib) << 20;
        let create =
            CreateOptions { capacity_bytes, kdf: KdfParams::TEST, ..CreateOptions::default() };
        let block_bytes = create.block_bytes;
        let mut volume = Volume::create(Arc::new(store), &passphrase(), create, open)?;
        let blocks = args.mib << 6;
        volume.reserve(blocks)?;
        for first in (0..blocks).step_by(64) {
            volume.access((first..first + 64).map(|id| write_op(id, block_bytes)).collect())?;
        }
        let mut measured = Self { volume, moved, said };
        // As many again, in order, so that each path had its turn in this session.
        measured.reads(blocks, args.batch)?;
        Ok(measured)
    }

    fn reads(&mut self, blocks: u64, batch: u64) -> Result<()> {
        for first in (0..blocks).step_by(batch as usize) {
            self.volume.access((first..blocks.min(first + batch)).map(read_op).collect())?;
        }
        Ok(())
    }

    fn restart(&mut self) -> Result<()> {
        self.volume.commit()?;
        *lock(&self.moved) = AtStore::default();
        lock(&self.said).restart();
        Ok(())
    }

    fn in_order(&mut self, blocks: u64, batch: u64) -> Result<[String; 6]> {
        self.restart()?;
        self.reads(blocks, batch)?;
        Ok(self.cells())
    }

    fn random(&mut self, accesses: u64) -> Result<[String; 6]> {
        self.restart()?;
        let mut rng = SplitMix64::new(1);
        for _ in 0..accesses {
            let (id, is_write) = (rng.below(accesses), rng.below(2) == 1);
            let op = if is_write {
                write_op(id, CreateOptions::default().block_bytes)
            } else {
                read_op(id)
            };
            self.volume.access(vec![op])?;
        }
        Ok(self.cells())
    }

    fn cells(&self) -> [String; 6] {
        let moved = *lock(&self.moved);
        let said = lock(&self.said).clone();
        let (formula, own) = (said.by_formula, said.counted);
        let cell = |formula: f64, own: f64, store: u64| {
            format!("{} / {} / {}", bytes(formula as u64), bytes(own as u64), bytes(store))
        };
        let cells = [
            count(said.accesses as f64),
            count(said.paths as f64),
            cell(formula.read, own.read, moved.read),
            cell(formula.buckets, own.buckets, moved.buckets),
            cell(formula.entries, own.entries, moved.entries),
            bytes(moved.rest),
        ];
        eprintln!("{}", cells.join(" | "));
        cells
    }
}

fn read_op(id: u64) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Read }
}

fn write_op(id: u64, block_bytes: usize) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Write(vec![id as u8; block_bytes]) }
}
