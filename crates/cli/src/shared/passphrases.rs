//! `passphrase add`, `remove`, `change` and `list` of a shared volume. Who uses it goes on: they
//! have its key.

use super::line::line;
use crate::args::{PassphraseCommand, PassphraseList, PassphraseNew, PassphraseRemove};
use crate::human::{count, say, say_json};
use crate::passphrase;
use anyhow::Result;
use oblivio_app::shared::ShareLine;
use oblivio_client::{add_passphrase, change_passphrase, header, remove_passphrase};
use oblivio_share::ShareAddress;
use std::path::Path;

/// Runs the command.
pub fn run(command: &PassphraseCommand, address: &ShareAddress) -> Result<()> {
    match command {
        PassphraseCommand::Add(args) => add(args, address),
        PassphraseCommand::Remove(args) => remove(args, address),
        PassphraseCommand::Change(args) => change(args, address),
        PassphraseCommand::List(args) => list(args, address),
    }
}

/// The line to a volume that is there: nobody types a passphrase for nothing.
fn to_volume(address: &ShareAddress, token_file: Option<&Path>) -> Result<ShareLine> {
    let line = line(address, token_file)?;
    header(&line)?;
    Ok(line)
}

fn add(args: &PassphraseNew, address: &ShareAddress) -> Result<()> {
    let kdf = args.new.kdf.params()?;
    let line = to_volume(address, args.token_file.as_deref())?;
    let known = passphrase::known(&args.passphrase)?;
    let new = passphrase::new(&args.new)?;
    let all = add_passphrase(&line, &known, &new, kdf)?;
    say(format!("Added; {} can open the volume now.", count(all as u64, "passphrase")))
}

fn remove(args: &PassphraseRemove, address: &ShareAddress) -> Result<()> {
    let line = to_volume(address, args.token_file.as_deref())?;
    let victim = passphrase::known(&args.passphrase)?;
    let all = remove_passphrase(&line, &victim)?;
    say(format!("Removed; {} can open the volume now.", count(all as u64, "passphrase")))
}

fn change(args: &PassphraseNew, address: &ShareAddress) -> Result<()> {
    let kdf = args.new.kdf.params()?;
    let line = to_volume(address, args.token_file.as_deref())?;
    let old = passphrase::known(&args.passphrase)?;
    let new = passphrase::new(&args.new)?;
    change_passphrase(&line, &old, &new, kdf)?;
    say("Changed. Whoever kept the old header can still open the volume with the old passphrase.")
}

fn list(args: &PassphraseList, address: &ShareAddress) -> Result<()> {
    let header = header(&line(address, args.token_file.as_deref())?)?;
    if args.json {
        return say_json(&serde_json::json!({
            "volume": header.volume().to_string(),
            "passphrases": header.passphrases(),
        }));
    }
    let all = count(header.passphrases() as u64, "passphrase");
    say(format!("{all} can open the volume; which ones is not written anywhere."))
}
