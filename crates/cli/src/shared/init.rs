//! `init share://…`: a volume for several computers.

use super::line::{line, open};
use crate::args::{InitArgs, SeenBy};
use crate::exit::usage;
use crate::human::{say, size};
use crate::passphrase;
use anyhow::Result;
use oblivio_app::shared::{TIMEOUT, make_root};
use oblivio_client::files::ClientFiles;
use oblivio_client::{NewShared, create, disk};
use oblivio_share::ShareAddress;
use oblivio_volume::disk::SECTOR;
use std::sync::Arc;

/// The size of a volume, unless the user says otherwise.
const SIZE: u64 = 16 << 30;

/// Makes the volume, and an empty file system or a disk in it.
pub fn run(args: &InitArgs, address: &ShareAddress) -> Result<()> {
    refuse_others(args)?;
    let mut new = NewShared::of(args.size.unwrap_or(SIZE));
    new.kdf = args.kdf.params()?;
    if let Some(bytes) = args.block_size {
        new.block_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    if let Some(size) = args.disk {
        expect_disk(size)?;
        new.capacity_bytes = disk::capacity_for(size, new.block_bytes);
    }
    let config = new.config()?;
    crate::open::refuse_what_needs_a_volume(&args.open)?;
    let line = line(address, args.open.token_file.as_deref())?;
    if oblivio_store::share::Share::parameters(&line)?.is_some() {
        return Err(oblivio_volume::Error::Exists(address.to_string()).into());
    }
    let passphrase = passphrase::first(&args.open.passphrase)?;
    let keyed = create(&line, &new, &passphrase)?;
    let open_args = crate::args::OpenArgs { accept_other_volume: true, ..args.open.clone() };
    let client = open(line, keyed, address, &open_args, TIMEOUT)?;
    let (holds, used) = match args.disk {
        Some(bytes) => {
            disk::make(client, bytes)?;
            let used =
                format!("Use it on one computer at a time: oblivio nbd {address} --socket PATH");
            (format!("with a disk of {}", size(bytes)), used)
        }
        None => {
            let files = Arc::new(ClientFiles::new(client)?);
            make_root(&files)?;
            files.close()?;
            let most = config.blocks() * config.block_bytes as u64;
            let used = format!("Use it on each computer: oblivio mount {address} DIR");
            (format!("for up to {}", size(most)), used)
        }
    };
    if !args.open.quiet {
        say(format!("Made a shared volume at {address}, {holds}."))?;
        say(format!(
            "At the server it grows with use, whatever is in it, up to {} and its history.",
            size(config.most_table_bytes())
        ))?;
        say("Without the passphrase nobody can read it, you included: keep it well.")?;
        say(used)?;
    }
    Ok(())
}

/// Before anything is made: a volume is made once.
fn expect_disk(size: u64) -> Result<()> {
    match size > 0 && size.is_multiple_of(SECTOR) {
        true => Ok(()),
        false => Err(usage(
            format!("a disk's size is a multiple of {SECTOR} bytes, not {size}"),
            "Write it as 20G, for example.",
        )),
    }
}

fn refuse_others(args: &InitArgs) -> Result<()> {
    let only_folders = args.one_file
        || args.overwrite
        || args.fill
        || args.map_on_disk
        || args.seeks.is_some()
        || args.seen_by == Some(SeenBy::Snapshots);
    match only_folders {
        true => Err(usage(
            "a shared volume is at a server, which sees every access",
            "Leave out --one-file, --overwrite, --fill, --map-on-disk, --seeks and --seen-by.",
        )),
        false => Ok(()),
    }
}
