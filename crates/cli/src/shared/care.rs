//! `info` and `check` of a shared volume.

use super::line::{line, open};
use crate::args::{CheckArgs, InfoArgs};
use crate::exit::{Code, fault, usage};
use crate::human::{self, count, say, say_json, size};
use crate::passphrase;
use anyhow::Result;
use oblivio_app::shared::{TIMEOUT, environment};
use oblivio_client::files::ClientFiles;
use oblivio_client::{config_of, disk, header, unlock};
use oblivio_privatefs::{FsOptions, PrivateFs, Problem};
use oblivio_share::ShareAddress;
use oblivio_store::share::Share;
use serde_json::json;
use std::sync::Arc;

/// What anybody with a token can see, without the passphrase.
pub fn info(args: &InfoArgs, address: &ShareAddress) -> Result<()> {
    let line = line(address, args.open.token_file.as_deref())?;
    let (header, status) = (header(&line)?, line.status()?);
    let config = config_of(&header)?;
    let most = config.blocks() * config.block_bytes as u64;
    if args.json {
        return say_json(&json!({
            "volume": header.volume().to_string(),
            "engine": "shared",
            "block_bytes": config.block_bytes,
            "capacity_bytes": most,
            "passphrases": header.passphrases(),
            "records": status.next.0,
            "term": status.term.0,
            "scribe": status.lease_left.is_some(),
            "waiting_asks": status.pending,
            "used_bytes": status.used_bytes,
            "most_table_bytes": config.most_table_bytes(),
            "quota_bytes": status.quota_bytes,
        }));
    }
    let scribe = if status.lease_left.is_some() { "at work" } else { "none: nobody uses it" };
    say(format!("{address}: a volume that computers share"))?;
    say(format!("  identity     {}", header.volume()))?;
    say(format!("  capacity     {}, in blocks of {} bytes", size(most), config.block_bytes))?;
    say(format!("  passphrases  {}", header.passphrases()))?;
    say(format!("  scribe       {scribe}, term {}", status.term.0))?;
    let tables = size(config.most_table_bytes());
    say(format!(
        "  at server    {}, in time up to {tables} and its history",
        size(status.used_bytes)
    ))?;
    say("The server learns who asks, how often and when. SECURITY.md says it exactly.")
}

fn refuse_scrub(args: &CheckArgs) -> Result<()> {
    let what = "a shared volume has no scrub: its server has what is stored";
    match args.scrub {
        true => Err(usage(what, "Leave --scrub out: a check reads all names and files.")),
        false => Ok(()),
    }
}

/// Reads all names and inodes, and checks that they fit together.
pub fn check(args: &CheckArgs, address: &ShareAddress) -> Result<()> {
    refuse_scrub(args)?;
    let line = line(address, args.open.token_file.as_deref())?;
    let keyed = unlock(&line, &passphrase::known(&args.open.passphrase)?)?;
    let client = open(line, keyed, address, &args.open, TIMEOUT)?;
    let files = Arc::new(ClientFiles::new(client)?);
    if disk::is_in(files.client())? {
        files.close()?;
        return Err(oblivio_volume::Error::HoldsDisk.into());
    }
    let fs = PrivateFs::new(Arc::clone(&files) as _, environment(), FsOptions::default())?;
    let found = fs.check_data();
    drop(fs);
    let damaged = files.client().damaged();
    files.close()?;
    let found = found?;
    let is_lost = |it: &Problem| {
        matches!(it, Problem::Damaged(_) | Problem::LostNames(_) | Problem::LostData { .. })
    };
    let lost = found.problems.iter().any(is_lost);
    let bad: Vec<_> = found.problems.iter().filter(|it| !it.is_left_over()).collect();
    let left = found.problems.len() - bad.len();
    if args.json {
        let problems: Vec<String> = found.problems.iter().map(|it| found.line(it)).collect();
        let (files, directories) = (found.files, found.directories);
        let clean = bad.is_empty();
        say_json(&json!({
            "clean": clean, "files": files, "directories": directories, "held": found.held,
            "problems": problems, "damaged_slots": damaged.len(),
        }))?;
    } else {
        let files = count(found.files, "file");
        say(format!("{files} and {}.", count(found.directories, "directory")))?;
        for problem in &bad {
            say(format!("  {}", human::plain(&found.line(problem))))?;
        }
        for slot in &damaged {
            say(format!(
                "  damaged at the server: tables/t-{:016x}, slot {}",
                slot.table.0, slot.slot
            ))?;
        }
        if found.held > 0 {
            say(format!(
                "{} without a name, still open. If the computer that opened it died: its session \
                 ends after a minute of silence, and the next mount removes it.",
                count(found.held, "file")
            ))?;
        }
        if left > 0 {
            say(format!(
                "{} of ended sessions: the next mount removes them.",
                count(left as u64, "rest")
            ))?;
        }
    }
    match bad.is_empty() {
        true => Ok(()),
        false if lost => {
            let what = format!("{} with the file system", count(bad.len() as u64, "problem"));
            let hint = "Some of it is lost to damage at the server; all else can be read.";
            Err(fault(Code::Lost, what, hint))
        }
        false => {
            let what = format!("{} with the file system", count(bad.len() as u64, "problem"));
            Err(fault(Code::Tampered, what, "Blocks are as they were written; names are not."))
        }
    }
}
