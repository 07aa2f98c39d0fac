//! `status`: who has a volume in an online store.

use crate::args::StatusArgs;
use crate::exit::usage;
use crate::human::{plain, say, say_json};
use crate::open;
use crate::passphrase;
use anyhow::Result;
use oblivio_app::{Remembered, place};
use oblivio_volume::{OpenOptions, SessionStatus, status};
use serde_json::json;
use std::path::Path;

/// Runs the command.
pub fn run(args: &StatusArgs) -> Result<()> {
    refuse_folders(&args.volume, "status")?;
    let store = open::store(&args.volume)?;
    // Before asking for the passphrase: a mistyped URL is reported first.
    oblivio_volume::read_header(&store)?;
    let passphrase = passphrase::known(&args.open.passphrase)?;
    // It keeps no process of this computer out, and notes nothing.
    let remembered = Remembered::at(&args.volume, args.open.accept_other_volume)?.unchanged();
    let options = OpenOptions {
        keeper: Some(Box::new(remembered)),
        accept_rollback: args.open.accept_rollback,
        ..OpenOptions::default()
    };
    let found = status(store.objects(), &passphrase, options)?;
    match (args.json, found) {
        (true, found) => say_json(&found.as_ref().map(as_json)),
        (false, None) => say("Nobody has ever used this volume."),
        (false, Some(found)) => say(lines(&found)),
    }
}

/// Refuses a volume that is in no online store: there only one process has it at a time.
///
/// # Errors
/// It is a folder, file or partition.
pub fn refuse_folders(volume: &Path, command: &str) -> Result<()> {
    if place::is_online(volume) {
        return Ok(());
    }
    let what = format!("`oblivio {command}` is for volumes at URLs");
    Err(usage(what, "`oblivio info VOLUME` tells about a volume in a folder."))
}

fn as_json(found: &SessionStatus) -> serde_json::Value {
    json!({
        "session": found.session, "host": found.host, "own": found.own, "free": found.ended,
        "entries": found.entries, "phrase": found.phrase,
    })
}

fn lines(found: &SessionStatus) -> String {
    let host = match (&found.host, found.own) {
        (Some(host), true) => format!("{} (this computer)", plain(host)),
        (Some(host), false) => plain(host),
        (None, _) => "an unknown computer".into(),
    };
    let state = match (found.ended, found.own) {
        (true, _) => format!("free; last used on {host}"),
        (false, true) => format!("in use on {host}, or was when that process ended"),
        (false, false) => format!("in use on {host}, or that computer is gone"),
    };
    let (session, entries, phrase) = (found.session, found.entries, &found.phrase);
    format!("state    {state}\nsession  {session}, with {entries} entries\nwords    {phrase}")
}
