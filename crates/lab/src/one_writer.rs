//! Volumes on the pyramid engine beside volumes on the tree: same store, same memory, same work, by
//! turns.

use crate::report::{Report, Table, bytes, count, median};
use anyhow::{Result, ensure};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::record::{Event, Op};
use oblivio_store::{Held, LocalStore, MemoryStore, RecordStore, Store};
use oblivio_testkit::SplitMix64;
use oblivio_volume::pyramid::PyramidOptions;
use oblivio_volume::{BlockSpace, CreateOptions, OpenOptions, Volume};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// What to compare.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Logarithm of the number of blocks
    #[arg(long, default_value_t = 14)]
    log_blocks: u32,
    /// Bytes in a block
    #[arg(long, default_value_t = 4096)]
    block_bytes: usize,
    /// MiB of memory for each volume
    #[arg(long, default_value_t = 64)]
    memory_mib: usize,
    /// Blocks in each request
    #[arg(long, default_value_t = 16)]
    batch: usize,
    /// Requests between two syncs
    #[arg(long, default_value_t = 4)]
    sync: usize,
    /// Requests of each kind in a round
    #[arg(long, default_value_t = 64)]
    requests: usize,
    /// Rounds; the table shows the medians
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// A folder for the stores; without it they are in memory
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Bytes that a store has moved.
#[derive(Default)]
struct Moved {
    read: AtomicU64,
    written: AtomicU64,
}

impl Moved {
    fn add(&self, event: &Event) {
        let count = match event.op {
            Op::Read => &self.read,
            Op::Write | Op::Put => &self.written,
            _ => return,
        };
        count.fetch_add(event.len, Ordering::Relaxed);
    }

    fn now(&self) -> (u64, u64) {
        (self.read.load(Ordering::Relaxed), self.written.load(Ordering::Relaxed))
    }
}

/// A volume, and what its store has moved.
struct Side {
    name: &'static str,
    volume: Volume,
    moved: Arc<Moved>,
    store: Arc<dyn Store>,
    reads: Found,
    writes: Found,
}

/// What rounds found: blocks a second, and bytes read and written for each.
#[derive(Default)]
struct Found(Vec<f64>, Vec<f64>, Vec<f64>);

fn new_store(args: &Args, name: &str) -> Result<(Arc<dyn Store>, Arc<Moved>)> {
    let moved = Arc::new(Moved::default());
    let watch = {
        let moved = Arc::clone(&moved);
        move |event: &Event| moved.add(event)
    };
    let store: Arc<dyn Store> = match &args.dir {
        Some(dir) => Arc::new(RecordStore::watching(LocalStore::create(dir.join(name))?, watch)),
        None => Arc::new(RecordStore::watching(MemoryStore::new(), watch)),
    };
    Ok((store, moved))
}

fn sides(args: &Args) -> Result<Vec<Side>> {
    let (block_bytes, memory_bytes) = (args.block_bytes, args.memory_mib << 20);
    let capacity_bytes = (block_bytes as u64) << args.log_blocks;
    let (passphrase, kdf) = (Passphrase::new("lab"), KdfParams::TEST);
    let open = || OpenOptions { memory_bytes, ..OpenOptions::default() };
    let side = |name, volume, store, moved| {
        let (reads, writes) = (Found::default(), Found::default());
        Side { name, volume, moved, store, reads, writes }
    };
    let (store, moved) = new_store(args, "tree")?;
    let create = CreateOptions { block_bytes, capacity_bytes, kdf };
    let tree = Volume::create(Arc::clone(&store), &passphrase, create, open())?;
    let tree = side("tree", tree, store, moved);
    let (store, moved) = new_store(args, "pyramid")?;
    let create = PyramidOptions::new(block_bytes, capacity_bytes, memory_bytes);
    let pyramid = Volume::create_pyramid(Arc::clone(&store), &passphrase, kdf, create, open())?;
    Ok(vec![tree, side("pyramid", pyramid, store, moved)])
}

