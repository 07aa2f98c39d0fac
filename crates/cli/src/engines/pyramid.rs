//! The report on a pyramid.

use crate::facts::{Holds, row};
use crate::human::{self, grouped, say, size};
use anyhow::Result;
use oblivio_volume::VolumeInfo;
use oblivio_volume::pyramid::PyramidInfo;
use serde_json::Value;

pub fn as_json(value: &mut Value, info: &VolumeInfo, engine: &PyramidInfo) {
    value["partitions"] = engine.config.partitions().into();
    value["levels"] = engine.config.levels().into();
    value["stash_asks"] = (1u64 << engine.config.log_stash).into();
    value["asks"] = engine.asks.into();
    value["table_bytes"] = engine.table_bytes.into();
    value["most_table_bytes"] = engine.most_table_bytes.into();
    value["access_bytes_read"] = engine.read_per_ask.into();
    value["access_bytes_written"] = engine.written_per_ask.into();
    value["replayed_rounds"] = info.replayed.into();
}

pub fn rows(info: &VolumeInfo, engine: &PyramidInfo) -> Result<()> {
    let (stored, most) = (size(info.bytes_stored), size(engine.most_table_bytes));
    row("on disk", format!("{stored}; in time up to {most}, whatever is in it"))?;
    row("memory", format!("up to {}", size(info.memory_bytes as u64)))?;
    row("commits", grouped(info.epoch))?;
    if info.replayed > 0 {
        let rounds = human::count(info.replayed, "round");
        row("recovered", format!("{rounds} of a session that did not end"))?;
    }
    Ok(())
}

pub fn in_words(info: &VolumeInfo, engine: &PyramidInfo, holds: &Holds) -> Result<()> {
    say("\nWhat its storage learns")?;
    say(
        "  - when you work, and how many accesses you make; so roughly how much is read or written",
    )?;
    say("  - when something is synced, and roughly how much was written since the last time")?;
    say("  - which accesses read and which write, by when they come")?;
    say("  - how large it may become; not how much is in it")?;
    say(format!("  - that {} can open it", human::count(info.passphrases as u64, "passphrase")))?;
    say("What it does not learn")?;
    match holds {
        Holds::Files(_) => say("  - which file or directory, their names, number and sizes")?,
        Holds::Disk(_) => say("  - which part of the disk, what is on it, and where it is full")?,
    }
    say("  - whether one access is for the same as another, and whether anything is there")?;
    say("\nWhat one access costs")?;
    say(format!(
        "  some {} read and {} written for a block of {}, merges included",
        size(engine.read_per_ask),
        size(engine.written_per_ask),
        size(info.block_bytes as u64)
    ))
}
