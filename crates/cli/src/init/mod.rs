//! `init`: a new volume.

mod choice;
mod cost;
mod plan;

use crate::args::InitArgs;
use crate::exit::{Code, fault};
use crate::human;
use crate::open;
use crate::passphrase;
use crate::progress::Progress;
use anyhow::{Context, Result};
use oblivio_crypto::Passphrase;
use oblivio_store::{LocalStore, Store};
use oblivio_volume::disk::Disk;
use oblivio_volume::fs::FileSystem;
use oblivio_volume::{Volume, read_header};
use plan::{Engine, Plan};
use std::sync::Arc;

/// Runs the command.
pub fn run(args: &InitArgs) -> Result<()> {
    // Before anything is asked for, and again when the folder is made.
    refuse_what_is_there(args)?;
    let Some(seen_by) = choice::seen_by(args)? else {
        return human::say(choice::ENCRYPTION_ONLY);
    };
    let plan = Plan::new(args, seen_by)?;
    if !args.open.quiet {
        cost::say(&plan)?;
    }
    let passphrase = passphrase::first(&args.open.passphrase)?;
    let new = !args.volume.exists();
    let store: Arc<dyn Store> = Arc::new(LocalStore::create(&args.volume)?);
    if let Err(error) = make(args, &store, &plan, &passphrase) {
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
        say(args, &plan)?;
    }
    Ok(())
}

fn say(args: &InitArgs, plan: &Plan) -> Result<()> {
    let (shown, size) = (args.volume.display(), human::size(plan.size));
    match (plan.disk, &plan.engine) {
        (true, _) => human::say(format!("Made a disk of {size} in {shown}."))?,
        (false, Engine::Tree(_)) => {
            human::say(format!("Made a volume in {shown}, for up to {size}."))?;
        }
        (false, Engine::Sequential(_)) => {
            human::say(format!("Made a volume of {size} in {shown}."))?;
        }
    }
    human::say("Without the passphrase nobody can read it, you included: keep it well.")?;
    if plan.disk {
        return human::say(format!("Serve it: oblivio nbd {shown} --socket PATH"));
    }
    human::say(format!("Store something: oblivio put -r {shown} FOLDER /"))
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
    plan: &Plan,
    passphrase: &Passphrase,
) -> Result<()> {
    let (store, options) = (Arc::clone(store), open::options(&args.open, None, None)?);
    let volume = match plan.engine {
        Engine::Tree(create) => Volume::create(store, passphrase, create, options)?,
        Engine::Sequential(create) => {
            let mut progress = Progress::bytes(args.open.quiet, Some(create.stored_bytes()?));
            let mut before = 0;
            let hear = &mut |done, _| progress.add(done - std::mem::replace(&mut before, done));
            Volume::create_sequential(store, passphrase, plan.kdf, create, options, hear)?
        }
    };
    match plan.disk {
        true => drop(Disk::format(Box::new(volume), plan.size)?),
        false => drop(FileSystem::format(Box::new(volume))?.into_blocks()?),
    }
    Ok(())
}
