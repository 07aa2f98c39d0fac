//! PMMAC beside the tag tree: bytes hashed, time, and when tampering is detected.

use crate::buckets::LabBuckets;
use crate::clock::CpuClock;
use crate::defaults::{self, volume_config};
use crate::engine::available;
use crate::growth::fill;
use crate::report::{Report, Table, bytes, count, median};
use anyhow::{Result, ensure};
use oblivio_engine::tree::{Eviction, TreeConfig, TreeKeys, TreeOram};
use oblivio_engine::{BucketId, Leaf, Level};
use oblivio_testkit::SplitMix64;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Accesses over which to count bytes
    #[arg(long, default_value_t = 4096)]
    accesses: u64,
    /// Logarithm of the number of blocks for the times
    #[arg(long, default_value_t = 16)]
    log_blocks: u32,
    /// Seconds for each time
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Buckets to roll back, one engine for each
    #[arg(long, default_value_t = 25)]
    trials: u64,
}

/// Runs the experiment.
///
/// # Errors
/// Those of the engine and of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let mut report = Report::new("integrity", "PMMAC beside the tag tree");
    hashed(args, &mut report)?;
    price(args, &mut report)?;
    detection(args, &mut report)?;
    report.finish(write)
}

/// Bytes hashed per access.
fn hashed(args: &Args, report: &mut Report) -> Result<()> {
    report.text(
        "Bytes hashed per access: blocks of 64 bytes, Z = 4, classic Path ORAM eviction, no \
         cache. Both schemes are on in the same engine and counted by its meters. A Merkle tree \
         hashes every bucket of the path when it is read and again when it is written; the tag \
         tree gets this from the seals. PMMAC hashes the block of interest with its address and \
         count: once to check and once to make the new tag. `full paths` is paths x (L + 1) x \
         bucket x 2. At L = 32 most buckets were never stored and so are not read, and only `full \
         paths` shows the cost of a tree in use. At L = 16 every bucket is stored, and the meter \
         adds only the maintenance paths (1 in 256). `slots only` counts payloads alone, as the \
         paper's 4 (L + 1) does.",
    );
    let mut table = Table::new([
        "L",
        "blocks",
        "PMMAC metered",
        "tag tree metered",
        "full paths",
        "ratio",
        "slots only",
        "wanted",
    ]);
    for (depth, wanted) in [(16u32, 68), (32, 132)] {
        // L = 32 with few blocks: as empty as the configuration allows.
        let fill_percent = if depth == 16 { 52 } else { 1 };
        let slots = (oblivio_engine::tree::buckets_in(Level(depth - 1)) * 4) as u128;
        let blocks =
            if depth == 16 { 1 << 18 } else { (slots * fill_percent as u128 / 100) as u64 + 1 };
        let config = TreeConfig {
            eviction: Eviction::ReadPaths { extra_every: 0 },
            fill_percent,
            pmmac: true,
            tag_tree: true,
            cache_bytes: 0,
            ..TreeConfig::new(64, blocks)
        };
        // The on-chip map, and a bit for each bucket; both double while they grow.
        if depth == 32 && available() < 4 << 30 {
            report.text("L = 32 was left out: it needs 4 GiB of memory.");
            continue;
        }
        let mut engine = TreeOram::new(config, blocks, TreeKeys::from_seed(1))?;
        ensure!(engine.depth() == Level(depth), "the depth is {}", engine.depth().0);
        let mut store = LabBuckets::new();
        let span = if depth == 16 { blocks } else { 4096 };
        fill(&mut engine, &mut store, span)?;
        let mut rng = SplitMix64::new(1);
        let before = engine.meters();
        for access in 0..args.accesses {
            let id = rng.below(span);
            let op = if access % 2 == 0 { defaults::write(id, 64) } else { defaults::read(id) };
            store.access(&mut engine, vec![op])?;
        }
        let after = engine.meters();
        let per_access = |total: u64| total as f64 / args.accesses as f64;
        let pmmac = per_access(after.pmmac_bytes - before.pmmac_bytes);
        let tags = per_access(after.tag_tree_bytes - before.tag_tree_bytes);
        let levels = u64::from(depth) + 1;
        let bucket = config.geometry().bucket_bytes() as u64;
        // The paths of group remaps are no requests; their share is the same for both.
        let full = (levels * bucket * 2) as f64;
        let ratio = full / pmmac;
        ensure!(ratio >= f64::from(wanted), "PMMAC hashes only {ratio:.0} times less");
        table.row([
            depth.to_string(),
            count(blocks as f64),
            format!("{pmmac:.0} B"),
            format!("{} B", count(tags)),
            format!("{} B", count(full)),
            format!("{ratio:.0} x"),
            format!("{} x", 4 * levels),
            format!(">= {wanted} x"),
        ]);
    }
    report.table(&table);
    Ok(())
}

