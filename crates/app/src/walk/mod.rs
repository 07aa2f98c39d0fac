//! From a path to its file: one name after the other, from the root down.

mod files;
mod own;

use crate::path::VolumePath;
use oblivio_volume::fs::{Attr, DirEntry, FileKind, Ino, ROOT_INO};
use oblivio_volume::{Error, Result};
use std::collections::VecDeque;

pub use files::{OpenFile, OpenId, ReadFiles, WriteFiles};

/// Names of a directory per request.
pub const PAGE: usize = 1024;
/// Symbolic links followed before a loop is assumed, as on Linux.
const MAX_LINKS: usize = 40;

/// The file at a path; symbolic links are not followed.
///
/// # Errors
/// `NotFound`, `NotADirectory`, and those of a read.
pub fn find(fs: &dyn ReadFiles, path: &VolumePath) -> Result<Attr> {
    let mut attr = fs.attr(ROOT_INO)?;
    for name in path.names() {
        attr = lookup(fs, attr.ino, name, path)?;
    }
    Ok(attr)
}

/// As [`find`], `None` when nothing is there.
///
/// # Errors
/// As for [`find`], but for `NotFound`.
pub fn find_if_any(fs: &dyn ReadFiles, path: &VolumePath) -> Result<Option<Attr>> {
    match find(fs, path) {
        Ok(attr) => Ok(Some(attr)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The directory at a path.
///
/// # Errors
/// As for [`find`]; `NotADirectory`.
pub fn find_directory(fs: &dyn ReadFiles, path: &VolumePath) -> Result<Attr> {
    let attr = find(fs, path)?;
    match attr.kind {
        FileKind::Directory => Ok(attr),
        _ => Err(Error::NotADirectory(path.to_string())),
    }
}

/// As [`find`], following symbolic links; they never lead out of the volume.
///
/// # Errors
/// As for [`find`]; `Invalid` for a loop of links.
pub fn follow(fs: &dyn ReadFiles, path: &VolumePath) -> Result<Attr> {
    let mut rest: VecDeque<Vec<u8>> = path.names().iter().cloned().collect();
    let mut above = vec![fs.attr(ROOT_INO)?];
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        if name == b".." {
            // The root is its own parent.
            above.truncate(above.len().saturating_sub(1).max(1));
            continue;
        }
        let Some(here) = above.last() else { break };
        let attr = lookup(fs, here.ino, &name, path)?;
        if attr.kind != FileKind::Symlink {
            above.push(attr);
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(Error::Invalid(format!("{path}: too many symbolic links")));
        }
        let target = fs.read_link(attr.ino)?;
        if target.first() == Some(&b'/') {
            above.truncate(1);
        }
        let names = target.split(|&b| b == b'/').filter(|name| !matches!(*name, b"" | b"."));
        for name in names.rev() {
            rest.push_front(name.to_vec());
        }
    }
    above.pop().ok_or_else(|| Error::NotFound(path.to_string()))
}

fn lookup(fs: &dyn ReadFiles, parent: Ino, name: &[u8], path: &VolumePath) -> Result<Attr> {
    fs.lookup(parent, name).map_err(|error| in_words_of(path, error))
}

/// The same error about the whole path; the file system knows only the last name.
pub fn in_words_of(path: &VolumePath, error: Error) -> Error {
    let path = path.to_string();
    match error {
        Error::NotFound(_) => Error::NotFound(path),
        Error::Exists(_) => Error::Exists(path),
        Error::NotADirectory(_) => Error::NotADirectory(path),
        Error::IsADirectory(_) => Error::IsADirectory(path),
        Error::NotEmpty(_) => Error::NotEmpty(path),
        Error::Invalid(why) => Error::Invalid(format!("{path}: {why}")),
        other => other,
    }
}

/// Calls `each` for every name of a directory, in order, a page at a time.
///
/// # Errors
/// `NotADirectory`, and those of a read.
pub fn each_entry(
    fs: &dyn ReadFiles,
    directory: Ino,
    mut each: impl FnMut(DirEntry),
) -> Result<()> {
    let mut after: Option<Vec<u8>> = None;
    loop {
        let page = fs.read_dir(directory, after.as_deref(), PAGE)?;
        let full = page.len() == PAGE;
        after = page.last().map(|entry| entry.name.clone());
        page.into_iter().for_each(&mut each);
        if !full {
            return Ok(());
        }
    }
}

/// All names of a directory.
///
/// # Errors
/// As for [`each_entry`].
pub fn entries(fs: &dyn ReadFiles, directory: Ino) -> Result<Vec<DirEntry>> {
    let mut all = Vec::new();
    each_entry(fs, directory, |entry| all.push(entry))?;
    Ok(all)
}
