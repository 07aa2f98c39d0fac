//! The report on a tree.

use crate::facts::{Holds, row};
use crate::human::{self, grouped, say, size};
use anyhow::Result;
use oblivio_volume::VolumeInfo;
use oblivio_volume::tree::TreeInfo;
use serde_json::Value;

/// The most that one access moves, before the top of the tree is in memory: the path that it reads,
/// and its share of the rewritten paths.
fn access_bytes(info: &VolumeInfo, tree: &TreeInfo) -> (u64, u64) {
    let short = (tree.blocks_per_bucket - tree.leaf_slots) * info.block_bytes;
    let path = (u64::from(tree.depth) + 1) * tree.bucket_bytes as u64 - short as u64;
    // One path in three is read once more and written (see the decision on eviction).
    (path + path / 3, path / 3)
}

fn class(info: &VolumeInfo, tree: &TreeInfo) -> u64 {
    tree.size_class * info.block_bytes as u64
}

pub fn as_json(value: &mut Value, info: &VolumeInfo, tree: &TreeInfo) {
    let (read, written) = access_bytes(info, tree);
    value["blocks_per_bucket"] = tree.blocks_per_bucket.into();
    value["bucket_bytes"] = tree.bucket_bytes.into();
    value["size_class_bytes"] = class(info, tree).into();
    value["size_class_blocks"] = tree.size_class.into();
    value["addressable_blocks"] = tree.addressable_blocks.into();
    value["depth"] = tree.depth.into();
    value["leaf_slots"] = tree.leaf_slots.into();
    value["recursion_levels"] = tree.recursion_levels.into();
    value["access_bytes_read"] = read.into();
    value["access_bytes_written"] = written.into();
    value["replayed_batches"] = info.replayed.into();
}

pub fn rows(info: &VolumeInfo, tree: &TreeInfo) -> Result<()> {
    let (stored, class) = (size(info.bytes_stored), size(class(info, tree)));
    row("on disk", format!("{stored} for a size class of {class}"))?;
    row("memory", format!("up to {}", size(info.memory_bytes as u64)))?;
    row("commits", grouped(info.epoch))?;
    if info.replayed > 0 {
        let batches = human::count(info.replayed, "batch");
        row("recovered", format!("{batches} of a session that did not end"))?;
    }
    Ok(())
}

pub fn in_words(info: &VolumeInfo, tree: &TreeInfo, holds: &Holds) -> Result<()> {
    what_leaks(info, tree, holds)?;
    what_it_costs(info, tree)
}

fn what_leaks(info: &VolumeInfo, tree: &TreeInfo, holds: &Holds) -> Result<()> {
    say("\nWhat its storage learns")?;
    say(
        "  - when you work, and how many accesses you make; so roughly how much is read or written",
    )?;
    say("  - when something is synced, and roughly how much was written since the last time")?;
    say(format!(
        "  - the size class: {} now ({} blocks of {}); it follows what is stored by eighths of a power of two",
        size(class(info, tree)),
        grouped(tree.size_class),
        size(info.block_bytes as u64)
    ))?;
    if tree.recursion_levels > 1 {
        say(
            "  - how often a part of its map was fetched first: it may grow so far that not all of it stays in memory",
        )?;
    }
    say(format!("  - that {} can open it", human::count(info.passphrases as u64, "passphrase")))?;
    say("What it does not learn")?;
    match holds {
        Holds::Files(_) => say("  - which file or directory, their names, number and sizes")?,
        Holds::Disk(_) => say("  - which part of the disk, what is on it, and where it is full")?,
    }
    say("  - whether one access reads or writes, and whether it is for the same as before")
}

fn what_it_costs(info: &VolumeInfo, tree: &TreeInfo) -> Result<()> {
    let (read, written) = access_bytes(info, tree);
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
