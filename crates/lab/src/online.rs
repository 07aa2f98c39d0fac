//! Layouts of a tree in an online store: requests, bytes and bills, beside the paper's own.
//!
//! "Optimizing Path ORAM for Cloud Storage Applications" keeps a bucket in an object, reads and
//! writes back a path for each access, and stores the client's state at log-off. Here that runs on
//! the engine, and the tree in windows as a volume, with the same blocks and accesses.

use crate::buckets::LabBuckets;
use crate::defaults;
use crate::engines::passphrase;
use crate::growth::fill;
use crate::report::{Report, Table, bytes, count};
use anyhow::Result;
use oblivio_crypto::KdfParams;
use oblivio_engine::tree::{Eviction, TreeConfig, TreeKeys, TreeOram, buckets_in};
use oblivio_store::record::CallKind;
use oblivio_store::{MemoryStore, RecordStore};
use oblivio_testkit::SplitMix64;
use oblivio_volume::windows::{Traffic, WindowCost, WindowOptions, WindowVolume};
use oblivio_volume::{BlockSpace, CacheOptions, Environment, OpenOptions};
use std::sync::Arc;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Logarithm of the number of blocks, of which three quarters are written
    #[arg(long, default_value_t = 14)]
    log_blocks: u32,
    /// Bytes in a block
    #[arg(long, default_value_t = 1024)]
    block_bytes: usize,
    /// Accesses that are counted
    #[arg(long, default_value_t = 20_000)]
    accesses: u64,
}

/// The user of the forecast: stored, read and written a day, in blocks of 32 KiB, with a tenth more
/// for metadata.
const STORED: u64 = 50 << 30;
const BLOCK: usize = 32 << 10;
const A_DAY: f64 = ((2u64 << 30) + (500 << 20)) as f64 / BLOCK as f64 * 1.1;
const MONTH: f64 = 30.4;
const CACHE: u64 = 10 << 30;

/// Dollars: a GB stored, a million stores and reads, a GB out; and what is free of each but the
/// first. List prices, as in `oblivio init --expect`.
struct Prices {
    stored: f64,
    puts: [f64; 2],
    gets: [f64; 2],
    out: [f64; 2],
}

const S3: Prices = Prices { stored: 0.023, puts: [5.0, 0.0], gets: [0.4, 0.0], out: [0.09, 100.0] };
const R2: Prices = Prices { stored: 0.015, puts: [4.5, 1e6], gets: [0.36, 1e7], out: [0.0, 0.0] };

impl Prices {
    fn bill(&self, month: Traffic, stored: f64) -> f64 {
        let above = |amount: f64, [price, free]: [f64; 2]| (amount - free).max(0.0) * price;
        let millions = |[price, free]: [f64; 2]| [price / 1e6, free];
        stored / 1e9 * self.stored
            + above(month.puts, millions(self.puts))
            + above(month.gets + month.looks, millions(self.gets))
            + above(month.down / 1e9, self.out)
    }
}

/// Runs the experiment.
///
/// # Errors
/// Those of the engine, the volume and the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let mut report = Report::new("online", "A tree in an online store, and the paper's layout");
    let blocks = 1u64 << args.log_blocks;
    let live = blocks / 4 * 3;
    report.text(&format!(
        "{} blocks of {}, each written once, then {} random reads, one at a time. Both layouts in one \
         run, over memory; a pool of five levels, and a disk cache of a fifth of the tree. The first \
         row is the paper's layout: an object for each bucket, and each path written back.",
        count(live as f64),
        bytes(args.block_bytes as u64),
        count(args.accesses as f64)
    ));
    let paper = paper(args, blocks, live)?;
    let cache = tree_bytes(args, live) / 5;
    let windows = windows(args, blocks, live, cache)?;
    let mut table = Table::new(["layout", "GET", "PUT", "down", "up"]);
    let per_access = |sum: f64| format!("{:.2}", sum / args.accesses as f64);
    for (name, sum) in [("an object a bucket", paper), ("windows", windows)] {
        let size = |sum: f64| bytes((sum / args.accesses as f64) as u64);
        table.row([
            name.into(),
            per_access(sum.gets),
            per_access(sum.puts),
            size(sum.down),
            size(sum.up),
        ]);
    }
    report.table(&table);
    report.text(&format!(
        "For one access: windows make 1/{:.1} of the PUTs, and {:.2} of the bytes up.",
        paper.puts / windows.puts,
        windows.up / paper.up
    ));
    forecast(&mut report);
    report.finish(write)
}

