//! The part of a repair that makes whole metadata of what is left of it.

use super::consent::Talk;
use crate::args::RepairArgs;
use crate::check::tell;
use crate::exit::{Code, fault};
use crate::human::{self, say};
use crate::open::now;
use anyhow::{Context, Error, Result};
use oblivio_volume::fs::{FoundFile, Salvage, Salvaged};
use oblivio_volume::{BlockSpace, Error as VolumeError, Volume};
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
    talk: &mut Talk<'_>,
) -> Result<SalvageOutcome> {
    let mut salvage = Salvage::of(volume)?;
    if !salvage.is_needed() {
        return Ok(SalvageOutcome::Whole(volume_in(salvage.into_blocks()?)?));
    }
    let plan = salvage.plan(now()).map_err(without_beginning)?;
    let report = plan.report().clone();
    talk.places()?;
    show(args, &report)?;
    if !talk.goes_on(report.is_harmless())? {
        salvage.into_blocks()?.end()?;
        return Ok(SalvageOutcome::Refused(report));
    }
    Ok(SalvageOutcome::Salvaged(volume_in(salvage.carry_out(plan)?)?, report))
}

fn without_beginning(error: VolumeError) -> Error {
    match error {
        VolumeError::Lost(lost) => fault(
            Code::Lost,
            lost.to_string(),
            "Both copies of its first block are damaged, so nothing says where files begin. \
             Restore the volume from a backup.",
        ),
        other => other.into(),
    }
}

/// What of the metadata has no copy left.
pub enum LostMetadata {
    Nothing,
    /// This would be lost.
    Some(Salvaged),
    /// The block that says where files begin.
    Beginning,
}

impl LostMetadata {
    /// What would be lost, where that is known.
    pub fn report(&self) -> Option<&Salvaged> {
        match self {
            Self::Some(report) => Some(report),
            Self::Nothing | Self::Beginning => None,
        }
    }

    pub fn is_harmless(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Some(report) => report.is_harmless(),
            Self::Beginning => false,
        }
    }
}

/// What a salvage would say. It changes nothing.
pub fn look(volume: Box<Volume>) -> Result<(Box<Volume>, LostMetadata)> {
    let mut salvage = Salvage::of(volume)?;
    let lost = match salvage.is_needed().then(|| salvage.plan(now())) {
        None => LostMetadata::Nothing,
        Some(Ok(plan)) => LostMetadata::Some(plan.report().clone()),
        Some(Err(VolumeError::Lost(_))) => LostMetadata::Beginning,
        Some(Err(error)) => return Err(error.into()),
    };
    Ok((volume_in(salvage.into_blocks()?)?, lost))
}

/// Says what is lost with metadata.
pub fn show(args: &RepairArgs, report: &Salvaged) -> Result<()> {
    if args.json {
        return Ok(());
    }
    say(format!("{} of metadata: both copies are lost", human::count(report.blocks, "block")))?;
    let found: Vec<String> = report.found.iter().map(|found| found.path.clone()).collect();
    for (what, paths) in [
        ("lost, and its name removed", &report.removed),
        ("lost its name", &found),
        ("lost another name", &report.unlinked),
        ("lost attributes", &report.bare),
    ] {
        for path in paths {
            say(human::plain(&format!("{what}: {path}")))?;
        }
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
    let found = |found: &FoundFile| json!({ "inode": found.ino, "path": found.path });
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
