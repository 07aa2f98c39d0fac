//! `init`: a new volume.

mod choice;
mod cost;
mod online;
mod place;
mod plan;

use crate::args::{InitArgs, OpenArgs, SeenBy};
use crate::human;
use crate::open;
use crate::passphrase;
use crate::progress::Progress;
use anyhow::Result;
use oblivio_crypto::Passphrase;
use oblivio_store::AnyStore;
use oblivio_volume::Cost;
use oblivio_volume::disk::Disk;
use oblivio_volume::fs::FileSystem;
use plan::Plan;

/// Runs the command.
pub fn run(args: &InitArgs) -> Result<()> {
    open::refuse_token_file(&args.open)?;
    open::refuse_what_needs_a_volume(&args.open)?;
    let online = oblivio_app::place::is_online(&args.volume);
    // Before any question, and again when the folder is made.
    if !online {
        place::refuse_what_is_there(args)?;
    }
    let seen_by = match args.seen_by {
        // The service sees what is read in a bucket.
        None if online => Some(SeenBy::Storage),
        None if args.sync_folder => Some(SeenBy::Snapshots),
        _ => choice::seen_by(args)?,
    };
    let Some(seen_by) = seen_by else {
        return human::say(choice::ENCRYPTION_ONLY);
    };
    place::refuse_file(args, seen_by)?;
    plan::refuse_misfits(args, seen_by, online)?;
    let found = if online { Some(online::find_out(args)?) } else { None };
    let plan = Plan::new(args, seen_by, choice::seeks(args, seen_by)?, found)?;
    if !args.open.quiet {
        cost::say(&plan)?;
    }
    if !cost::say_bill(args, &plan)? {
        return human::say("Nothing was made.");
    }
    // Everybody is asked who makes a volume with lanes: a question tells nothing.
    let lanes = plan.lanes.map_or(0, |lanes| lanes.count);
    let passphrases = passphrase::first_with_lanes(&args.open.passphrase, lanes)?;
    let made = place::make(args, &plan)?;
    if let Err(error) = make(args, made.store(), &plan, &passphrases) {
        made.undo();
        return Err(error);
    }
    if !args.open.quiet {
        say(args, &plan)?;
    }
    Ok(())
}

fn say(args: &InitArgs, plan: &Plan) -> Result<()> {
    let (shown, size) = (human::for_shell(&args.volume), human::size(plan.size));
    let grows = plan.new.fixed_objects()?.is_none();
    human::say(match (plan.disk, grows) {
        (true, _) => format!("Made a disk of {size} in {shown}."),
        (false, true) => format!("Made a volume in {shown}, for up to {size}."),
        (false, false) => format!("Made a volume of {size} in {shown}."),
    })?;
    human::say("Without the passphrase nobody can read it, you included: keep it well.")?;
    if plan.disk {
        return human::say(format!("Serve it: oblivio nbd {shown} --socket PATH"));
    }
    human::say(format!("Store something: oblivio put -r {shown} FOLDER /"))
}

fn make(
    args: &InitArgs,
    store: AnyStore,
    plan: &Plan,
    (passphrase, lanes): &(Passphrase, Vec<Passphrase>),
) -> Result<()> {
    // Whatever was here before, the user means this volume.
    let open = OpenArgs { accept_other_volume: true, ..args.open.clone() };
    let options = open::options(&args.volume, &open, None)?;
    let mut progress = match plan.new.cost(0)? {
        Cost::Fixed { stored, .. } => Progress::bytes(args.open.quiet, Some(stored)),
        Cost::Growing { .. } => Progress::bytes(true, None),
    };
    let mut before = 0;
    let hear = &mut |done, _| progress.add(done - std::mem::replace(&mut before, done));
    let lanes: Vec<&Passphrase> = lanes.iter().collect();
    let volume = plan.new.create_with((passphrase, &lanes), store, options, hear)?;
    drop(progress);
    match plan.disk {
        true => drop(Disk::format(Box::new(volume), plan.size)?),
        false => drop(FileSystem::format(Box::new(volume))?.into_blocks()?),
    }
    Ok(())
}
