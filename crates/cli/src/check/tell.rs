//! What `check` says: for people, and for programs.

use super::found::{CheckFindings, Contents, PartsRead};
use crate::exit::{Code, judge, line};
use crate::human::{self, say, say_json};
use crate::lost::LostFile;
use anyhow::{Error, Result};
use oblivio_volume::LostBytes;
use serde_json::json;

/// Names the damaged places, or the first of them.
pub fn places(read: &PartsRead) -> Result<()> {
    for place in &read.places {
        say(human::plain(&format!("damaged: {place}")))?;
    }
    let unnamed = read.damaged - read.places.len() as u64;
    if unnamed > 0 {
        say(format!("and {}", human::count(unnamed, "more damaged place")))?;
    }
    Ok(())
}

/// Says what was read, each damaged place, and what that means.
pub fn in_words(read: &PartsRead, contents: &Contents) -> Result<()> {
    places(read)?;
    for problem in contents.problems() {
        say(human::plain(problem))?;
    }
    for lost in contents.lost() {
        say(LostFile::of(&lost.what, lost).line())?;
    }
    for hole in contents.holes() {
        say(format!("since a repair, {}", LostFile::of(&hole.what, hole).line()))?;
    }
    let clean = if read.healed.is_empty() { "clean" } else { "whole again" };
    let all_well =
        read.damaged == 0 && contents.problems().is_empty() && contents.lost().is_empty();
    let read = format!("{} read", human::count(read.count, read.unit));
    match contents {
        _ if !all_well => say(read),
        Contents::Files(report) => say(format!(
            "{clean}: {read}; {}, {} and {} are as they were written",
            human::count(report.blocks, "block"),
            human::count(report.files, "file"),
            human::count(report.directories, "directory"),
        )),
        Contents::Disk(size, _) => {
            say(format!(
                "{clean}: {read} of a disk of {} are as they were written",
                human::size(*size)
            ))?;
            say("A file system on it has a check of its own: serve the disk, then run fsck.")
        }
    }
}

/// The same as one value. Of damaged places it names the first ones.
pub fn as_json(found: &Result<CheckFindings>) -> Result<()> {
    let CheckFindings { read, contents, .. } = match found {
        Ok(found) => found,
        // Damage that prevents reading the volume is a finding, too.
        Err(error) if is_damage(error) => {
            return say_json(&json!({ "clean": false, "problems": [line(error)] }));
        }
        Err(_) => return Ok(()),
    };
    let lost = contents.lost();
    let problems = contents.problems();
    let whole = read.damaged == 0 && read.healed.is_empty();
    let mut said = json!({
        "clean": whole && problems.is_empty() && lost.is_empty(),
        "buckets": read.count,
        "damaged": read.damaged,
        "places": read.places,
        "healed": read.healed,
        "problems": problems,
        "lost": files(lost),
        "holes": files(contents.holes()),
        "lost_bytes": lost.iter().map(LostBytes::count).sum::<u64>(),
    });
    match contents {
        Contents::Disk(size, _) => said["disk_bytes"] = (*size).into(),
        Contents::Files(report) => {
            said["blocks"] = report.blocks.into();
            said["files"] = report.files.into();
            said["directories"] = report.directories.into();
        }
    }
    say_json(&said)
}

/// These files as they stand in JSON.
pub fn files(lost: &[LostBytes]) -> Vec<LostFile> {
    lost.iter().map(|lost| LostFile::of(&lost.what, lost)).collect()
}

fn is_damage(error: &Error) -> bool {
    matches!(judge(error).0, Code::Tampered | Code::RolledBack | Code::Lost)
}
