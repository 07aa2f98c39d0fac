//! `check`: is everything as it was written? It goes on at damage, and says what it means.

mod found;
mod rate;
pub mod scrub;
pub mod tell;

use crate::args::CheckArgs;
use crate::exit::{Code, fault};
use crate::human;
use crate::lost::lost_in;
use crate::open;
use crate::progress::Progress;
use crate::recorder::Recorder;
use anyhow::{Error, Result};
pub use found::PartsRead;
use found::{CheckFindings, Contents, keep_place};
use oblivio_volume::disk::{self, Disk};
use oblivio_volume::fs::CheckReport;
use oblivio_volume::{BlockSpace, LostBytes, Volume};
use rate::RateLimit;
use std::ops::Range;

/// Runs the command.
pub fn run(args: &CheckArgs) -> Result<()> {
    let found = look(args);
    if args.json {
        tell::as_json(&found)?;
    }
    let CheckFindings { read, contents, ended } = found?;
    if !args.json {
        tell::in_words(&read, &contents)?;
    }
    ended?;
    judge(&read, &contents)
}

fn judge(read: &PartsRead, contents: &Contents) -> Result<()> {
    let lost = contents.lost();
    let problems = contents.problems().len() as u64;
    let places = human::count(read.damaged, "damaged place");
    if problems > 0 || !lost.is_empty() {
        let mut found = vec![places];
        found.retain(|_| read.damaged > 0);
        found.extend((!lost.is_empty()).then(|| in_sum(lost)));
        found.extend((problems > 0).then(|| human::count(problems, "problem")));
        let what = format!("the volume is not clean: {}", found.join("; "));
        return Err(fault(Code::Tampered, what, read.advice()));
    }
    if read.damaged > 0 {
        let what = format!("the volume is not clean: {places}; no byte of a file is lost");
        return Err(fault(Code::Tampered, what, read.advice()));
    }
    judge_healed(read)
}

/// What had a second copy is a finding, too.
fn judge_healed(read: &PartsRead) -> Result<()> {
    match read.healed.len() as u64 {
        0 => Ok(()),
        healed => Err(fault(
            Code::Tampered,
            format!("{}; nothing is lost", human::count(healed, "damaged place")),
            "Each had a second copy, and is whole again. Check once more: if there is new damage, \
             the disk is failing.",
        )),
    }
}

/// `2 files are damaged, of which 32 KiB are lost`, and that of the metadata.
fn in_sum(lost: &[LostBytes]) -> String {
    let files = lost.iter().filter(|lost| !lost.is_metadata()).count() as u64;
    let bytes = human::size(lost.iter().map(LostBytes::count).sum());
    let are = if files == 1 { "is" } else { "are" };
    let of_files =
        format!("{} {are} damaged, of which {bytes} are lost", human::count(files, "file"));
    let metadata = "some of the metadata is lost, so that more files may be".to_owned();
    match (lost.iter().any(LostBytes::is_metadata), files) {
        (true, 0) => metadata,
        (true, _) => format!("{of_files}; {metadata}"),
        (false, _) => of_files,
    }
}

/// All buckets first: blocks of no file are checked too.
fn look(args: &CheckArgs) -> Result<CheckFindings> {
    let quiet = args.open.quiet;
    let recorder = Recorder::of(&args.open)?;
    let looked = look_through(args, quiet, recorder.as_ref());
    Recorder::finish_after(recorder, looked)
}

fn look_through(
    args: &CheckArgs,
    quiet: bool,
    recorder: Option<&Recorder>,
) -> Result<CheckFindings> {
    let (mut volume, publisher) = open::volume(&args.volume, &args.open, recorder)?;
    let (read, lost) = inspect(&mut volume, args.limit_rate, quiet)?;
    if let Some(size) = disk::size_in(volume.root())? {
        let lost = of_disk(&volume, &lost)?;
        let ended = Disk::open(Box::new(volume))?.into_blocks().map(drop).map_err(Error::from);
        return Ok(CheckFindings { read, contents: Contents::Disk(size, lost), ended });
    }
    let session = match open::file_system((volume, publisher), 0) {
        Ok(session) => session,
        Err(error) => {
            let Some(lost) = lost_in(&error) else { return Err(error) };
            let report = CheckReport { lost: vec![lost.clone()], ..CheckReport::default() };
            return Ok(CheckFindings { read, contents: Contents::Files(report), ended: Ok(()) });
        }
    };
    let mut progress = Progress::steps(quiet, "files");
    let report = session.fs.check_with(true, &mut |done, total| progress.at(done, total))?;
    drop(progress);
    let ended = match session.fs.into_blocks() {
        // It was said.
        Err(oblivio_volume::Error::Lost(_)) if !report.lost.is_empty() => Ok(()),
        ended => ended.map(drop).map_err(Error::from),
    };
    Ok(CheckFindings { read, contents: Contents::Files(report), ended })
}

/// Reads all that is stored; gives also the blocks that are lost.
pub fn inspect(
    volume: &mut Volume,
    limit: Option<u64>,
    quiet: bool,
) -> Result<(PartsRead, Vec<Range<u64>>)> {
    let info = volume.info()?;
    let rate = RateLimit::new(limit, info.bytes_stored);
    let mut progress = Progress::steps(quiet, &format!("{}s", info.verified));
    let told = volume.damaged();
    let mut places = Vec::new();
    let mut at = |done, total| {
        progress.at(done, total);
        rate.wait(done, total);
    };
    let found = volume.inspect(&mut at, &mut |place| keep_place(&mut places, &place))?;
    drop(progress);
    open::tell_damage(volume, &told);
    Ok((PartsRead::of(volume, &info, &found, places), found.lost))
}

/// The bytes of a disk in these blocks.
pub fn of_disk(volume: &Volume, blocks: &[Range<u64>]) -> Result<Vec<LostBytes>> {
    let lost = Disk::lost_bytes(volume, blocks)?;
    Ok(if lost.ranges.is_empty() { Vec::new() } else { vec![lost] })
}
