//! `put`: files into a volume.

mod source;
mod summary;
mod tree;

use crate::args::PutArgs;
use crate::exit::usage;
use crate::files::{self, Changed};
use crate::human;
use crate::inside::{self, Destination, VolumePath, ends_in_slash};
use crate::progress::{self, Progress};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tree::PutRun;

pub use summary::{Summary, in_words};

/// Runs the command.
pub fn run(args: &PutArgs) -> Result<()> {
    let (to, locals) = args.paths.split_last().context("nothing to store")?;
    let remote = inside::parse(to)?;
    check_sources(args, locals)?;
    let summary = files::change(&args.volume, &args.open, |changed| {
        put_all(args, changed, locals, &remote, ends_in_slash(to))
    })?;
    if args.json {
        human::say_json(&summary)?;
    } else if !args.open.quiet {
        eprintln!("{}", in_words(&summary, "stored"));
    }
    Ok(())
}

/// Checks the sources before asking for a passphrase.
fn check_sources(args: &PutArgs, locals: &[OsString]) -> Result<()> {
    for local in locals {
        if local == "-" {
            if locals.len() > 1 {
                return Err(usage("standard input cannot be stored along with files", ""));
            }
            continue;
        }
        let path = Path::new(local);
        let found = path.symlink_metadata().with_context(|| path.display().to_string())?;
        if found.is_dir() && !args.recursive {
            let what = format!("{} is a directory", path.display());
            return Err(usage(what, "Add -r to store it with all that is in it."));
        }
    }
    Ok(())
}

fn put_all(
    args: &PutArgs,
    changed: Changed<'_>,
    locals: &[OsString],
    remote: &VolumePath,
    slash: bool,
) -> Result<Summary> {
    let begun = Instant::now();
    let to = Destination::find(changed.0, remote, locals.len() == 1, slash)?;
    let mut put = PutRun::new(changed, &args.volume, begin_progress(args, locals))?;
    put.recursive = args.recursive;
    put.announce = match (args.verbose, args.json) {
        (false, _) => tree::Announce::Nothing,
        (true, false) => tree::Announce::Lines,
        (true, true) => tree::Announce::Json,
    };
    for local in locals {
        let done = if local == "-" {
            stdin_place(args, &to, remote)
                .and_then(|place| put.stream(&mut std::io::stdin(), place))
        } else {
            name_of(Path::new(local)).and_then(|name| put.named(Path::new(local), &to.place(&name)))
        };
        if let Err(error) = done {
            put.failed(error)?;
        }
    }
    let (mut summary, failures) = put.finish()?;
    summary.seconds = begun.elapsed().as_secs_f64();
    if failures.count() > 0 && args.json {
        human::say_json(&summary)?;
    }
    failures.finish(summary.files + summary.directories + summary.symlinks)?;
    Ok(summary)
}

fn begin_progress(args: &PutArgs, locals: &[OsString]) -> Progress {
    let quiet = args.open.quiet;
    // Added up only for a visible bar.
    let total = (!quiet && progress::shows() && locals.iter().all(|local| local != "-"))
        .then(|| locals.iter().map(|local| source::bytes_below(Path::new(local))).sum());
    Progress::bytes(quiet, total)
}

/// Where standard input goes: to that very name, or to `--name` in a directory.
fn stdin_place(
    args: &PutArgs,
    to: &Destination,
    remote: &VolumePath,
) -> Result<inside::TargetName> {
    match (to, &args.name) {
        (Destination::Into(..), Some(name)) if !name.as_bytes().contains(&b'/') => {
            Ok(to.place(name.as_bytes()))
        }
        (Destination::Into(..), Some(_)) => Err(usage("a name has no `/` in it", "")),
        (Destination::Into(..), None) => Err(usage(
            format!("{remote} is a directory, and standard input has no name"),
            "Give the whole path, or --name NAME.",
        )),
        (Destination::As(_), Some(_)) => {
            Err(usage(format!("{remote} is no directory for --name to be in"), ""))
        }
        (Destination::As(place), None) => Ok(place.clone()),
    }
}

/// The name of a local path in the volume: that of its target, which gives `.` and `..` one too.
fn name_of(local: &Path) -> Result<Vec<u8>> {
    if let Some(name) = local.file_name() {
        return Ok(name.as_bytes().to_vec());
    }
    let whole: PathBuf = local.canonicalize().with_context(|| local.display().to_string())?;
    // The root directory has no name; its content goes right into the target.
    Ok(whole.file_name().map(|name| name.as_bytes().to_vec()).unwrap_or_else(|| b"root".to_vec()))
}
