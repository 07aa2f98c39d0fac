//! `info`: what a volume is, what it costs, and what its storage learns.

use crate::args::InfoArgs;
use crate::facts::{Holds, capacity, disk_used, row, used};
use crate::human::{self, grouped, say, say_json, size};
use crate::open;
use anyhow::Result;
use oblivio_volume::VolumeInfo;
use oblivio_volume::report::Fact;
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

fn as_json(info: &VolumeInfo, holds: &Holds) -> Value {
    let mut value = json!({
        "volume": info.volume.to_string(),
        "format": info.format,
        "engine": info.engine.name,
        "block_bytes": info.block_bytes,
        "capacity_bytes": capacity(info),
        "stored_bytes": info.bytes_stored,
        "epoch": info.epoch,
        "passphrases": info.passphrases,
        "memory_bytes": info.memory_bytes,
    });
    for (name, fact) in &info.report.facts {
        value[name] = match fact {
            Fact::Number(number) => (*number).into(),
            Fact::Ratio(ratio) => (*ratio).into(),
            Fact::Flag(flag) => (*flag).into(),
            Fact::Text(text) => text.as_str().into(),
            Fact::Numbers(numbers) => numbers.as_slice().into(),
            Fact::Texts(texts) => texts.as_slice().into(),
        };
    }
    match holds {
        Holds::Files(usage) => {
            value["used_bytes"] = used(usage).into();
            value["file_bytes"] = usage.logical_bytes.into();
            value["files"] = usage.files.into();
            value["directories"] = usage.directories.into();
        }
        Holds::Disk(size) => {
            value["disk_bytes"] = (*size).into();
            if let Some(used) = disk_used(info, *size) {
                value["used_bytes"] = used.into();
            }
        }
    }
    value
}

fn in_words(info: &VolumeInfo, holds: &Holds) -> Result<()> {
    say("The volume")?;
    row("identity", info.volume.to_string())?;
    row("engine", format!("{}, format {}", info.engine.name, info.format))?;
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
            if let Some(used) = disk_used(info, *disk) {
                row("in use", format!("{} of blocks", size(used)))?;
            }
        }
    }
    for (label, value) in &info.report.rows {
        row(label, value.as_str())?;
    }
    row("passphrases", info.passphrases.to_string())?;
    info.report.sentences(matches!(holds, Holds::Disk(_))).try_for_each(say)
}
