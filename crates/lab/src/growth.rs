//! The cost of an access by the number of blocks.

use crate::buckets::LabBuckets;
use crate::clock::CpuClock;
use crate::defaults::{self, volume_config};
use crate::engine::available;
use crate::report::{Report, Table, bytes, count};
use anyhow::Result;
use oblivio_engine::tree::{TreeConfig, TreeKeys, TreeOram};
use oblivio_testkit::SplitMix64;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Logarithm of the smallest number of blocks
    #[arg(long, default_value_t = 10)]
    from: u32,
    /// Logarithm of the largest number of blocks
    #[arg(long, default_value_t = 22)]
    to: u32,
    /// Steps between them
    #[arg(long, default_value_t = 2)]
    step: usize,
    /// Seconds for each line
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// MiB of memory to leave free; sizes that would not fit are left out
    #[arg(long, default_value_t = 2048)]
    spare_mib: i64,
}

/// Runs the experiment.
///
/// # Errors
/// Those of the engine and of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let mut report = Report::new("growth", "How cost grows with the number of blocks");
    report.text(
        "The engine as a volume makes it (sealed, tag tree, 192 MiB of bucket cache less the \
         map), over buckets in plain memory, without commits. Every block was written. Reads and \
         writes are uniformly random, one per batch. `cold` is the same with 1 MiB of cache, \
         which shows how cost follows from depth. Times are processor time.",
    );
    let mut table = Table::new([
        "block",
        "blocks",
        "depth",
        "accesses/s",
        "time",
        "moved",
        "cold accesses/s",
        "cold time",
        "cold moved",
        "stash peak",
        "stored",
    ]);
    for block_bytes in [64usize, 4096] {
        for log_blocks in (args.from..=args.to).step_by(args.step) {
            let blocks = 1u64 << log_blocks;
            let config = volume_config(block_bytes, blocks);
            let needed = config.tree_bytes(blocks) as i64 + (1 << 30);
            if needed > available() - args.spare_mib * (1 << 20) {
                report.text(&format!(
                    "2^{log_blocks} blocks of {} need {}, more memory than there was.",
                    bytes(block_bytes as u64),
                    bytes(needed as u64)
                ));
                continue;
            }
            let warm = measure(args, config, blocks)?;
            let cold = measure(args, TreeConfig { cache_bytes: 1 << 20, ..config }, blocks)?;
            let row = [
                bytes(block_bytes as u64),
                format!("2^{log_blocks}"),
                warm.depth.to_string(),
                count(warm.rate),
                format!("{:.1} µs", 1e6 / warm.rate),
                bytes(warm.moved as u64),
                count(cold.rate),
                format!("{:.1} µs", 1e6 / cold.rate),
                bytes(cold.moved as u64),
                warm.stash_peak.max(cold.stash_peak).to_string(),
                bytes(warm.stored),
            ];
            eprintln!("{}", row.join(" | "));
            table.row(row);
        }
    }
    report.table(&table);
    report.finish(write)
}

struct Measured {
    depth: u32,
    rate: f64,
    moved: f64,
    stash_peak: u64,
    stored: u64,
}

fn measure(args: &Args, config: TreeConfig, blocks: u64) -> Result<Measured> {
    let mut engine = TreeOram::new(config, blocks, TreeKeys::from_seed(1))?;
    let mut store = LabBuckets::new();
    fill(&mut engine, &mut store, blocks)?;
    let mut rng = SplitMix64::new(7);
    let mut rate = 0.0;
    let mut moved = 0.0;
    // The first of the two warms up.
    for seconds in [args.seconds / 4.0, args.seconds] {
        store.reset_counts();
        let (clock, mut accesses) = (CpuClock::start(), 0u64);
        while clock.seconds() < seconds {
            for _ in 0..64 {
                let id = rng.below(blocks);
                let write = rng.next_u64() & 1 == 0;
                let op = if write {
                    defaults::write(id, config.block_bytes)
                } else {
                    defaults::read(id)
                };
                store.access(&mut engine, vec![op])?;
            }
            engine.committed();
            accesses += 64;
        }
        rate = accesses as f64 / clock.seconds();
        moved = (store.bytes_read + store.bytes_written) as f64 / accesses as f64;
    }
    let depth = engine.depth().0;
    let stash_peak = engine.meters().stash_peak;
    Ok(Measured { depth, rate, moved, stash_peak, stored: store.bytes_stored() })
}

/// Writes every block.
///
/// # Errors
/// Those of the engine.
pub fn fill(engine: &mut TreeOram, store: &mut LabBuckets, blocks: u64) -> Result<()> {
    let block_bytes = engine.config().block_bytes;
    let mut next = 0;
    while next < blocks {
        let end = blocks.min(next + 64);
        let ops = (next..end).map(|id| defaults::write(id, block_bytes)).collect();
        store.access(engine, ops)?;
        // Changes are not collected for a commit that never comes.
        engine.committed();
        next = end;
    }
    Ok(())
}
