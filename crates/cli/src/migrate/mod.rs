//! `migrate`: a volume in another place.

mod files;
mod objects;
mod places;
mod requests;
mod target;

use crate::args::MigrateArgs;
use crate::exit::usage;
use crate::open;
use crate::passphrase;
use anyhow::{Context, Result};
use oblivio_volume::read_header;
use requests::Counted;
use std::path::Path;
use target::NewHome;

/// Runs the command.
pub fn run(args: &MigrateArgs) -> Result<()> {
    super::refuse_url(&args.to)?;
    refuse_misfits(args)?;
    let from = Counted::over(open::store(&args.from)?);
    let header = read_header(&from.store).with_context(|| args.from.display().to_string())?;
    let target = NewHome::find(args, &header, &from)?;
    // Asked for once, and used at both places.
    let passphrase = passphrase::known(&args.open.passphrase)?;
    match target {
        NewHome::Objects(to) => objects::run(args, &passphrase, &from, &Counted::over(to)),
        NewHome::Files(into) => files::run(args, &passphrase, &from, into),
    }
}

fn refuse_misfits(args: &MigrateArgs) -> Result<()> {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if whole(&args.from) == whole(&args.to) {
        return Err(usage("both places are the same", "Name another one to copy it to."));
    }
    let open = &args.open;
    if open.unobserved || open.only_looks() || open.pad || open.pace.is_some() {
        let what = "--unobserved, --history, --incomplete, --pad and --pace do not go with migrate";
        return Err(usage(what, "Leave them out."));
    }
    Ok(())
}
