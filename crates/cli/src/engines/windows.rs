//! The report on a tree in windows.

use crate::facts::{Holds, row};
use crate::human::{self, grouped, say, size};
use crate::price::{Month, Use};
use anyhow::Result;
use oblivio_volume::VolumeInfo;
use oblivio_volume::windows::{WindowCost, WindowInfo, WindowOptions};
use serde_json::Value;

/// Accesses beside those for content: directories and inodes.
const METADATA: f64 = 1.1;
/// Operations that a batch has when files are read or written in a row, and the syncs of who works
/// on files all day.
const BATCH: u64 = 16;
const SYNCS_A_DAY: f64 = 1000.0;
/// What is stored, unless the volume may hold less.
const STORED: u64 = 50 << 30;

/// A month of a volume with such blocks and objects, for up to `capacity` bytes, with a disk cache
/// of `cache`.
pub fn month(
    (block_bytes, object_bytes): (usize, usize),
    capacity: u64,
    expected: Use,
    cache: u64,
) -> Month {
    let options = WindowOptions { object_bytes, ..WindowOptions::new(block_bytes, capacity, true) };
    let stored = expected.stored.unwrap_or(STORED).min(capacity);
    let cost = WindowCost::of(&options, stored, cache);
    let accesses = |bytes: u64| bytes as f64 / block_bytes as f64 * METADATA;
    let day = cost
        .access(BATCH)
        .times(accesses(expected.read) + accesses(expected.written))
        .and(cost.sync(expected.written / SYNCS_A_DAY as u64).times(SYNCS_A_DAY));
    Month::of(Use { stored: Some(stored), ..expected }, cost.stored(), day)
}

/// What an access reads, and its share of what a window writes.
fn access_bytes(engine: &WindowInfo) -> (u64, u64) {
    let config = &engine.config;
    let levels = u64::from((engine.depth + 1).saturating_sub(engine.rule.pool_levels));
    let bucket = config.geometry().bucket_bytes() as u64;
    let path = levels * bucket;
    let every = u64::from(engine.rule.every);
    // A window reads and writes the buckets of its turns, and writes two blocks for each access.
    (path + path / every, path / every + 2 * config.block_bytes as u64)
}

pub fn as_json(value: &mut Value, info: &VolumeInfo, engine: &WindowInfo) {
    let (read, written) = access_bytes(engine);
    value["blocks_per_bucket"] = engine.config.blocks_per_bucket.into();
    value["size_class_blocks"] = engine.size_class.into();
    value["addressable_blocks"] = engine.addressable_blocks.into();
    value["depth"] = engine.depth.into();
    value["leaf_slots"] = engine.leaf_slots.into();
    value["pool_levels"] = engine.rule.pool_levels.into();
    value["window_turns"] = engine.rule.turns().into();
    value["windows"] = engine.windows.into();
    value["session"] = engine.session.into();
    value["session_before_ended"] = engine.released.into();
    value["access_bytes_read"] = read.into();
    value["access_bytes_written"] = written.into();
    value["replayed_batches"] = info.replayed.into();
}

pub fn rows(info: &VolumeInfo, engine: &WindowInfo) -> Result<()> {
    let class = engine.size_class * info.block_bytes as u64;
    row("stored", format!("{} for a size class of {}", size(info.bytes_stored), size(class)))?;
    row("memory", format!("up to {}", size(info.memory_bytes as u64)))?;
    row("session", format!("number {} of this volume", grouped(engine.session)))?;
    if !engine.released {
        row("taken over", "from a session that had not ended".into())?;
    }
    row("commits", grouped(info.epoch))?;
    if info.replayed > 0 {
        let batches = human::count(info.replayed, "batch");
        row("recovered", format!("{batches} of a session that did not end"))?;
    }
    Ok(())
}

pub fn in_words(info: &VolumeInfo, engine: &WindowInfo, holds: &Holds) -> Result<()> {
    let (read, written) = access_bytes(engine);
    say("\nWhat its storage learns")?;
    say("  - when you work, from where, and how many accesses you make")?;
    say("  - when something is synced, and roughly how much was written since the last time")?;
    say(format!(
        "  - the size class: {} blocks of {}; it follows what is stored by eighths of a power of two",
        grouped(engine.size_class),
        size(info.block_bytes as u64)
    ))?;
    say("  - which batches carry out writes, by when they come")?;
    say("  - when each session began, and whether it ended well")?;
    say(format!("  - that {} can open it", human::count(info.passphrases as u64, "passphrase")))?;
    say("What it does not learn")?;
    match holds {
        Holds::Files(_) => say("  - which file or directory, their names, number and sizes")?,
        Holds::Disk(_) => say("  - which part of the disk, what is on it, and where it is full")?,
    }
    say("  - whether one access is for the same as another, and whether anything is there")?;
    say("\nWhat one access costs")?;
    say(format!(
        "  some {} down and {} up for a block of {}, and one request for each level below the pool",
        size(read),
        size(written),
        size(info.block_bytes as u64)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price::of_url;

    /// The design's user, with the default blocks and 10 GiB of cache, to within a third: there,
    /// batches and metadata were guessed a little differently.
    #[test]
    fn a_bill_is_of_the_size_that_the_design_simulated() {
        let month = month((32 << 10, 2 << 20), 256 << 30, Use::default(), 10 << 30);
        let bill = |url| month.bill(&of_url(url).expect("known")).iter().sum::<f64>();
        for (url, simulated) in [("s3://b/a?region=eu-central-1", 160.0), ("b2://b/a", 19.0)] {
            let found = bill(url);
            assert!((found / simulated - 1.0f64).abs() < 0.34, "{url}: {found}");
        }
        assert!(bill("r2://b/a?account=x") < 5.0);
        assert!(of_url("s3://b/a?endpoint=http://localhost:9000").is_none());
    }
}
