//! `gc`: deletes what nothing needs from an online store.

use crate::args::GcArgs;
use crate::human::{self, say, say_json};
use crate::open;
use crate::progress::Progress;
use crate::recorder::Recorder;
use crate::status::refuse_folders;
use anyhow::Result;
use oblivio_volume::{BlockSpace, Collected, Error, Volume};
use serde_json::json;

/// Runs the command.
pub fn run(args: &GcArgs) -> Result<()> {
    refuse_folders(&args.volume, "gc")?;
    let recorder = Recorder::of(&args.open)?;
    let (mut volume, _) = open::volume(&args.volume, &args.open, recorder.as_ref())?;
    let found = collect(&mut volume, args);
    let closed = if found.is_ok() { volume.finish() } else { Ok(()) };
    let recorded = recorder.map_or(Ok(()), Recorder::finish);
    let found = found?;
    closed?;
    recorded?;
    tell(args, &found)
}

fn collect(volume: &mut Volume, args: &GcArgs) -> Result<Collected> {
    let windows = volume.windows();
    let windows =
        windows.ok_or_else(|| Error::Unsupported("the volume is on no such engine".into()))?;
    let mut progress = Progress::steps(args.open.quiet, "objects");
    Ok(windows.collect(!args.dry_run, &mut |done, all| progress.at(done, all))?)
}

fn tell(args: &GcArgs, found: &Collected) -> Result<()> {
    let Collected { objects, bytes, strange } = *found;
    if args.json {
        return say_json(&json!({
            "objects": objects, "bytes": bytes, "strange": strange, "deleted": !args.dry_run,
        }));
    }
    if args.open.quiet {
        return Ok(());
    }
    let (count, size) = (human::count(objects, "object"), human::size(bytes));
    say(match (objects, args.dry_run) {
        (0, _) => "Nothing to delete.".into(),
        (_, true) => format!("{count} of {size} could be deleted."),
        (_, false) => format!("Deleted {count} of {size}."),
    })?;
    match strange {
        0 => Ok(()),
        _ => say(format!(
            "{} in there are none of a volume, and stay.",
            human::count(strange, "object")
        )),
    }
}