/// Writes every block, and then as many at random: the store has its final size.
fn fill(args: &Args, side: &mut Side) -> Result<()> {
    let blocks = 1 << args.log_blocks;
    side.volume.reserve(blocks)?;
    let mut rng = SplitMix64::new(77);
    for first in (0..2 * blocks).step_by(64) {
        let id = |at: u64| if at < blocks { at } else { rng.below(blocks) };
        let ids: Vec<u64> = (first..first + 64).map(id).collect();
        side.volume.defer(ids.iter().map(|&id| write(args, id)).collect())?;
    }
    Ok(side.volume.commit()?)
}

fn write(args: &Args, id: u64) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Write(vec![id as u8; args.block_bytes]) }
}

fn measure(args: &Args, side: &mut Side, reads: bool) -> Result<()> {
    let blocks = 1 << args.log_blocks;
    let mut rng = SplitMix64::new(side.reads.0.len() as u64);
    let (start, before) = (Instant::now(), side.moved.now());
    for request in 0..args.requests {
        let ids: Vec<u64> = (0..args.batch).map(|_| rng.below(blocks)).collect();
        if reads {
            let read = |&id: &u64| BlockOp { id: BlockId(id), action: Action::Read };
            let answers = side.volume.access(ids.iter().map(read).collect())?;
            let right = |(id, block): (&u64, &Option<Vec<u8>>)| {
                block.as_ref().is_some_and(|block| block[0] == *id as u8)
            };
            ensure!(ids.iter().zip(&answers).all(right), "a block is not what it was");
        } else {
            side.volume.defer(ids.iter().map(|&id| write(args, id)).collect())?;
            if request % args.sync == args.sync - 1 {
                side.volume.commit()?;
            }
        }
    }
    let (seconds, after) = (start.elapsed().as_secs_f64(), side.moved.now());
    let served = (args.requests * args.batch) as f64;
    let found = if reads { &mut side.reads } else { &mut side.writes };
    found.0.push(served / seconds);
    found.1.push((after.0 - before.0) as f64 / served);
    found.2.push((after.1 - before.1) as f64 / served);
    Ok(())
}

/// Runs the comparison.
///
/// # Errors
/// Those of the volumes and of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let title = "Volumes on the pyramid engine beside the tree";
    let mut report = Report::new("one-writer", title);
    report.text(&format!(
        "Whole volumes {}, with journal, commits and rollback protection off. Both have {} MiB of \
         memory and 2^{} blocks of {}, all in use. Requests of {} random blocks: reads, then writes \
         with a sync after each {}. Bytes are those of each block at the store, all objects \
         together; time is that of the clock. Medians of {} rounds by turns.",
        args.dir.as_ref().map_or("over memory", |_| "on the local disk"),
        args.memory_mib,
        args.log_blocks,
        bytes(args.block_bytes as u64),
        args.batch,
        args.sync,
        args.rounds
    ));
    let mut sides = sides(args)?;
    for side in &mut sides {
        let start = Instant::now();
        fill(args, side)?;
        eprintln!("{}: filled in {:.1} s", side.name, start.elapsed().as_secs_f64());
    }
    for _ in 0..args.rounds {
        for reads in [true, false] {
            for side in &mut sides {
                measure(args, side, reads)?;
            }
        }
    }
    let head = ["work", "engine", "blocks/s", "read", "written", "stored/n"];
    let mut table = Table::new(head);
    for reads in [true, false] {
        for side in &sides {
            let Found(rates, read, written) = if reads { &side.reads } else { &side.writes };
            let stored: u64 = side.store.list()?.iter().map(|(_, len)| len).sum();
            table.row([
                if reads { "reads" } else { "writes" }.to_owned(),
                side.name.to_owned(),
                count(median(rates)),
                bytes(median(read) as u64),
                bytes(median(written) as u64),
                format!(
                    "{:.2}",
                    stored as f64 / ((args.block_bytes as u64) << args.log_blocks) as f64
                ),
            ]);
        }
    }
    report.table(&table);
    report.finish(write)
}
