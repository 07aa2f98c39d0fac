//! `info`: what a volume is, what it costs, and what its storage learns.

use crate::args::InfoArgs;
use crate::human::{self, grouped, say, say_json, size};
use crate::open;
use anyhow::Result;
use oblivio_volume::VolumeInfo;
use oblivio_volume::fs::Usage;
use serde_json::{Value, json};

/// Runs the command.
pub fn run(args: &InfoArgs) -> Result<()> {
    let (info, holds) = open::with_either(
        &args.volume,
        &args.open,
        |session| Ok((session.info.clone(), Holds::Files(session.fs.usage()?))),
        |disk, info| Ok((info.clone(), Holds::Disk(disk.size()))),
    )?;
    if args.json { say_json(&as_json(&info, &holds)) } else { in_words(&info, &holds) }
}

/// What a volume is used for.
enum Holds {
    Files(Usage),
    /// A disk of so many bytes.
    Disk(u64),
}

/// What one access moves at the most, before the top of the tree is in memory: the path that is
/// read, and its share of the paths that are rewritten.
fn access_bytes(info: &VolumeInfo) -> (u64, u64) {
    let short = (info.blocks_per_bucket - info.leaf_slots) * info.block_bytes;
    let path = (u64::from(info.depth) + 1) * info.bucket_bytes as u64 - short as u64;
    // One path in three is read once more and written (see the decision on eviction).
    (path + path / 3, path / 3)
}

fn capacity(info: &VolumeInfo) -> u64 {
    info.capacity_blocks.saturating_mul(info.block_bytes as u64)
}

fn used(usage: &Usage) -> u64 {
    (usage.data_blocks + usage.metadata_blocks) * usage.block_bytes
}

fn as_json(info: &VolumeInfo, holds: &Holds) -> Value {
    let (read, written) = access_bytes(info);
    let mut value = json!({
        "volume": info.volume.to_string(),
        "format": info.format,
        "engine": info.engine,
        "block_bytes": info.block_bytes,
        "blocks_per_bucket": info.blocks_per_bucket,
        "bucket_bytes": info.bucket_bytes,
        "capacity_bytes": capacity(info),
        "size_class_bytes": info.size_class * info.block_bytes as u64,
        "size_class_blocks": info.size_class,
        "addressable_blocks": info.addressable_blocks,
        "stored_bytes": info.bytes_stored,
        "depth": info.depth,
        "leaf_slots": info.leaf_slots,
        "recursion_levels": info.recursion_levels,
        "epoch": info.epoch,
        "passphrases": info.passphrases,
        "memory_bytes": info.memory_bytes,
        "access_bytes_read": read,
        "access_bytes_written": written,
        "replayed_batches": info.replayed_batches,
    });
    match holds {
        Holds::Files(usage) => {
            value["used_bytes"] = used(usage).into();
            value["file_bytes"] = usage.logical_bytes.into();
            value["files"] = usage.files.into();
            value["directories"] = usage.directories.into();
        }
        Holds::Disk(size) => {
            value["disk_bytes"] = (*size).into();
            value["used_bytes"] = disk_used(info, *size).into();
        }
    }
    value
}

/// Bytes of a disk that take space.
fn disk_used(info: &VolumeInfo, size: u64) -> u64 {
    info.live_blocks.saturating_mul(info.block_bytes as u64).min(size)
}

fn in_words(info: &VolumeInfo, holds: &Holds) -> Result<()> {
    let row = |name: &str, value: String| say(format!("  {name:<14}{value}"));
    let class = info.size_class * info.block_bytes as u64;
    say("The volume")?;
    row("identity", info.volume.to_string())?;
    row("engine", format!("{}, format {}", info.engine, info.format))?;
    match holds {
        Holds::Files(usage) => {
            row("may grow to", size(capacity(info)))?;
            let files = human::count(usage.files, "file");
            let directories = human::count(usage.directories, "directory");
            row("files", format!("{files}, {directories}, {}", size(usage.logical_bytes)))?;
            row("in use", format!("{} of blocks, metadata included", size(used(usage))))?;
        }
        Holds::Disk(disk) => {
            row("holds", format!("a disk of {} ({} bytes)", size(*disk), grouped(*disk)))?;
            row("in use", format!("{} of blocks", size(disk_used(info, *disk))))?;
        }
    }
    row("on disk", format!("{} for a size class of {}", size(info.bytes_stored), size(class)))?;
    row("passphrases", info.passphrases.to_string())?;
    row("memory", format!("up to {}", size(info.memory_bytes as u64)))?;
    row("commits", grouped(info.epoch))?;
    if info.replayed_batches > 0 {
        let batches = human::count(info.replayed_batches, "batch");
        row("recovered", format!("{batches} of a session that did not end"))?;
    }
    what_leaks(info, holds, class)?;
    what_it_costs(info)
}

fn what_leaks(info: &VolumeInfo, holds: &Holds, class: u64) -> Result<()> {
    say("\nWhat its storage learns")?;
    say(
        "  - when you work, and how many accesses you make; so roughly how much is read or written",
    )?;
    say("  - when something is synced, and roughly how much was written since the last time")?;
    say(format!(
        "  - the size class: {} now ({} blocks of {}); it follows what is stored by eighths of a power of two",
        size(class),
        grouped(info.size_class),
        size(info.block_bytes as u64)
    ))?;
    say(format!("  - that {} can open it", human::count(info.passphrases as u64, "passphrase")))?;
    say("What it does not learn")?;
    match holds {
        Holds::Files(_) => say("  - which file or directory, their names, number and sizes")?,
        Holds::Disk(_) => say("  - which part of the disk, what is on it, and where it is full")?,
    }
    say("  - whether one access reads or writes, and whether it is for the same as before")
}

fn what_it_costs(info: &VolumeInfo) -> Result<()> {
    let (read, written) = access_bytes(info);
    say("\nWhat one access costs")?;
    say(format!(
        "  up to {} read and {} written for a block of {}; less when blocks are asked for",
        size(read),
        size(written),
        size(info.block_bytes as u64)
    ))?;
    say("  together, and while the top of the tree is in memory. If you only need encryption,")?;
    say("  other tools are faster.")
}
