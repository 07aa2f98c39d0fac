//! Where a volume is made: a folder, a file, or a partition.

use super::plan::Plan;
use crate::args::{InitArgs, SeenBy};
use crate::exit::{Code, fault};
use crate::human;
use anyhow::{Context, Result};
use oblivio_app::place::Made;
use oblivio_store::partition::Existing;
use oblivio_volume::read_header;
use std::os::unix::fs::FileTypeExt;

/// Refuses an occupied place, before any question.
pub fn refuse_what_is_there(args: &InitArgs) -> Result<()> {
    let shown = args.volume.display();
    let Ok(found) = args.volume.metadata() else { return Ok(()) };
    if !found.is_dir() {
        // The store checks the content of a file or partition when it is made.
        if found.is_file() || found.file_type().is_block_device() {
            return Ok(());
        }
        return Err(no_folder(args));
    }
    let found = oblivio_app::place::open(&args.volume);
    if found.is_ok_and(|store| read_header(&store).is_ok()) {
        let what = format!("there is a volume in {shown} already");
        return Err(fault(Code::Path, what, "Choose another folder; this one was left as it is."));
    }
    let mut entries = args.volume.read_dir().with_context(|| shown.to_string())?;
    if entries.next().is_some() {
        let what = format!("the folder {shown} is not empty");
        return Err(fault(Code::Path, what, "Choose a new or an empty folder."));
    }
    Ok(())
}

/// Refuses a file or partition for a volume that grows with its content.
pub fn refuse_file(args: &InitArgs, seen_by: SeenBy) -> Result<()> {
    match args.volume.metadata() {
        Ok(found) if seen_by == SeenBy::Storage && !found.is_dir() => Err(no_folder(args)),
        _ => Ok(()),
    }
}

fn no_folder(args: &InitArgs) -> anyhow::Error {
    let what = format!("{} is there already and not a folder", args.volume.display());
    fault(Code::Path, what, "Choose a new or an empty folder.")
}

/// Makes the planned store.
pub fn make(args: &InitArgs, plan: &Plan) -> Result<Made> {
    if oblivio_app::place::is_online(&args.volume) {
        return Ok(Made::at_url(&args.volume)?);
    }
    if args.sync_folder {
        return in_sync_folder(args);
    }
    let in_one = args.is_in_one();
    Ok(match plan.new.fixed_objects()? {
        Some(objects) if in_one => {
            let existing = if args.overwrite { Existing::Overwrite } else { Existing::Refuse };
            Made::in_one(&args.volume, &objects, existing)?
        }
        _ => Made::in_folder(&args.volume)?,
    })
}

/// Makes a folder that a sync client copies.
fn in_sync_folder(args: &InitArgs) -> Result<Made> {
    let (made, outside) = Made::in_sync_folder(&args.volume)?;
    if !outside && !args.open.quiet {
        human::say(
            "The state folder is on another file system: files are made in the folder itself, under \
             names that sync clients ignore, and what this computer keeps takes its space twice.",
        )?;
    }
    Ok(made)
}
