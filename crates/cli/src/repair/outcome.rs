//! What a repair says: for people, and for programs.

use super::backup::FromBackup;
use super::consent::Talk;
use super::metadata;
use crate::args::RepairArgs;
use crate::check::{PartsRead, tell};
use crate::exit::{Code, fault};
use crate::human::{self, say, say_json};
use anyhow::Result;
use oblivio_volume::LostBytes;
use oblivio_volume::fs::{CheckReport, Salvaged};
use serde_json::json;
use std::collections::BTreeMap;
use std::ops::Range;

/// The places and what is lost; with `holes` also what is known to be lost since a repair.
pub fn show(
    args: &RepairArgs,
    talk: &mut Talk<'_>,
    found: &CheckReport,
    holes: bool,
) -> Result<()> {
    talk.places()?;
    if args.json {
        return Ok(());
    }
    for lost in tell::files(&found.lost) {
        say(lost.line())?;
    }
    for hole in tell::files(&found.holes).iter().filter(|_| holes) {
        say(format!("since a repair, {}", hole.line()))?;
    }
    if found.lost.is_empty() && talk.parts.damaged > 0 {
        say("No file is lost, nor a part of one.")?;
    }
    Ok(())
}

/// How many lost blocks a backup has.
pub fn say_same(args: &RepairArgs, same: &[u64]) -> Result<()> {
    if args.json || args.open.quiet {
        return Ok(());
    }
    let blocks = human::count(same.len() as u64, "lost block");
    say(format!("The backup has {blocks} in the same version."))
}

/// Where nothing says what of the files is lost.
pub fn say_beginning(args: &RepairArgs) -> Result<()> {
    if args.json {
        return Ok(());
    }
    say("Nothing says where files begin, unless the backup does.")
}

pub fn nothing(args: &RepairArgs, parts: &PartsRead) -> Result<()> {
    match (args.json, args.open.quiet) {
        (true, _) => {
            say_json(&json!({ "repaired": false, "damaged": 0, "healed": parts.healed.len(),
                                       "lost": [] }))
        }
        (_, true) => Ok(()),
        _ => say("Nothing to repair."),
    }
}

pub fn not_done(
    args: &RepairArgs,
    parts: &PartsRead,
    found: &CheckReport,
    salvaged: Option<&Salvaged>,
) -> Result<()> {
    if args.json {
        say_json(&json!({
            "repaired": false,
            "damaged": parts.damaged,
            "lost": tell::files(&found.lost),
            "holes": tell::files(&found.holes),
            "metadata": salvaged.map(metadata::as_json),
        }))?;
    }
    let files = human::count(with_lost_bytes(found).len() as u64, "file");
    let places = human::count(parts.damaged, "damaged place");
    let what = format!("{places}, {files} with lost bytes; nothing was changed");
    Err(fault(Code::Tampered, what, "`oblivio repair` without --dry-run makes the volume whole."))
}

pub fn summary(
    args: &RepairArgs,
    parts: &PartsRead,
    (found, salvaged): (&CheckReport, Option<&Salvaged>),
    taken: &FromBackup,
) -> Result<()> {
    let (damaged, healed) = (parts.damaged, parts.healed.len());
    if args.json {
        return say_json(&json!({
            "repaired": true,
            "damaged": damaged,
            "healed": healed,
            "lost": tell::files(&found.lost),
            "blocks": taken.blocks.len(),
            "restored": taken.restored,
            "older": taken.older,
            "zeros": args.zeros,
            "holes": tell::files(&found.holes),
            "metadata": salvaged.map(metadata::as_json),
        }));
    }
    if args.open.quiet {
        return Ok(());
    }
    taken.tell()?;
    let mut left = with_lost_bytes(found);
    left.retain(|lost| !taken.restored.contains(&lost.what));
    say(format!(
        "Repaired: {}. {}.",
        human::count(damaged, "damaged place"),
        what_is_left(left.len() as u64, args.zeros, salvaged)
    ))
}

/// What is lost for good: `files` is the number of files that lost bytes.
fn what_is_left(files: u64, zeros: bool, salvaged: Option<&Salvaged>) -> String {
    let metadata = match salvaged.is_some_and(|report| !report.is_harmless()) {
        true => "What is named above is lost with the metadata",
        false => "",
    };
    let bytes = match (files, zeros) {
        (0, _) => return if metadata.is_empty() { "Nothing is lost" } else { metadata }.to_owned(),
        (n, true) => format!("{} zeros where bytes were lost", has(n)),
        (n, false) => format!("{} bytes that cannot be read until they are written", has(n)),
    };
    if metadata.is_empty() { bytes } else { format!("{metadata}. {bytes}") }
}

fn has(files: u64) -> String {
    let verb = if files == 1 { "has" } else { "have" };
    format!("{} {verb}", human::count(files, "file"))
}

/// All files with lost bytes, also those that an earlier repair or salvage left.
pub fn with_lost_bytes(found: &CheckReport) -> Vec<LostBytes> {
    let mut files: BTreeMap<&str, Vec<Range<u64>>> = BTreeMap::new();
    for lost in found.lost.iter().chain(&found.holes) {
        files.entry(&lost.what).or_default().extend(lost.ranges.iter().cloned());
    }
    let sorted = |(what, mut ranges): (&str, Vec<Range<u64>>)| {
        ranges.sort_unstable_by_key(|range| range.start);
        LostBytes { what: what.to_owned(), ranges }
    };
    files.into_iter().map(sorted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_only_if_nothing_is() {
        let bare = Salvaged { bare: vec!["/a".into()], unnamed: Some(0), ..Salvaged::default() };
        let whole = Salvaged { unnamed: Some(0), ..Salvaged::default() };
        assert_eq!(what_is_left(0, false, None), "Nothing is lost");
        assert_eq!(what_is_left(0, false, Some(&whole)), "Nothing is lost");
        let with = "What is named above is lost with the metadata";
        assert_eq!(what_is_left(0, false, Some(&bare)), with);
        let bytes = "1 file has bytes that cannot be read until they are written";
        assert_eq!(what_is_left(1, false, Some(&bare)), format!("{with}. {bytes}"));
        assert_eq!(what_is_left(2, true, None), "2 files have zeros where bytes were lost");
    }

    #[test]
    fn a_file_with_new_and_old_losses_is_one() {
        let of =
            |what: &str, range: Range<u64>| LostBytes { what: what.into(), ranges: vec![range] };
        let found = CheckReport {
            lost: vec![of("/b", 4..8)],
            holes: vec![of("/a", 0..4), of("/b", 0..4)],
            ..CheckReport::default()
        };
        let both = LostBytes { what: "/b".into(), ranges: vec![0..4, 4..8] };
        assert_eq!(with_lost_bytes(&found), [of("/a", 0..4), both]);
    }
}
