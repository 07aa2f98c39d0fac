//! The report on a volume in extents, in a folder that a sync client copies.

use crate::facts::{Holds, row};
use crate::human::{self, grouped, say, size};
use anyhow::Result;
use oblivio_volume::VolumeInfo;
use oblivio_volume::extents::ExtentInfo;
use serde_json::Value;

pub fn as_json(value: &mut Value, info: &VolumeInfo, volume: &ExtentInfo) {
    let engine = &volume.engine;
    value["extent_bytes"] = volume.extent_bytes.into();
    value["extents"] = volume.extents.into();
    value["written_extents"] = volume.written_extents.into();
    value["changed_extents"] = volume.changed_extents.into();
    value["stands_on"] = volume.stands_on.clone().into();
    value["computers"] = volume.computers.into();
    value["kept_histories"] = volume.kept.clone().into();
    value["written_per_byte"] = engine.written_per_byte.into();
    value["flushes"] = engine.flushes.into();
    value["writes"] = engine.writes.into();
    value["replayed_writes"] = info.replayed.into();
}

pub fn rows(info: &VolumeInfo, volume: &ExtentInfo) -> Result<()> {
    let (extents, bytes) = (grouped(volume.written_extents), size(volume.extent_bytes));
    row("in the folder", format!("{}: {extents} extents of {bytes}", size(info.bytes_stored)))?;
    let view = if volume.view { ", which is only looked at" } else { "" };
    row("stands on", format!("{}{view}", volume.stands_on))?;
    row("computers", format!("{}, as far as the folder says", grouped(volume.computers as u64)))?;
    if !volume.kept.is_empty() {
        row("kept besides", volume.kept.join(", "))?;
    }
    if info.replayed > 0 {
        let writes = human::count(info.replayed, "write");
        row("recovered", format!("{writes} of a session that did not end"))?;
    }
    Ok(())
}

pub fn in_words(info: &VolumeInfo, volume: &ExtentInfo, holds: &Holds) -> Result<()> {
    say("\nWhat somebody learns who has every copy of the folder")?;
    say("  - how many epochs there were, when, and from which computer")?;
    say("  - roughly how many blocks were written in each, by how many extents it has")?;
    say("  - when a computer that had not written took another's epoch")?;
    say(format!("  - that {} can open it", human::count(info.passphrases as u64, "passphrase")))?;
    say("What nobody learns")?;
    match holds {
        Holds::Files(_) => say("  - which file was written, or whether a file was written at all")?,
        Holds::Disk(_) => say("  - which part of the disk was written, and what is on it")?,
    }
    say("  - what is read: that never leaves this computer")?;
    say("\nWhat it costs")?;
    say(format!(
        "  each byte is sent some {:.0} times, in whole extents of {}",
        volume.engine.written_per_byte + 1.0,
        size(volume.extent_bytes)
    ))
}
