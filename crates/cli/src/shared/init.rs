//! `init share://…`: a volume for several computers.

use super::line::{TIMEOUT, line, make_root, open};
use crate::args::{InitArgs, SeenBy};
use crate::exit::usage;
use crate::human::{say, size};
use crate::passphrase;
use anyhow::Result;
use oblivio_client::files::Files;
use oblivio_client::{NewShared, create};
use oblivio_share::Address;
use std::sync::Arc;

/// The size of a volume, unless the user says otherwise.
const SIZE: u64 = 16 << 30;

/// Makes the volume, and an empty file system in it.
pub fn run(args: &InitArgs, address: &Address) -> Result<()> {
    refuse_others(args)?;
    let mut new = NewShared::of(args.size.unwrap_or(SIZE));
    new.kdf = args.kdf.params()?;
    if let Some(bytes) = args.block_size {
        new.block_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    let config = new.config()?;
    let line = line(address, args.token_file.as_deref())?;
    if oblivio_store::share::Share::parameters(&line)?.is_some() {
        return Err(oblivio_volume::Error::Exists(address.to_string()).into());
    }
    let passphrase = passphrase::first(&args.open.passphrase)?;
    let keyed = create(&line, &new, &passphrase)?;
    let open_args = crate::args::OpenArgs { accept_other_volume: true, ..args.open.clone() };
    let client = open(line, keyed, address, &open_args, TIMEOUT)?;
    let files = Arc::new(Files::new(client)?);
    make_root(&files)?;
    files.close()?;
    if !args.open.quiet {
        let most = config.blocks() * config.block_bytes as u64;
        say(format!("Made a shared volume at {address}, for up to {}.", size(most)))?;
        say("Without the passphrase nobody can read it, you included: keep it well.")?;
        say(format!("Use it on each computer: oblivio mount {address} DIR"))?;
    }
    Ok(())
}

fn refuse_others(args: &InitArgs) -> Result<()> {
    let only_folders = args.disk.is_some()
        || args.one_file
        || args.overwrite
        || args.fill
        || args.map_on_disk
        || args.seen_by == Some(SeenBy::Snapshots);
    match only_folders {
        true => Err(usage(
            "a shared volume holds files, for a server that sees every access",
            "Leave out --disk, --one-file, --overwrite, --fill, --map-on-disk and --seen-by.",
        )),
        false => Ok(()),
    }
}
