//! `pick`: which of two histories goes on.

use crate::args::PickArgs;
use crate::human::{say, say_json, time};
use crate::open;
use crate::passphrase;
use anyhow::Result;
use oblivio_volume::fs::Timestamp;
use oblivio_volume::{HistoryInfo, drop_history, histories, pick};
use serde_json::json;

/// Runs the command.
pub fn run(args: &PickArgs) -> Result<()> {
    let store = open::store(&args.volume)?.objects();
    // Before asking for the passphrase: a mistyped folder is reported first.
    oblivio_volume::read_header(&*store)?;
    let passphrase = passphrase::known(&args.open.passphrase)?;
    let options = open::options(&args.volume, &args.open, None)?;
    match (&args.name, &args.dropped) {
        (Some(name), _) => {
            pick(store, &passphrase, options, name)?;
            tell(args, format!("{name} goes on. The other history is kept until you drop it."))
        }
        (None, Some(name)) => {
            drop_history(store, &passphrase, options, name)?;
            tell(args, format!("Dropped {name}."))
        }
        (None, None) => list(args, &histories(store, &passphrase, options)?),
    }
}

fn tell(args: &PickArgs, what: String) -> Result<()> {
    if args.open.quiet { Ok(()) } else { say(what) }
}

fn list(args: &PickArgs, all: &[HistoryInfo]) -> Result<()> {
    if args.json {
        let one = |it: &HistoryInfo| {
            json!({
                "name": it.name, "date": it.date, "own": it.own, "kept": it.kept,
                "files": it.files.1, "files_here": it.files.0,
            })
        };
        return say_json(&all.iter().map(one).collect::<Vec<_>>());
    }
    for it in all {
        let who = if it.own { "this computer's" } else { "another computer's" };
        let kept = if it.kept { ", not chosen, kept" } else { "" };
        let (here, files) = it.files;
        let missing = match files - here {
            0 => String::new(),
            missing => format!(", {missing} of {files} files still to come"),
        };
        let seconds = i64::try_from(it.date).unwrap_or(i64::MAX);
        let date = time(Timestamp { seconds, nanos: 0 });
        say(format!("{}  {date}  {who}{kept}{missing}", it.name))?;
    }
    Ok(())
}
