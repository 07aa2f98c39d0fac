//! The work of one process: it opens the volume, checks all records, then adds further ones.

use oblivio::{CreateOptions, Error, OpenOptions, Volume};
use std::io::Write;
use std::path::PathBuf;
use std::process::exit;

/// Of a record: its number, over and over.
const RECORD: usize = 40;
const LOG: &str = "/log";
const PASSPHRASE: &str = "take-overs";

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // The parent may be gone; then there is nobody to tell.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

fn record(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(RECORD / 8)
}

fn variable(name: &str) -> String {
    std::env::var(name).expect("set by the parent")
}

pub fn run() {
    let place = variable("TAKEOVER_URL");
    let open =
        OpenOptions::new().take_over().remember_in(PathBuf::from(variable("HOME")).join("state"));
    if variable("TAKEOVER_MODE") == "create" {
        let options = CreateOptions::new().size(64 << 20).block_size(4096);
        let volume = options.guessing_cost(32 << 10, 1).opened(open).create(place, PASSPHRASE);
        let volume = volume.expect("made");
        volume.write(LOG, b"").expect("room");
        volume.close().expect("durable");
        return;
    }
    let ended = open.open(place, PASSPHRASE).and_then(|volume| go_on(&volume));
    match ended {
        Ok(()) => {}
        Err(Error::Overtaken) => {
            say("overtaken");
            exit(12);
        }
        Err(error) => {
            say(&format!("failed: {error}"));
            exit(1);
        }
    }
}

fn go_on(volume: &Volume) -> oblivio::Result<()> {
    let log = volume.read(LOG)?;
    let records = log.chunks(RECORD);
    let mut number = records.len() as u64;
    for (nth, found) in (1..).zip(records) {
        if found != record(nth) {
            say(&format!("failed: record {nth} is {found:?}"));
            exit(1);
        }
    }
    say(&format!("seen {number}"));
    loop {
        if std::fs::exists(PathBuf::from(variable("HOME")).join("end")).unwrap_or(false) {
            return volume.sync();
        }
        volume.write_at(LOG, number * RECORD as u64, &record(number + 1))?;
        // Other accesses, so that windows come.
        volume.write(format!("/side{}", number % 40), &record(number).repeat(50))?;
        if number % 7 == 6 {
            volume.read(format!("/side{}", number * 13 % 40)).or_else(passed)?;
        }
        number += 1;
        volume.sync()?;
        say(&format!("acked {number}"));
    }
}

/// A file that is not there yet.
fn passed(error: Error) -> oblivio::Result<Vec<u8>> {
    match error {
        Error::NotFound(_) => Ok(Vec::new()),
        error => Err(error),
    }
}
