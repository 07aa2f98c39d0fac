//! Block size against bucket size and eviction: the basis of the defaults.

use crate::buckets::LabBuckets;
use crate::clock::CpuClock;
use crate::report::{Report, Table, bytes, count};
use anyhow::Result;
use oblivio_engine::tree::{Eviction, TreeConfig, TreeKeys, TreeOram};
use oblivio_engine::{Action, BlockId, BlockOp};

/// What to sweep.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// MiB of data in the tree
    #[arg(long, default_value_t = 1024)]
    data_mib: u64,
    /// MiB of bucket cache
    #[arg(long, default_value_t = 128)]
    cache_mib: usize,
    /// Seconds to measure each line
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// Accesses in a batch
    #[arg(long, default_value_t = 32)]
    batch: u64,
}

const SHAPES: [(usize, Eviction); 4] = [
    (4, Eviction::ReadPaths { extra_every: 0 }),
    (4, Eviction::Scheduled { every: 3 }),
    (3, Eviction::Scheduled { every: 2 }),
    (5, Eviction::Scheduled { every: 4 }),
];

/// The name of an eviction in tables.
pub fn eviction_name(eviction: Eviction) -> String {
    match eviction {
        Eviction::ReadPaths { extra_every: 0 } => "read paths".into(),
        Eviction::ReadPaths { extra_every } => format!("read paths + 1/{extra_every}"),
        Eviction::Scheduled { every } => format!("scheduled 1/{every}"),
        Eviction::Windows(rule) => format!("windows of {}, 1/{}", rule.turns(), rule.every),
    }
}

/// Runs the sweep.
///
/// # Errors
/// Those of the engine and of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let mut report = Report::new("sweep", "Block size, bucket size and eviction");
    report.text(&format!(
        "Sequential access to {} of data, reads and writes by turns, with {} MiB of bucket cache. \
         Sealed, tag tree, map in memory, buckets in plain memory. MB/s counts user data one way. \
         `x{}` is with that many accesses in a batch. Bytes are store traffic per access, one \
         access per batch. Times are processor time of the one thread.",
        bytes(args.data_mib << 20),
        args.cache_mib,
        args.batch
    ));
    let mut table = Table::new([
        "block".into(),
        "Z".into(),
        "eviction".into(),
        "depth".into(),
        "stored / data".into(),
        "accesses/s".into(),
        "MB/s".into(),
        format!("accesses/s x{}", args.batch),
        format!("MB/s x{}", args.batch),
        "read".into(),
        "written".into(),
        "moved / B".into(),
        "stash peak".to_owned(),
    ]);
    for block_kib in [4usize, 8, 16, 32, 64] {
        for (slots, eviction) in SHAPES {
            let row = measure(args, block_kib << 10, slots, eviction)?;
            eprintln!("{}", row.join(" | "));
            table.row(row);
        }
    }
    report.table(&table);
    report.finish(write)
}

fn measure(
    args: &Args,
    block_bytes: usize,
    slots: usize,
    eviction: Eviction,
) -> Result<Vec<String>> {
    let blocks = (args.data_mib << 20) / block_bytes as u64;
    let config = TreeConfig {
        blocks_per_bucket: slots,
        leaf_steps: slots == 4,
        eviction,
        cache_bytes: args.cache_mib << 20,
        ..TreeConfig::new(block_bytes, blocks)
    };
    let mut engine = TreeOram::new(config, blocks, TreeKeys::from_seed(1))?;
    let mut store = LabBuckets::new();
    let mut next = 0;
    let mut serve = |engine: &mut TreeOram, store: &mut LabBuckets, batch: u64, write: bool| {
        let op = |id| {
            let action =
                if write { Action::Write(vec![id as u8; block_bytes]) } else { Action::Read };
            BlockOp { id: BlockId(id), action }
        };
        let ops = (0..batch).map(|at| op((next + at) % blocks)).collect();
        next += batch;
        engine.committed();
        store.access(engine, ops)
    };
    for _ in 0..blocks / args.batch {
        serve(&mut engine, &mut store, args.batch, true)?;
    }
    let stored = store.bytes_stored();
    let mut rates = Vec::new();
    let mut moved = (0.0, 0.0);
    for batch in [1, args.batch] {
        store.reset_counts();
        let (begun, mut accesses) = (CpuClock::start(), 0);
        while begun.seconds() < args.seconds {
            for turn in 0..2 * (16 / batch).max(1) {
                serve(&mut engine, &mut store, batch, turn % 2 == 0)?;
                accesses += batch;
            }
        }
        rates.push(accesses as f64 / begun.seconds());
        if batch == 1 {
            let per_access = |total: u64| total as f64 / accesses as f64;
            moved = (per_access(store.bytes_read), per_access(store.bytes_written));
        }
    }
    let megabytes = |rate: f64| count(rate * block_bytes as f64 / 1e6);
    Ok(vec![
        bytes(block_bytes as u64),
        slots.to_string(),
        eviction_name(eviction),
        engine.depth().0.to_string(),
        format!("{:.2}", stored as f64 / (blocks * block_bytes as u64) as f64),
        count(rates[0]),
        megabytes(rates[0]),
        count(rates[1]),
        megabytes(rates[1]),
        bytes(moved.0 as u64),
        bytes(moved.1 as u64),
        format!("{:.1}", (moved.0 + moved.1) / block_bytes as f64),
        engine.meters().stash_peak.to_string(),
    ])
}
