//! `share`: a server of volumes that it cannot read, and what its administrator does.

use crate::args::{
    ShareCommand, ShareQuota, ShareServe, ShareStatus, TokenAdd, TokenCommand, TokenList,
    TokenRevoke,
};
use crate::exit::usage;
use crate::human::{count, say, say_json, size};
use crate::signals;
use anyhow::Result;
use oblivio_serve::log;
use oblivio_share::{
    AdminRequest, Granted, Home, KnownDevice, Server, ShareAddress, TablesOf, VolumeStatus, admit,
    hex, wish,
};
use oblivio_store::{Objects, Patience, RetryStore, StoreError};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long a failing store of tables is asked again, beside the time of its requests.
const TABLES_PATIENCE: Duration = Duration::from_secs(10);
/// A device with this many waiting asks is named. A client never has more than half as many.
const MANY: u64 = 1024;

/// Runs the command.
pub fn run(command: &ShareCommand) -> Result<()> {
    match command {
        ShareCommand::Serve(args) => serve(args),
        ShareCommand::Token(TokenCommand::Add(args)) => add(args),
        ShareCommand::Token(TokenCommand::List(args)) => list(args),
        ShareCommand::Token(TokenCommand::Revoke(args)) => revoke(args),
        ShareCommand::Quota(args) => quota(args),
        ShareCommand::Status(args) => status(args),
    }
}

fn serve(args: &ShareServe) -> Result<()> {
    let signals = signals::catch()?;
    raise_open_files();
    let (folder, listen, volumes) = (&args.folder, &args.listen, &args.volume);
    let tables = args.tables.as_deref().map(tables_of);
    let home = Home { tables, damaged: args.damaged.iter().cloned().collect() };
    let server = Server::at_home(folder, listen, volumes, home)?;
    say(format!("Serving {} on {}.", args.folder.display(), server.address()))?;
    say(format!("Fingerprint {}", hex(&server.fingerprint())))?;
    server.findings().iter().for_each(|finding| log::note(finding));
    let ending = server.ending();
    signals::forward(signals, move || ending.end())?;
    Ok(server.wait()?)
}

/// Lets it have as many open files as the system allows: connections and tables are many.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Without, it opens files anew more often.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Where the tables of a volume are: each has a folder or prefix of its own. An outage becomes an
/// error before clients give the server up.
fn tables_of(place: &Path) -> TablesOf {
    let place = place.to_owned();
    Box::new(move |volume| {
        let store = oblivio_app::place::open_within(&place, volume)?;
        let tell = |error: Option<&StoreError>| match error {
            Some(error) => log::note(&format!("the store of the tables fails: {error}")),
            None => log::note("the store of the tables answers again"),
        };
        let patience = Patience::default();
        let patient =
            RetryStore::online(store.objects(), patience, TABLES_PATIENCE, Box::new(tell));
        Ok(Arc::new(patient) as Arc<dyn Objects>)
    })
}

fn device(volume: &str, name: &str) -> KnownDevice {
    KnownDevice { volume: volume.into(), name: name.into() }
}

fn add(args: &TokenAdd) -> Result<()> {
    // Read first: a device whose token cannot be shown is not admitted.
    let address = ShareAddress::at(&args.host, &args.volume)?;
    if args.out.as_ref().is_some_and(|path| path.exists()) {
        let hint = "Name a new file, or remove that one first.";
        return Err(usage("there is a file of this name already", hint));
    }
    let token = admit(&args.folder, &args.device, address)?;
    match &args.out {
        Some(path) => Ok(token.store(path)?),
        None => say(token.line().as_bytes()),
    }
}

fn list(args: &TokenList) -> Result<()> {
    let Granted::Devices(devices) = wish(&args.folder, &AdminRequest::List)? else { return Ok(()) };
    if args.json {
        let devices: Vec<Value> =
            devices.iter().map(|it| json!({ "volume": it.volume, "device": it.name })).collect();
        return say_json(&devices);
    }
    devices.iter().try_for_each(|it| say(format!("{}  {}", it.volume, it.name)))
}

