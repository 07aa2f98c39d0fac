//! The report on a sequential engine.

use crate::facts::{Holds, row};
use crate::human::{self, grouped, say, size};
use anyhow::Result;
use oblivio_volume::VolumeInfo;
use oblivio_volume::sequential::SequentialInfo;
use serde_json::Value;

pub fn as_json(value: &mut Value, info: &VolumeInfo, engine: &SequentialInfo) {
    value["fan_outs"] = engine.fan_outs.clone().into();
    value["queue_bytes"] = engine.queue_bytes.into();
    value["log_bytes"] = engine.log_bytes.into();
    value["levels_bytes"] = engine.disk_bytes.into();
    value["written_per_byte"] = engine.written_per_byte.into();
    value["map_on_disk"] = engine.map_on_disk.into();
    value["flushes"] = engine.flushes.into();
    value["writes"] = engine.writes.into();
    value["replayed_writes"] = info.replayed.into();
}

pub fn rows(info: &VolumeInfo, engine: &SequentialInfo) -> Result<()> {
    row("on disk", format!("{}, all of it taken from the beginning", size(info.bytes_stored)))?;
    row("states", grouped(info.epoch))?;
    row("writes", format!("{} blocks, padding included", grouped(engine.writes)))?;
    if info.replayed > 0 {
        let writes = human::count(info.replayed, "write");
        row("recovered", format!("{writes} of a session that did not end"))?;
    }
    Ok(())
}

pub fn in_words(info: &VolumeInfo, engine: &SequentialInfo, holds: &Holds) -> Result<()> {
    say("\nWhat somebody learns who has every snapshot of it")?;
    say("  - how many blocks were written in between, and when something was synced")?;
    say("  - that a session ended well, or did not")?;
    say(format!("  - that {} can open it", human::count(info.passphrases as u64, "passphrase")))?;
    say("What nobody learns")?;
    match holds {
        Holds::Files(_) => say("  - which file was written, or whether a file was written at all")?,
        Holds::Disk(_) => say("  - which part of the disk was written, and what is on it")?,
    }
    say("  - whether a write was new, the same as before, or gave space back")?;
    say("What is not hidden: reads. Whoever watches the computer or the store at work sees them.")?;
    say("\nWhat it costs")?;
    let levels: Vec<String> = engine.fan_outs.iter().map(u64::to_string).collect();
    say(format!(
        "  each byte is written {:.1} times, and once to the log; levels grow by {}",
        engine.written_per_byte,
        levels.join(" x ")
    ))?;
    let map = if engine.map_on_disk { "on the disk" } else { "in memory" };
    let queue = size(2 * engine.queue_bytes);
    say(format!("  up to {queue} of queue in memory; the access time map is {map}"))
}
