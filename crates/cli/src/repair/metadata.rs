//! The part of a repair that makes whole metadata of what is left of it.

use super::consent::goes_on;
use crate::args::RepairArgs;
use crate::check::{PartsRead, tell};
use crate::exit::{Code, fault};
use crate::human::{self, say};
use crate::open::now;
use anyhow::{Context, Result};
use oblivio_volume::fs::{Found, Salvage, Salvaged};
use oblivio_volume::{BlockSpace, Error, Volume};
use serde_json::{Value, json};

/// What became of the metadata.
pub enum SalvageOutcome {
    /// Nothing was lost of it, and nothing was done.
    Whole(Box<Volume>),
    /// It is stored anew, without what this names.
    Salvaged(Box<Volume>, Salvaged),
    /// This would be lost, and nothing was done.
    Refused(Salvaged),
}

/// Looks at all metadata. If blocks of it have no copy left, stores the rest anew, once what that
/// costs was shown and accepted.
pub fn salvage(
    args: &RepairArgs,
    volume: Box<Volume>,
    parts: &PartsRead,
) -> Result<SalvageOutcome> {
    let mut salvage = Salvage::of(volume)?;
    if !salvage.is_needed() {
        return Ok(SalvageOutcome::Whole(volume_in(salvage.into_blocks()?)?));
    }
    let plan = salvage.plan(now()).map_err(|error| match error {
        Error::Lost(lost) => fault(
            Code::Lost,
            lost.to_string(),
            "Both copies of its first block are damaged, so nothing says where files begin. \
             Restore the volume from a backup.",
        ),
        other => other.into(),
    })?;
    let report = plan.report().clone();
    if !args.json {
        tell::places(parts)?;
        show(&report)?;
    }
    if !goes_on(args, report.is_harmless())? {
        salvage.into_blocks()?.end()?;
        return Ok(SalvageOutcome::Refused(report));
    }
    Ok(SalvageOutcome::Salvaged(volume_in(salvage.carry_out(plan)?)?, report))
}

/// Says what is lost with metadata.
fn show(report: &Salvaged) -> Result<()> {
    say(format!("{} of metadata: both copies are lost", human::count(report.blocks, "block")))?;
    for path in &report.removed {
        say(human::plain(&format!("lost, and its name removed: {path}")))?;
    }
    for found in &report.found {
        say(human::plain(&format!("lost its name: {}", found.path)))?;
    }
    for path in &report.unlinked {
        say(human::plain(&format!("lost another name: {path}")))?;
    }
    for path in &report.bare {
        say(human::plain(&format!("lost attributes: {path}")))?;
    }
    for lost in tell::files(&report.lost) {
        say(lost.line())?;
    }
    match report.unnamed {
        Some(0) => Ok(()),
        Some(unnamed) => say(format!("{} lost with their names", human::count(unnamed, "file"))),
        None => say("Files may be lost with their names: how many there were is lost as well."),
    }
}

/// The same as a value.
pub fn as_json(report: &Salvaged) -> Value {
    let found = |found: &Found| json!({ "inode": found.ino, "path": found.path });
    json!({
        "blocks": report.blocks,
        "removed": report.removed,
        "found": report.found.iter().map(found).collect::<Vec<_>>(),
        "unlinked": report.unlinked,
        "attributes": report.bare,
        "lost": tell::files(&report.lost),
        "unnamed": report.unnamed,
    })
}

/// The volume below the files.
pub fn volume_in(blocks: Box<dyn BlockSpace>) -> Result<Box<Volume>> {
    Volume::in_blocks(blocks).context("the volume below the files")
}