fn revoke(args: &TokenRevoke) -> Result<()> {
    wish(&args.folder, &AdminRequest::Revoke(device(&args.volume, &args.device)))?;
    say(format!("{} is not admitted to {} any more.", args.device, args.volume))
}

fn quota(args: &ShareQuota) -> Result<()> {
    let bytes = args.quota.0;
    wish(&args.folder, &AdminRequest::Quota(args.volume.clone(), bytes))?;
    match bytes {
        Some(bytes) => say(format!("{} may take {}.", args.volume, size(bytes))),
        None => say(format!("{} may take all of the disk.", args.volume)),
    }
}

fn status(args: &ShareStatus) -> Result<()> {
    loop {
        let Granted::Status(volumes, runs, findings) = wish(&args.folder, &AdminRequest::Status)?
        else {
            return Ok(());
        };
        match args.json {
            true => say_json(&as_json(&volumes, runs, &findings))?,
            false => in_words(&volumes, runs, &findings)?,
        }
        if !args.watch {
            return Ok(());
        }
        thread::sleep(Duration::from_secs(1));
    }
}

fn as_json(volumes: &[VolumeStatus], runs: bool, findings: &[String]) -> Value {
    let one = |it: &VolumeStatus| {
        let status = &it.status;
        json!({
            "volume": it.volume,
            "connected": it.connected,
            "term": status.term.0,
            "scribe": status.lease_left.is_some(),
            "waiting_asks": status.pending,
            "waiting_asks_of": it.waiting.iter().cloned().collect::<BTreeMap<_, _>>(),
            "unanswered_batches": status.unanswered,
            "first_record": status.first.0,
            "next_record": status.next.0,
            "tables": status.tables,
            "used_bytes": status.used_bytes,
            "quota_bytes": status.quota_bytes,
            "received_bytes": it.received_bytes,
            "sent_bytes": it.sent_bytes,
        })
    };
    let volumes: Vec<Value> = volumes.iter().map(one).collect();
    json!({ "runs": runs, "volumes": volumes, "findings": findings })
}

fn in_words(volumes: &[VolumeStatus], runs: bool, findings: &[String]) -> Result<()> {
    say(if runs { "The server runs." } else { "The server does not run." })?;
    findings.iter().try_for_each(|finding| say(format!("{finding}.")))?;
    for it in volumes {
        let status = &it.status;
        let mut devices = it.connected.clone();
        devices.sort_unstable();
        devices.dedup();
        let scribe = if status.lease_left.is_some() { "at work" } else { "none" };
        let quota = status.quota_bytes.map(|bytes| format!(" of {}", size(bytes)));
        say(format!("{}: {}", it.volume, count(devices.len() as u64, "client")))?;
        if !devices.is_empty() {
            say(format!("  connected  {}", devices.join(" ")))?;
        }
        say(format!("  scribe     {scribe}, term {}", status.term.0))?;
        let (asks, batches) = (count(status.pending, "ask"), count(status.unanswered, "batch"));
        say(format!("  backlog    {asks} that wait, {batches} without answers"))?;
        let most = it.waiting.iter().max_by_key(|(_, asks)| *asks);
        if let Some((device, asks)) = most.filter(|(_, asks)| *asks >= MANY) {
            say(format!("  most are   of {device}: {asks}"))?;
        }
        say(format!("  records    {} to {}", status.first.0, status.next.0))?;
        let (used, quota) = (size(status.used_bytes), quota.unwrap_or_default());
        say(format!("  space      {used}{quota}, in {}", count(status.tables, "table")))?;
        let (came, went) = (size(it.received_bytes), size(it.sent_bytes));
        say(format!("  traffic    {came} came, {went} went"))?;
    }
    Ok(())
}