/// What a month costs the user, by the formulas that `volume/tests/it/windows/costs.rs` confirms;
/// the paper's layout by the length of its paths.
fn forecast(report: &mut Report) {
    let options = WindowOptions::new(BLOCK, 256 << 30, true);
    let cost = WindowCost::of(&options, STORED, CACHE);
    let windows = cost.access(16).times(A_DAY * MONTH);
    // Batches do not help there: each access writes its path back.
    let config = TreeConfig::new(BLOCK, STORED / BLOCK as u64);
    let (depth, bucket) =
        (config.depth(config.capacity).0, config.geometry().bucket_bytes() as f64);
    let path = f64::from(depth + 1) * A_DAY * MONTH;
    let paper = Traffic {
        gets: path,
        puts: path,
        down: path * bucket,
        up: path * bucket,
        ..Traffic::default()
    };
    let paper_stored = buckets_in(oblivio_engine::Level(depth)) as f64 * bucket;
    report.text(&format!(
        "A month of a user with 50 GiB stored, 2 GiB read and 500 MiB written a day, blocks of {}, a \
         disk cache of {}:",
        bytes(BLOCK as u64),
        bytes(CACHE)
    ));
    let mut table = Table::new(["layout", "GET", "PUT", "down", "up", "S3", "R2"]);
    let bills = |month: Traffic, stored: f64| [S3.bill(month, stored), R2.bill(month, stored)];
    let all = [
        ("an object a bucket", paper, bills(paper, paper_stored)),
        ("windows", windows, bills(windows, cost.stored())),
    ];
    for (name, month, [s3, r2]) in &all {
        table.row([
            (*name).into(),
            count(month.gets + month.looks),
            count(month.puts),
            bytes(month.down as u64),
            bytes(month.up as u64),
            format!("${s3:.2}"),
            format!("${r2:.2}"),
        ]);
    }
    report.table(&table);
    report.text(&format!(
        "Windows cost 1/{:.1} on S3 and 1/{:.1} on R2, with 1/{:.0} of the PUTs and {:.2} of the bytes up.",
        all[0].2[0] / all[1].2[0],
        all[0].2[1] / all[1].2[1],
        paper.puts / windows.puts,
        windows.up / paper.up
    ));
}

fn tree_bytes(args: &Args, live: u64) -> u64 {
    WindowCost::of(&options(args), live * args.block_bytes as u64, 0).stored() as u64
}

fn options(args: &Args) -> WindowOptions {
    let bytes = args.block_bytes;
    WindowOptions {
        object_bytes: 64 * bytes,
        pool_bytes: 124 * bytes,
        ..WindowOptions::new(bytes, (1u64 << args.log_blocks) * bytes as u64, true)
    }
}

/// The paper's layout, on the engine.
fn paper(args: &Args, blocks: u64, live: u64) -> Result<Traffic> {
    let config = TreeConfig {
        eviction: Eviction::ReadPaths { extra_every: 0 },
        cache_bytes: 0,
        on_chip_bytes: 1 << 30,
        ..TreeConfig::new(args.block_bytes, blocks)
    };
    let mut engine = TreeOram::new(config, blocks, TreeKeys::from_seed(1))?;
    let mut store = LabBuckets::new();
    fill(&mut engine, &mut store, live)?;
    store.reset_counts();
    let mut dice = SplitMix64::new(7);
    for _ in 0..args.accesses {
        store.access(&mut engine, vec![defaults::read(dice.below(live))])?;
        engine.committed();
    }
    Ok(Traffic {
        gets: store.reads as f64,
        puts: store.writes as f64,
        down: store.bytes_read as f64,
        up: store.bytes_written as f64,
        ..Traffic::default()
    })
}

/// The tree in windows, as a volume.
fn windows(args: &Args, blocks: u64, live: u64, cache: u64) -> Result<Traffic> {
    let store = Arc::new(RecordStore::new(MemoryStore::new()));
    let open = OpenOptions {
        environment: Environment::from_seed(1),
        cache: Some(CacheOptions { store: Arc::new(MemoryStore::new()), bytes: cache }),
        ..OpenOptions::default()
    };
    let mut volume =
        WindowVolume::create(store.clone(), &passphrase(), KdfParams::TEST, options(args), open)?;
    volume.reserve(blocks)?;
    for first in (0..live).step_by(256) {
        let ids = first..live.min(first + 256);
        volume.defer(ids.map(|id| defaults::write(id, args.block_bytes)).collect())?;
        store.take();
    }
    volume.commit()?;
    let mut dice = SplitMix64::new(7);
    let mut sum = Traffic::default();
    for at in 0..2 * args.accesses {
        volume.access(vec![defaults::read(dice.below(live))])?;
        let events = store.take();
        // The first half fills the cache.
        if at < args.accesses {
            continue;
        }
        for event in events {
            let moved = event.len as f64;
            match event.op {
                CallKind::Read => (sum.gets, sum.down) = (sum.gets + 1.0, sum.down + moved),
                CallKind::Write | CallKind::Put => {
                    (sum.puts, sum.up) = (sum.puts + 1.0, sum.up + moved)
                }
                CallKind::Len => sum.looks += 1.0,
                _ => {}
            }
        }
    }
    Ok(sum)
}