/// The time cost of each scheme.
fn price(args: &Args, report: &mut Report) -> Result<()> {
    report.text(&format!(
        "Time per access: 2^{} blocks, default eviction, random reads and writes, processor time. \
         Every bucket is sealed in all four. `cold` has 1 MiB of bucket cache.",
        args.log_blocks
    ));
    let mut table = Table::new([
        "block",
        "integrity",
        "bucket",
        "accesses/s",
        "time",
        "cold accesses/s",
        "time",
    ]);
    let blocks = 1u64 << args.log_blocks;
    for block_bytes in [64usize, 4096] {
        for (name, pmmac, tag_tree) in [
            ("none", false, false),
            ("PMMAC", true, false),
            ("tag tree", false, true),
            ("both", true, true),
        ] {
            let config = TreeConfig { pmmac, tag_tree, ..volume_config(block_bytes, blocks) };
            let warm = rate(args, config, blocks)?;
            let cold = rate(args, TreeConfig { cache_bytes: 1 << 20, ..config }, blocks)?;
            table.row([
                bytes(block_bytes as u64),
                name.to_owned(),
                format!("{} B", config.geometry().bucket_bytes()),
                count(warm),
                format!("{:.1} µs", 1e6 / warm),
                count(cold),
                format!("{:.1} µs", 1e6 / cold),
            ]);
        }
    }
    report.table(&table);
    Ok(())
}

fn rate(args: &Args, config: TreeConfig, blocks: u64) -> Result<f64> {
    let mut engine = TreeOram::new(config, blocks, TreeKeys::from_seed(1))?;
    let mut store = LabBuckets::new();
    fill(&mut engine, &mut store, blocks)?;
    let mut rng = SplitMix64::new(9);
    let mut rates = Vec::new();
    for _ in 0..5 {
        let (clock, mut accesses) = (CpuClock::start(), 0);
        while clock.seconds() < args.seconds / 5.0 {
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
        rates.push(f64::from(accesses) / clock.seconds());
    }
    Ok(median(&rates))
}

/// When a rolled-back bucket is detected.
fn detection(args: &Args, report: &mut Report) -> Result<()> {
    report.text(&format!(
        "What is detected when: one bucket is put back to an older version that was once sealed \
         there. (A flipped bit fails its seal at once under every scheme.) Then random blocks are \
         read until the engine refuses. {} buckets at random depths, 2^10 blocks, at most 200,000 \
         accesses, no cache. `visits` are paths shown through that bucket, the refused one \
         included.",
        args.trials
    ));
    let mut table = Table::new([
        "integrity",
        "found out",
        "visits, median",
        "visits, most",
        "accesses, median",
    ]);
    for (name, pmmac, tag_tree) in
        [("none", false, false), ("PMMAC", true, false), ("tag tree", false, true)]
    {
        let mut found = Vec::new();
        for trial in 0..args.trials {
            found.extend(roll_back(pmmac, tag_tree, trial)?);
        }
        let visits: Vec<f64> = found.iter().map(|f| f.0 as f64).collect();
        let accesses: Vec<f64> = found.iter().map(|f| f.1 as f64).collect();
        ensure!(
            !tag_tree || visits == vec![1.0; args.trials as usize],
            "the tag tree must find out at the first visit: {visits:?}"
        );
        let or_dash = |value: f64| if value.is_finite() { count(value) } else { "-".into() };
        table.row([
            name.to_owned(),
            format!("{} of {}", found.len(), args.trials),
            or_dash(median(&visits)),
            or_dash(visits.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            or_dash(median(&accesses)),
        ]);
    }
    report.table(&table);
    Ok(())
}

/// Rolls one bucket back; returns visits and accesses until the engine refused, if it did.
fn roll_back(pmmac: bool, tag_tree: bool, trial: u64) -> Result<Option<(u64, u64)>> {
    let blocks = 1 << 10;
    let config = TreeConfig { pmmac, tag_tree, cache_bytes: 0, ..volume_config(64, blocks) };
    let mut engine = TreeOram::new(config, blocks, TreeKeys::from_seed(trial))?;
    let mut store = LabBuckets::showing();
    fill(&mut engine, &mut store, blocks)?;
    let mut rng = SplitMix64::new(trial);
    let depth = engine.depth();
    let level = Level(1 + rng.below(depth.0.into()) as u32);
    let bucket = Leaf(rng.below(1 << depth.0)).bucket_at(level, depth);
    let mut read = |engine: &mut TreeOram, store: &mut LabBuckets| -> (bool, bool) {
        store.shown.clear();
        let done = store.access(engine, vec![defaults::read(rng.below(blocks))]).is_ok();
        let visited = store.shown.iter().any(|leaf| leaf.bucket_at(level, depth) == bucket);
        (done, visited)
    };
    let mut advance = |engine: &mut TreeOram, store: &mut LabBuckets| -> Result<Vec<u8>> {
        for _ in 0..4 * blocks {
            ensure!(read(engine, store).0, "nothing was tampered with yet");
        }
        Ok(stored(store, bucket))
    };
    let old = advance(&mut engine, &mut store)?;
    let new = advance(&mut engine, &mut store)?;
    ensure!(!old.is_empty() && old != new, "the bucket was not rewritten");
    if let Some(bytes) = store.bucket_mut(bucket) {
        bytes.copy_from_slice(&old);
    }
    let mut visits = 0;
    for accesses in 1..=200_000 {
        let (done, visited) = read(&mut engine, &mut store);
        visits += u64::from(visited);
        if !done {
            return Ok(Some((visits, accesses)));
        }
    }
    Ok(None)
}

fn stored(store: &mut LabBuckets, bucket: BucketId) -> Vec<u8> {
    store.bucket_mut(bucket).map(|bytes| bytes.to_vec()).unwrap_or_default()
}
