//! `passphrase add`, `remove`, `change` and `list`.

use crate::args::{PassphraseCommand, PassphraseList, PassphraseNew, PassphraseRemove};
use crate::human::{self, say, say_json};
use crate::open::store;
use crate::passphrase;
use anyhow::{Context, Result};
use oblivio_store::AnyStore;
use oblivio_volume::{add_passphrase, change_passphrase, read_header, remove_passphrase};
use std::path::Path;

/// Runs the command.
pub fn run(command: &PassphraseCommand) -> Result<()> {
    match command {
        PassphraseCommand::Add(args) => add(args),
        PassphraseCommand::Remove(args) => remove(args),
        PassphraseCommand::Change(args) => change(args),
        PassphraseCommand::List(args) => list(args),
    }
}

/// The store of a volume, locked: two changes at a time could lose one of them.
fn exclusive(folder: &Path) -> Result<AnyStore> {
    let store = store(folder)?;
    read_header(&store).with_context(|| folder.display().to_string())?;
    store.lock().map_err(oblivio_volume::Error::from)?;
    Ok(store)
}

fn add(args: &PassphraseNew) -> Result<()> {
    let kdf = args.new.kdf.params()?;
    let store = exclusive(&args.volume)?;
    let known = passphrase::known(&args.passphrase)?;
    let new = passphrase::new(&args.new)?;
    add_passphrase(&store, &known, &new, kdf)?;
    let count = read_header(&store)?.passphrases as u64;
    say(format!("Added; {} can open the volume now.", human::count(count, "passphrase")))
}

fn remove(args: &PassphraseRemove) -> Result<()> {
    let store = exclusive(&args.volume)?;
    let victim = passphrase::known(&args.passphrase)?;
    remove_passphrase(&store, &victim)?;
    let count = read_header(&store)?.passphrases as u64;
    say(format!("Removed; {} can open the volume now.", human::count(count, "passphrase")))
}

fn change(args: &PassphraseNew) -> Result<()> {
    let kdf = args.new.kdf.params()?;
    let store = exclusive(&args.volume)?;
    let old = passphrase::known(&args.passphrase)?;
    let new = passphrase::new(&args.new)?;
    change_passphrase(&store, &old, &new, kdf)?;
    say("Changed. Older copies of the volume still open with the old passphrase.")
}

fn list(args: &PassphraseList) -> Result<()> {
    let header =
        read_header(&store(&args.volume)?).with_context(|| args.volume.display().to_string())?;
    if args.json {
        return say_json(&serde_json::json!({
            "volume": header.volume.to_string(),
            "passphrases": header.passphrases,
        }));
    }
    let count = human::count(header.passphrases as u64, "passphrase");
    say(format!("{count} can open the volume; which ones is not written anywhere."))
}
