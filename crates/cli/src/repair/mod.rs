//! `repair`: makes a damaged volume one that is whole, with everything in it that can be proved.

mod backup;
mod consent;
mod metadata;

use crate::args::RepairArgs;
use crate::check::{self, PartsRead, tell};
use crate::exit::{Code, fault};
use crate::human::{self, say, say_json};
use crate::open;
use crate::passphrase;
use crate::progress::Progress;
use crate::recorder::Recorder;
use crate::unobserved::refuse_changes;
use anyhow::{Context, Result};
use backup::{Backup, FromBackup};
use consent::goes_on;
use metadata::{SalvageOutcome, volume_in};
use oblivio_store::AnyStore;
use oblivio_volume::disk::{self, Disk};
use oblivio_volume::fs::{self, CheckReport, Salvaged};
use oblivio_volume::{BlockSpace, LostBytes, Volume, read_header};
use serde_json::json;
use std::ops::Range;

/// Runs the command.
pub fn run(args: &RepairArgs) -> Result<()> {
    if !args.dry_run {
        refuse_changes(&args.open)?;
    }
    let recorder = Recorder::of(&args.open)?;
    let done = repair(args, recorder.as_ref());
    Recorder::finish_after(recorder, done)
}

fn repair(args: &RepairArgs, recorder: Option<&Recorder>) -> Result<()> {
    let store = open::store(&args.volume)?;
    refuse_other_engines(&store, args)?;
    let store = Recorder::under(store, recorder);
    let backup = match args.from.as_deref() {
        Some(folder) => Some((folder, open::store(folder)?)),
        None => None,
    };
    let passphrase = passphrase::known(&args.open.passphrase)?;
    let by = (&args.open, Some(&passphrase));
    let (mut volume, publisher) = open::volume_by(store, &args.volume, by, recorder, false)?;
    let of = volume.known().volume;
    let (parts, mut lost) = check::inspect(&mut volume, None, args.open.quiet)?;
    let mut taken = FromBackup::default();
    let mut backup = match backup {
        Some(place) => Some(Backup::open(place, of, (&args.open, &passphrase))?),
        None => None,
    };
    if let Some(backup) = backup.as_mut().filter(|_| parts.damaged > 0 || !lost.is_empty()) {
        take_blocks(args, &mut volume, backup, &mut taken)?;
        lost = without(lost, &taken.blocks);
    }
    if disk::size_in(volume.root())?.is_some() {
        let lost = check::of_disk(&volume, &lost)?;
        return repair_disk(args, volume, &parts, (lost, taken));
    }
    let (volume, salvaged) = match metadata::salvage(args, Box::new(volume), &parts)? {
        SalvageOutcome::Whole(volume) => (volume, None),
        SalvageOutcome::Salvaged(volume, report) => (volume, Some(report)),
        SalvageOutcome::Refused(report) => {
            return not_done(args, &parts, &report.lost, Some(&report));
        }
    };
    let session = open::file_system((*volume, publisher), 0)?;
    let mut progress = Progress::steps(args.open.quiet, "blocks");
    let found = session.fs.check_with(true, &mut |done, all| progress.at(done, all))?;
    drop(progress);
    show(args, &parts, &found.lost)?;
    if parts.damaged == 0 && found.is_clean() && !taken.is_rewritten && salvaged.is_none() {
        session.fs.into_blocks()?;
        return nothing(args, &parts);
    }
    // What was salvaged is stored by now, and what goes with it was accepted.
    if salvaged.is_none() && !goes_on(args, found.lost.is_empty())? {
        session.fs.into_blocks()?;
        return not_done(args, &parts, &found.lost, None);
    }
    if let Some(backup) = backup.filter(|_| !found.lost.is_empty()) {
        backup.files()?.restore(&session.fs, &found.lost, &mut taken)?;
    }
    fs::repair(&session.fs, args.zeros, &mut |_, _| {})?;
    rewrite(args, volume_in(session.fs.into_blocks()?)?, &taken)?;
    summary(args, &parts, &found, &taken, salvaged.as_ref())
}

/// Refuses, before it asks or changes anything, what the engine cannot do.
fn refuse_other_engines(store: &AnyStore, args: &RepairArgs) -> Result<()> {
    let header = read_header(store).with_context(|| args.volume.display().to_string())?;
    if header.engine.repairs {
        return Ok(());
    }
    Err(fault(
        Code::General,
        "a volume in a synced folder is not repaired in place",
        "A computer that holds what is damaged puts it back: run `oblivio check` there. Otherwise bring \
         out what is whole with `oblivio get -r --incomplete`, and make a new volume of that.",
    ))
}

