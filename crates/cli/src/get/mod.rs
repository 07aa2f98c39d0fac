//! `get` and `cat`: files out of a volume.

mod local;
mod pieces;
mod tree;

use crate::args::{CatArgs, GetArgs};
use crate::exit::{Failures, usage};
use crate::files::{self, Looked};
use crate::human;
use crate::inside::{self, VolumePath};
use crate::lost::DamagedFiles;
use crate::progress::{self, Progress};
use crate::put::{Summary, in_words};
use anyhow::{Context, Result};
use local::Folder;
use oblivio_volume::fs::FileKind;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tree::Get;

pub use pieces::{Holes, each_piece};

/// Runs `get`.
pub fn run(args: &GetArgs) -> Result<()> {
    let remote = inside::parse(&args.remote)?;
    if args.local == "-" {
        return files::look(&args.volume, &args.open, |files| {
            to_stdout(files, &remote, args.open.quiet)
        });
    }
    let summary = files::look(&args.volume, &args.open, |files| get(args, files, &remote))?;
    if args.json {
        human::say_json(&summary)?;
    } else if !args.open.quiet {
        eprintln!("{}", in_words(&summary, "brought back"));
    }
    Ok(())
}

/// Runs `cat`.
pub fn cat(args: &CatArgs) -> Result<()> {
    let paths = inside::parse_all(&args.remote)?;
    files::look(&args.volume, &args.open, |files| {
        let (mut failures, mut lost) = (Failures::default(), DamagedFiles::default());
        let mut done = 0;
        for path in &paths {
            let shown = to_stdout(files, path, args.open.quiet);
            match shown.or_else(|error| lost.take(path.to_string(), error)) {
                Ok(()) => done += 1,
                Err(error) => failures.note(error)?,
            }
        }
        let whole = done - lost.count();
        failures.finish(done)?;
        lost.finish(whole, "were shown whole")
    })
}

fn to_stdout((fs, publisher): Looked<'_>, path: &VolumePath, quiet: bool) -> Result<()> {
    let attr = inside::follow(fs, path)?;
    if attr.kind == FileKind::Directory {
        return Err(usage(
            format!("{path} is a directory"),
            "Name a file in it, or bring it back with `oblivio get -r`.",
        ));
    }
    // A bar would garble the output on a terminal.
    let quiet = quiet || std::io::IsTerminal::is_terminal(&std::io::stdout());
    let mut progress = Progress::bytes(quiet, Some(attr.size));
    let mut out = std::io::stdout().lock();
    let read = each_piece(fs, publisher, &attr, Holes::End, |_, piece| {
        progress.add(piece.len() as u64);
        Ok(out.write_all(piece)?)
    });
    out.flush()?;
    read
}

fn get(args: &GetArgs, files: Looked<'_>, path: &VolumePath) -> Result<Summary> {
    let begun = Instant::now();
    let attr = inside::find(files.0, path)?;
    if attr.kind == FileKind::Directory && !args.recursive {
        return Err(usage(
            format!("{path} is a directory"),
            "Add -r to bring it back with all that is in it.",
        ));
    }
    let quiet = args.open.quiet;
    let total = (!quiet && progress::shows())
        .then(|| crate::list::totals(files.0, &attr).map(|totals| totals.bytes))
        .transpose()?;
    let (folder, name) = target(Path::new(&args.local), path)?;
    let mut get = Get::new(files, folder, Progress::bytes(quiet, total));
    get.force = args.force;
    get.incomplete = args.open.incomplete;
    get.announce = (args.verbose, args.json);
    get.run(attr, name)?;
    let (mut summary, failures, lost) = get.finish();
    summary.seconds = begun.elapsed().as_secs_f64();
    if (failures.count() > 0 || lost.count() > 0) && args.json {
        human::say_json(&summary)?;
    }
    let ended = lost.finish(summary.files, "were written");
    failures.finish(summary.files + summary.directories + summary.symlinks).or_else(|failed| {
        // Both were named one by one; that something is lost counts for more.
        if ended.is_err() { Ok(()) } else { Err(failed) }
    })?;
    ended?;
    Ok(summary)
}

/// The local folder and the name to write. Without a name, the content of the volume's root goes
/// right into the folder.
fn target(local: &Path, path: &VolumePath) -> Result<(Folder, Option<Vec<u8>>)> {
    if local.is_dir() {
        let folder = Folder::open(local).with_context(|| local.display().to_string())?;
        return Ok((folder, path.name().map(<[u8]>::to_vec)));
    }
    let Some(name) = local.file_name() else {
        return Err(usage(format!("{} is no name for a file", local.display()), ""));
    };
    let parent = match local.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let folder = Folder::open(&parent).with_context(|| parent.display().to_string())?;
    Ok((folder, Some(name.as_bytes().to_vec())))
}
