//! `check`: is everything as it was written?

use crate::args::CheckArgs;
use crate::exit::{Code, fault, judge, line};
use crate::human::{self, say, say_json};
use crate::open;
use crate::progress::Progress;
use crate::recorder::Recorder;
use anyhow::{Error, Result};
use oblivio_volume::BlockSpace;
use oblivio_volume::disk::{self, Disk};
use oblivio_volume::fs::CheckReport;
use serde_json::json;

/// Runs the command.
pub fn run(args: &CheckArgs) -> Result<()> {
    let found = look(args);
    if args.json {
        tell_json(&found)?;
    }
    let (read, contents) = found?;
    if !args.json {
        tell(&read, &contents)?;
    }
    let healed = read.damaged.len() as u64;
    match contents.problems().len() {
        0 if healed == 0 => Ok(()),
        0 => Err(fault(
            Code::Tampered,
            format!("{}; nothing is lost", human::count(healed, "damaged place")),
            "Each had a second copy, and is whole again. Check once more: if there is new damage, \
             the disk is failing.",
        )),
        n => Err(fault(
            Code::Tampered,
            format!("the volume is not clean: {}", human::count(n as u64, "problem")),
            "Bring back what you can with `oblivio get -r`, and restore the rest from a backup.",
        )),
    }
}

/// What was found behind the buckets.
enum Contents {
    Files(CheckReport),
    /// A disk of this many bytes; only its user can judge the content.
    Disk(u64),
}

impl Contents {
    fn problems(&self) -> &[String] {
        match self {
            Contents::Files(report) => &report.problems,
            Contents::Disk(_) => &[],
        }
    }
}

/// The units that were read and authenticated one by one.
struct Read {
    count: u64,
    /// The name of a unit.
    unit: &'static str,
    /// Places that were damaged and have a second copy.
    damaged: Vec<String>,
}

/// All buckets first: blocks of no file are checked too.
fn look(args: &CheckArgs) -> Result<(Read, Contents)> {
    let quiet = args.open.quiet;
    let recorder = Recorder::of(&args.open)?;
    let looked = look_through(args, quiet, recorder.as_ref());
    Recorder::finish_after(recorder, looked)
}

fn look_through(
    args: &CheckArgs,
    quiet: bool,
    recorder: Option<&Recorder>,
) -> Result<(Read, Contents)> {
    let (mut volume, publisher) = open::volume(&args.volume, &args.open, recorder)?;
    let unit = volume.info()?.verified;
    let mut progress = Progress::steps(quiet, &format!("{unit}s"));
    let told = volume.damaged();
    let count = volume.verify(&mut |done, total| progress.at(done, total))?;
    drop(progress);
    open::tell_damage(&volume, &told);
    let damaged = volume.damaged().iter().map(ToString::to_string).collect();
    let read = Read { count, unit, damaged };
    if let Some(size) = disk::size_in(volume.root())? {
        Disk::open(Box::new(volume))?.into_blocks()?;
        return Ok((read, Contents::Disk(size)));
    }
    let session = open::file_system((volume, publisher), 0)?;
    let mut progress = Progress::steps(quiet, "files");
    let report = session.fs.check_with(true, &mut |done, total| progress.at(done, total))?;
    drop(progress);
    session.fs.into_blocks()?;
    Ok((read, Contents::Files(report)))
}

fn tell(read: &Read, contents: &Contents) -> Result<()> {
    for problem in contents.problems() {
        say(human::plain(problem))?;
    }
    let clean = if read.damaged.is_empty() { "clean" } else { "whole again" };
    let read = format!("{} read", human::count(read.count, read.unit));
    match contents {
        Contents::Files(report) if report.problems.is_empty() => say(format!(
            "{clean}: {read}; {}, {} and {} are as they were written",
            human::count(report.blocks, "block"),
            human::count(report.files, "file"),
            human::count(report.directories, "directory"),
        )),
        Contents::Files(_) => Ok(()),
        Contents::Disk(size) => {
            say(format!(
                "{clean}: {read} of a disk of {} are as they were written",
                human::size(*size)
            ))?;
            say("A file system on it has a check of its own: serve the disk, then run fsck.")
        }
    }
}

fn tell_json(found: &Result<(Read, Contents)>) -> Result<()> {
    match found {
        Ok((read, Contents::Disk(size))) => say_json(&json!({
            "clean": read.damaged.is_empty(),
            "buckets": read.count,
            "disk_bytes": size,
            "healed": read.damaged,
            "problems": [],
        })),
        Ok((read, Contents::Files(report))) => say_json(&json!({
            "clean": report.problems.is_empty() && read.damaged.is_empty(),
            "buckets": read.count,
            "healed": read.damaged,
            "blocks": report.blocks,
            "files": report.files,
            "directories": report.directories,
            "problems": report.problems,
        })),
        // Damage that prevents reading the volume is a finding, too.
        Err(error) if is_damage(error) => {
            say_json(&json!({ "clean": false, "problems": [line(error)] }))
        }
        Err(_) => Ok(()),
    }
}

fn is_damage(error: &Error) -> bool {
    matches!(judge(error).0, Code::Tampered | Code::RolledBack)
}
