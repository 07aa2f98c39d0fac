//! A log to which several computers append at the same time, at a server that has no key: it learns
//! who asks and when, and not what is written or read.
//!
//!     cargo run --example log --features share -- share://HOST:PORT/NAME TOKEN_FILE It rains.
//!     cargo run --example log --features share -- share://HOST:PORT/NAME TOKEN_FILE
//!
//! The first form appends a line, the second shows all lines. The passphrase is the first line of
//! standard input. `oblivio share serve` is the server, and its administrator makes the tokens.
#![allow(clippy::print_stdout, reason = "it shows the log")]

use oblivio::{CreateOptions, Error, OpenOptions, Passphrase, Result, Volume};

const LOG: &str = "/log";

/// Appends a line. Lines of several computers follow each other, whole, in one order for all.
pub fn append(volume: &Volume, line: &str) -> Result<()> {
    volume.append(LOG, format!("{line}\n").as_bytes())?;
    volume.sync()
}

/// All lines.
pub fn lines(volume: &Volume) -> Result<Vec<String>> {
    let log = match volume.read(LOG) {
        Err(Error::NotFound(_)) => return Ok(Vec::new()),
        log => log?,
    };
    Ok(String::from_utf8_lossy(&log).lines().map(str::to_owned).collect())
}

/// Opens the volume. The computer that comes first makes it.
pub fn open(place: &str, passphrase: &str, options: OpenOptions) -> Result<Volume> {
    let secret = || Passphrase::from(passphrase);
    match options.clone().open(place, secret()) {
        Err(Error::NotAVolume(_)) => CreateOptions::new().opened(options).create(place, secret()),
        opened => opened,
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [place, token, line @ ..] = &words[..] else { return Err("PLACE TOKEN [LINE]".into()) };
    let mut passphrase = String::new();
    std::io::stdin().read_line(&mut passphrase)?;
    let options = OpenOptions::new().token_file(token);
    let volume = open(place, passphrase.trim_end_matches('\n'), options)?;
    match line {
        [] => lines(&volume)?.iter().for_each(|line| println!("{line}")),
        line => append(&volume, &line.join(" "))?,
    }
    Ok(volume.close()?)
}
