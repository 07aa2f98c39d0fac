//! A notebook in a folder that may lie anywhere: who keeps the folder learns neither the notes nor
//! which of them is read.
//!
//!     cargo run --example notes -- VAULT garden Plant the beans.     adds to a page
//!     cargo run --example notes -- VAULT garden                      shows it
//!
//! The passphrase is the first line of standard input. The first note makes the volume.
#![allow(clippy::print_stdout, reason = "it shows a page")]

use oblivio::{CreateOptions, Error, OpenOptions, Passphrase, Result, Volume};
use std::path::Path;

/// Adds a note to a page.
pub fn add(volume: &Volume, page: &str, note: &str) -> Result<()> {
    volume.create_dir_all("/pages")?;
    volume.append(format!("/pages/{page}"), format!("{note}\n").as_bytes())
}

/// All notes of a page; none if there is no such page.
pub fn show(volume: &Volume, page: &str) -> Result<String> {
    match volume.read(format!("/pages/{page}")) {
        Ok(notes) => Ok(String::from_utf8_lossy(&notes).into_owned()),
        Err(Error::NotFound(_)) => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// Opens the volume, or makes it if there is none.
pub fn open(vault: &Path, passphrase: &str, options: OpenOptions) -> Result<Volume> {
    let secret = || Passphrase::from(passphrase);
    match options.clone().open(vault, secret()) {
        Err(Error::NotFound(_)) => CreateOptions::new().opened(options).create(vault, secret()),
        // WrongPassphrase: ask again. RolledBack: somebody put an old copy in place.
        opened => opened,
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [vault, page, note @ ..] = &words[..] else { return Err("VAULT PAGE [NOTE]".into()) };
    let mut passphrase = String::new();
    std::io::stdin().read_line(&mut passphrase)?;
    let volume = open(vault.as_ref(), passphrase.trim_end_matches('\n'), OpenOptions::new())?;
    match note {
        [] => print!("{}", show(&volume, page)?),
        note => add(&volume, page, &note.join(" "))?,
    }
    // Dropping it would do the same, and hide an error.
    Ok(volume.close()?)
}
