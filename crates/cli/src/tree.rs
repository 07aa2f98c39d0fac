//! `mkdir`, `rm`, `mv` and `cp`: changes to the tree inside a volume.

use crate::args::{MkdirArgs, MvArgs, OpenArgs, RmArgs};
use crate::committer::Committer;
use crate::exit::{Code, Failures, fault, usage};
use crate::files::{self, Changed};
use crate::inside::{
    self, Destination, TargetName, VolumePath, ends_in_slash, entries, in_words_of, is_not_found,
};
use crate::open::now;
use anyhow::{Context, Result};
use oblivio_app::walk::WriteFiles;
use oblivio_serve::watch::OrdinaryEvent;
use oblivio_volume::Error;
use oblivio_volume::fs::{FileKind, Ino, NewNode, RenameMode};
use std::ffi::OsString;
use std::path::Path;

/// Runs `work` on each path and commits; a path that fails does not stop the others.
fn each(
    volume: &Path,
    open: &OpenArgs,
    paths: &[VolumePath],
    mut work: impl FnMut(Changed<'_>, &mut Committer<'_>, &VolumePath) -> Result<()>,
) -> Result<()> {
    files::change(volume, open, |changed| {
        let mut committer = Committer::new(changed.0);
        let (mut failures, mut done) = (Failures::default(), 0);
        for path in paths {
            match work(changed, &mut committer, path) {
                Ok(()) => done += 1,
                Err(error) => failures.note(error)?,
            }
        }
        committer.commit()?;
        failures.finish(done)
    })
}

/// Runs `mkdir`.
pub fn mkdir(args: &MkdirArgs) -> Result<()> {
    let paths = inside::parse_all(&args.remote)?;
    each(&args.volume, &args.open, &paths, |(fs, _), committer, path| {
        committer.changed();
        if args.parents { make_all(fs, path) } else { make_one(fs, path).map(drop) }
    })
}

fn new_directory() -> NewNode {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    NewNode { mode: 0o755, uid, gid, mtime: now() }
}

fn make_one(fs: &dyn WriteFiles, path: &VolumePath) -> Result<Ino> {
    let Some(name) = path.name() else { return Err(Error::Exists(path.to_string()).into()) };
    let parent = inside::find_directory(fs, &path.parent())?.ino;
    let made = fs.mkdir(parent, name, new_directory());
    Ok(made.map_err(|error| in_words_of(path, error))?.ino)
}

