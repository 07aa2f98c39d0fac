//! The old place and the new one.

use super::requests::Counted;
use crate::args::{MigrateArgs, OpenArgs};
use crate::human::{self, count, say};
use crate::open;
use anyhow::{Context, Result};
use oblivio_crypto::Passphrase;
use oblivio_volume::{ClosedVolume, Volume};
use std::path::Path;

/// The options for the new place: whatever was there before, the user means this volume.
pub fn accepting(args: &MigrateArgs) -> OpenArgs {
    OpenArgs { accept_other_volume: true, accept_rollback: false, ..args.open.clone() }
}

/// Opens the volume in a store, which is at this place.
pub fn opened(
    store: &Counted,
    place: &Path,
    args: &OpenArgs,
    passphrase: &Passphrase,
) -> Result<Volume> {
    let closed = ClosedVolume::read(store.store.clone());
    let closed = closed.with_context(|| place.display().to_string())?;
    let mut options = open::options(place, args, None)?;
    if oblivio_app::place::is_online(place) {
        options.cache = oblivio_app::cache::of(closed.header().volume, args.disk_cache);
    }
    let volume = closed.open(passphrase, options)?;
    open::tell_damage(&volume, &[]);
    Ok(volume)
}

/// What was done, and what must not be done now. `whole` says that nothing of the old volume is
/// lost to damage.
pub fn tell(
    args: &MigrateArgs,
    what: &str,
    (from, whole): (&Counted, bool),
    to: &Counted,
) -> Result<()> {
    if args.open.quiet {
        return Ok(());
    }
    let (one, other) = (human::for_shell(&args.from), human::for_shell(&args.to));
    say(format!(
        "{what}, in {} to the old place and {} to the new one.",
        count(from.requests(), "request"),
        count(to.requests(), "request")
    ))?;
    let old = if whole { "is whole too, and stays" } else { "is damaged, and stays" };
    say(format!("The volume is in {other} now. The one in {one} {old} as it is."))?;
    say("Use one of the two from now on, not both: what is written in one is not in the other.")
}