/// Puts lost blocks back that the older copy has in the version that is lost.
fn take_blocks(
    args: &RepairArgs,
    volume: &mut Volume,
    backup: &mut Backup,
    taken: &mut FromBackup,
) -> Result<()> {
    let same = backup.same_blocks(volume, args.open.quiet)?;
    if args.dry_run {
        if !args.json && !args.open.quiet {
            let blocks = human::count(same.len() as u64, "lost block");
            say(format!("The backup has {blocks} in the same version."))?;
        }
    } else {
        // Also without any: the store does not see what the copy has.
        taken.blocks = backup.put_back(volume, &same, args.open.quiet)?;
        taken.is_rewritten = volume.tree().is_some();
    }
    Ok(())
}

/// What is left of ranges without these numbers, which are ascending.
fn without(ranges: Vec<Range<u64>>, ids: &[u64]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    let mut ids = ids.iter().copied().peekable();
    for Range { mut start, end } in ranges {
        while let Some(id) = ids.next_if(|id| *id < end) {
            left.extend((start < id).then_some(start..id));
            start = start.max(id + 1);
        }
        left.extend((start < end).then_some(start..end));
    }
    left
}

/// A disk has no names: its lost bytes are read as errors until they are written.
fn repair_disk(
    args: &RepairArgs,
    volume: Volume,
    parts: &PartsRead,
    (lost, taken): (Vec<LostBytes>, FromBackup),
) -> Result<()> {
    show(args, parts, &lost)?;
    let nothing_done = parts.damaged == 0 && !taken.is_rewritten;
    if nothing_done && (lost.is_empty() || !args.zeros) {
        drop(volume);
        return nothing(args, parts);
    }
    if !goes_on(args, lost.is_empty())? {
        drop(volume);
        return not_done(args, parts, &lost, None);
    }
    let mut disk = Disk::open(Box::new(volume))?;
    for range in lost.iter().filter(|_| args.zeros).flat_map(|lost| &lost.ranges) {
        disk.write_zeroes(range.start, range.end - range.start, true)?;
    }
    rewrite(args, volume_in(disk.into_blocks()?)?, &taken)?;
    let found = CheckReport { lost, ..CheckReport::default() };
    summary(args, parts, &found, &taken, None)
}

/// Stores anew all that can be read, unless that was done with the blocks of a backup.
fn rewrite(args: &RepairArgs, mut volume: Box<Volume>, taken: &FromBackup) -> Result<()> {
    if taken.is_rewritten {
        return Ok(volume.finish()?);
    }
    let mut progress = Progress::steps(args.open.quiet, "steps");
    volume.repair(&mut |done, all| progress.at(done, all))?;
    Ok(volume.finish()?)
}

fn show(args: &RepairArgs, parts: &PartsRead, lost: &[LostBytes]) -> Result<()> {
    if args.json {
        return Ok(());
    }
    tell::places(parts)?;
    for lost in tell::files(lost) {
        say(lost.line())?;
    }
    if lost.is_empty() && parts.damaged > 0 {
        say("No file is lost, nor a part of one.")?;
    }
    Ok(())
}

fn nothing(args: &RepairArgs, parts: &PartsRead) -> Result<()> {
    match (args.json, args.open.quiet) {
        (true, _) => {
            say_json(&json!({ "repaired": false, "damaged": 0, "healed": parts.healed.len(),
                                       "lost": [] }))
        }
        (_, true) => Ok(()),
        _ => say("Nothing to repair."),
    }
}

fn not_done(
    args: &RepairArgs,
    parts: &PartsRead,
    lost: &[LostBytes],
    salvaged: Option<&Salvaged>,
) -> Result<()> {
    if args.json {
        say_json(&json!({
            "repaired": false,
            "damaged": parts.damaged,
            "lost": tell::files(lost),
            "metadata": salvaged.map(metadata::as_json),
        }))?;
    }
    let files = human::count(lost.len() as u64, "file");
    let places = human::count(parts.damaged, "damaged place");
    let what = format!("{places}, {files} with lost bytes; nothing was changed");
    Err(fault(Code::Tampered, what, "`oblivio repair` without --dry-run makes the volume whole."))
}

fn summary(
    args: &RepairArgs,
    parts: &PartsRead,
    found: &CheckReport,
    taken: &FromBackup,
    salvaged: Option<&Salvaged>,
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
    let left = found.lost.len() as u64 - taken.restored.len() as u64;
    let what = match (left, args.zeros) {
        (0, _) => "Nothing is lost".to_owned(),
        (n, true) => format!("{} zeros where bytes were lost", has(n)),
        (n, false) => {
            format!("{} bytes that cannot be read until they are written", has(n))
        }
    };
    say(format!("Repaired: {}. {what}.", human::count(damaged, "damaged place")))
}

fn has(files: u64) -> String {
    let verb = if files == 1 { "has" } else { "have" };
    format!("{} {verb}", human::count(files, "file"))
}
