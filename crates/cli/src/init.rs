//! `init`: a new volume.

use crate::args::InitArgs;
use crate::exit::{Code, fault, usage};
use crate::human;
use crate::open;
use crate::passphrase;
use anyhow::{Context, Result};
use oblivio_crypto::Passphrase;
use oblivio_store::{LocalStore, Store};
use oblivio_volume::disk::{Disk, SECTOR};
use oblivio_volume::fs::FileSystem;
use oblivio_volume::{CreateOptions, Volume, read_header};
use std::sync::Arc;

/// Runs the command.
pub fn run(args: &InitArgs) -> Result<()> {
    let create = create_options(args)?;
    // Before the passphrase is asked for, and again when the folder is made.
    refuse_what_is_there(args)?;
    let passphrase = passphrase::first(&args.open.passphrase)?;
    let new = !args.volume.exists();
    let store: Arc<dyn Store> = Arc::new(LocalStore::create(&args.volume)?);
    if let Err(error) = make(args, &store, create, &passphrase) {
        if new {
            // Nothing but a part of what could not be made is in it.
            let _ = std::fs::remove_dir_all(&args.volume);
        } else if let Ok(objects) = store.list() {
            let names: Vec<&str> = objects.iter().map(|(name, _)| name.as_str()).collect();
            let _ = store.delete(&names);
        }
        return Err(error);
    }
    if !args.open.quiet {
        say(args)?;
    }
    Ok(())
}

fn say(args: &InitArgs) -> Result<()> {
    let shown = args.volume.display();
    match args.disk {
        Some(size) => human::say(format!("Made a disk of {} in {shown}.", human::size(size)))?,
        None => {
            let size = human::size(args.size);
            human::say(format!("Made a volume in {shown}, for up to {size}."))?;
        }
    }
    human::say("Without the passphrase nobody can read it, you included: keep it well.")?;
    if args.disk.is_some() {
        return human::say(format!("Serve it: oblivio nbd {shown} --socket PATH"));
    }
    human::say(format!("Store something: oblivio put -r {shown} FOLDER /"))
}

fn create_options(args: &InitArgs) -> Result<CreateOptions> {
    let block_bytes = args.block_size;
    if !block_bytes.is_power_of_two() || !(1 << 10..=1 << 20).contains(&block_bytes) {
        let hint = "Use 1K, 2K, 4K and so on up to 1M; 16K is a good choice.";
        return Err(usage("the block size must be a power of two from 1K to 1M", hint));
    }
    if args.size == 0 {
        return Err(usage("a volume of no size holds nothing", "Try --size 10G."));
    }
    if let Some(size) = args.disk
        && (size == 0 || !size.is_multiple_of(SECTOR))
    {
        let what = "a disk's size is a multiple of 512 bytes";
        return Err(usage(what, "Try --disk 10G."));
    }
    let (block_bytes, kdf) = (block_bytes as usize, args.kdf.params()?);
    Ok(CreateOptions { block_bytes, capacity_bytes: args.disk.unwrap_or(args.size), kdf })
}

fn refuse_what_is_there(args: &InitArgs) -> Result<()> {
    let shown = args.volume.display();
    let Ok(found) = args.volume.metadata() else { return Ok(()) };
    if !found.is_dir() {
        let what = format!("{shown} is there already and not a folder");
        return Err(fault(Code::Path, what, "Choose a new or an empty folder."));
    }
    if LocalStore::open(&args.volume).is_ok_and(|store| read_header(&store).is_ok()) {
        let what = format!("there is a volume in {shown} already");
        return Err(fault(Code::Path, what, "Choose another folder; this one was left as it is."));
    }
    let mut entries = args.volume.read_dir().with_context(|| shown.to_string())?;
    if entries.next().is_some() {
        let what = format!("the folder {shown} is not empty");
        return Err(fault(Code::Path, what, "Choose a new or an empty folder."));
    }
    Ok(())
}

fn make(
    args: &InitArgs,
    store: &Arc<dyn Store>,
    create: CreateOptions,
    passphrase: &Passphrase,
) -> Result<()> {
    let options = open::options(&args.open, None, None)?;
    let volume = Volume::create(Arc::clone(store), passphrase, create, options)?;
    match args.disk {
        Some(size) => drop(Disk::format(Box::new(volume), size)?),
        None => drop(FileSystem::format(Box::new(volume))?.into_blocks()?),
    }
    Ok(())
}