/// Makes a directory and its parents.
pub fn make_all(fs: &dyn WriteFiles, path: &VolumePath) -> Result<()> {
    let mut here = VolumePath::root();
    for name in path.names() {
        here = here.join(name);
        match inside::find_directory(fs, &here) {
            Ok(_) => {}
            Err(Error::NotFound(_)) => drop(make_one(fs, &here)?),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Runs `rm`.
pub fn rm(args: &RmArgs) -> Result<()> {
    let paths = inside::parse_all(&args.remote)?;
    if paths.iter().any(|path| path.name().is_none()) {
        let hint = "Name what is in it: `oblivio ls VOLUME /` shows that.";
        return Err(usage("the root of a volume cannot be removed", hint));
    }
    each(&args.volume, &args.open, &paths, |changed, committer, path| {
        match remove(changed, committer, path, args.recursive) {
            Err(error) if args.force && is_not_found(&error) => Ok(()),
            result => result,
        }
    })
}

fn remove(
    (fs, publisher): Changed<'_>,
    committer: &mut Committer<'_>,
    path: &VolumePath,
    recursive: bool,
) -> Result<()> {
    let attr = inside::find(fs, path)?;
    let parent = inside::find_directory(fs, &path.parent())?.ino;
    let name = path.name().context("the root")?;
    if attr.kind == FileKind::Directory {
        if !recursive {
            return Err(Error::IsADirectory(path.to_string()).into());
        }
        remove_below((fs, publisher), committer, attr.ino)?;
        fs.rmdir(parent, name).map_err(|error| in_words_of(path, error))?;
    } else {
        fs.unlink(parent, name).map_err(|error| in_words_of(path, error))?;
        publisher.ordinary(OrdinaryEvent::delete(attr.ino, attr.size));
    }
    committer.changed();
    Ok(())
}

/// Empties a directory, the deepest first.
fn remove_below(changed: Changed<'_>, committer: &mut Committer<'_>, directory: Ino) -> Result<()> {
    // Each with the names of subdirectories still to empty and remove.
    let mut stack = vec![(directory, remove_files(changed, committer, directory)?)];
    while let Some((here, left)) = stack.last_mut() {
        let here = *here;
        match left.last() {
            Some((_, ino)) => {
                let ino = *ino;
                let below = remove_files(changed, committer, ino)?;
                stack.push((ino, below));
            }
            None => {
                stack.pop();
                if let Some((above, left)) = stack.last_mut()
                    && let Some((name, ino)) = left.pop()
                {
                    debug_assert_eq!(ino, here);
                    changed.0.rmdir(*above, &name)?;
                    committer.changed();
                    committer.commit_if_due()?;
                }
            }
        }
    }
    Ok(())
}

/// Removes everything but directories, and returns the names of those.
fn remove_files(
    (fs, publisher): Changed<'_>,
    committer: &mut Committer<'_>,
    directory: Ino,
) -> Result<Vec<(Vec<u8>, Ino)>> {
    let mut directories = Vec::new();
    for entry in entries(fs, directory)? {
        if entry.kind == FileKind::Directory {
            directories.push((entry.name, entry.ino));
        } else {
            fs.unlink(directory, &entry.name)?;
            publisher.ordinary(OrdinaryEvent::delete(entry.ino, 0));
            committer.changed();
            committer.commit_if_due()?;
        }
    }
    Ok(directories)
}

/// The sources, each with its place below the last path.
pub fn sources_and_places(
    fs: &dyn WriteFiles,
    paths: &[OsString],
) -> Result<Vec<(VolumePath, TargetName)>> {
    let (to, from) = paths.split_last().context("nothing to do")?;
    let sources = inside::parse_all(from)?;
    let target = inside::parse(to)?;
    let single = sources.len() == 1;
    // A directory may be given a new name that ends in a slash.
    let slash = ends_in_slash(to) && !(single && is_directory(fs, &sources[0])?);
    let to = Destination::find(fs, &target, single, slash)?;
    let place = |path: VolumePath| match path.name() {
        Some(name) => Ok((path.clone(), to.place(name))),
        None => Err(usage("the root of a volume cannot be moved or copied", "")),
    };
    sources.into_iter().map(place).collect()
}

fn is_directory(fs: &dyn WriteFiles, path: &VolumePath) -> Result<bool> {
    Ok(inside::find(fs, path)?.kind == FileKind::Directory)
}

/// Checks the paths before asking for a passphrase.
pub fn check_paths(paths: &[OsString]) -> Result<()> {
    inside::parse_all(paths).map(drop)
}

/// Refuses to move or copy something into itself.
pub fn refuse_into_itself(from: &VolumePath, place: &TargetName) -> Result<()> {
    if place.path == *from {
        return Err(fault(Code::Path, format!("{from} is there already"), "Choose another name."));
    }
    if place.path.is_within(from) {
        let what = format!("{} is inside {from}", place.path);
        return Err(fault(Code::General, what, "Nothing can be put into itself."));
    }
    Ok(())
}

/// Runs `mv`.
pub fn mv(args: &MvArgs) -> Result<()> {
    check_paths(&args.paths)?;
    files::change(&args.volume, &args.open, |(fs, _)| {
        let mut committer = Committer::new(fs);
        let (mut failures, mut done) = (Failures::default(), 0);
        for (from, place) in sources_and_places(fs, &args.paths)? {
            match rename(fs, &from, &place, args.no_clobber) {
                Ok(()) => done += 1,
                Err(error) => failures.note(error)?,
            }
            committer.changed();
        }
        committer.commit()?;
        failures.finish(done)
    })
}

fn rename(fs: &dyn WriteFiles, from: &VolumePath, to: &TargetName, no_clobber: bool) -> Result<()> {
    inside::find(fs, from)?;
    refuse_into_itself(from, to)?;
    let parent = inside::find_directory(fs, &from.parent())?.ino;
    let name = from.name().context("the root")?;
    let mode = if no_clobber { RenameMode::NoReplace } else { RenameMode::Replace };
    let moved = fs.rename(parent, name, to.parent, &to.name, mode);
    Ok(moved.map_err(|error| in_words_of(&to.path, error))?)
}
