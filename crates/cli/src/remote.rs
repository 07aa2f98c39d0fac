//! Paths inside a volume, and their files.

use crate::exit::usage;
use anyhow::{Context, Result};
use oblivio_volume::Error;
use oblivio_volume::fs::{Attr, DirEntry, FileKind, FileSystem, Ino, ROOT_INO};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

/// Names of a directory per request.
const PAGE: usize = 1024;
/// Symbolic links followed before a loop is assumed, as on Linux.
const MAX_LINKS: usize = 40;

/// An absolute path inside a volume; its names may be any bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemotePath(Vec<Vec<u8>>);

impl RemotePath {
    /// Reads a path from the command line.
    pub fn parse(text: &OsStr) -> Result<Self> {
        let bytes = text.as_bytes();
        let shown = text.to_string_lossy();
        if bytes.first() != Some(&b'/') {
            let hint = format!("Paths inside a volume begin with `/`: /{shown}");
            return Err(usage(format!("{shown:?} is not a path inside a volume"), hint));
        }
        let mut names = Vec::new();
        for name in bytes.split(|&b| b == b'/') {
            match name {
                b"" | b"." => {}
                b".." => {
                    let hint = "Write the path without `..`.";
                    return Err(usage(format!("{shown:?} has `..` in it"), hint));
                }
                name => names.push(name.to_vec()),
            }
        }
        Ok(Self(names))
    }

    /// Reads several.
    pub fn parse_all(texts: &[impl AsRef<OsStr>]) -> Result<Vec<Self>> {
        texts.iter().map(|text| Self::parse(text.as_ref())).collect()
    }

    /// The last name; `None` for the root.
    pub fn name(&self) -> Option<&[u8]> {
        self.0.last().map(Vec::as_slice)
    }

    /// The path without its last name.
    pub fn parent(&self) -> Self {
        Self(self.0[..self.0.len().saturating_sub(1)].to_vec())
    }

    /// The path of a name in this directory.
    pub fn join(&self, name: &[u8]) -> Self {
        Self(self.0.iter().cloned().chain([name.to_vec()]).collect())
    }

    /// The names from the root down.
    pub fn names(&self) -> &[Vec<u8>] {
        &self.0
    }

    /// Whether this is `other` or below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The path's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        if self.0.is_empty() {
            return b"/".to_vec();
        }
        self.0.iter().flat_map(|name| [b"/", name.as_slice()].concat()).collect()
    }
}

impl fmt::Display for RemotePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.bytes()))
    }
}

/// The file at a path; symbolic links are not followed.
pub fn find(fs: &FileSystem, path: &RemotePath) -> Result<Attr> {
    let mut attr = fs.attr(ROOT_INO)?;
    for name in path.names() {
        attr = lookup(fs, attr.ino, name, path)?;
    }
    Ok(attr)
}

/// As [`find`], `None` when nothing is there.
pub fn find_if_any(fs: &FileSystem, path: &RemotePath) -> Result<Option<Attr>> {
    match find(fs, path) {
        Ok(attr) => Ok(Some(attr)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The directory at a path.
pub fn find_directory(fs: &FileSystem, path: &RemotePath) -> Result<Attr> {
    let attr = find(fs, path)?;
    match attr.kind {
        FileKind::Directory => Ok(attr),
        _ => Err(Error::NotADirectory(path.to_string()).into()),
    }
}

/// As [`find`], following symbolic links; they never lead out of the volume.
pub fn follow(fs: &FileSystem, path: &RemotePath) -> Result<Attr> {
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
            return Err(Error::Invalid(format!("{path}: too many symbolic links")).into());
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
    above.pop().with_context(|| path.to_string())
}

fn lookup(fs: &FileSystem, parent: Ino, name: &[u8], path: &RemotePath) -> Result<Attr> {
    fs.lookup(parent, name).map_err(|error| in_words_of(path, error))
}

/// The same error about the whole path; the file system knows only the last name.
pub fn in_words_of(path: &RemotePath, error: Error) -> anyhow::Error {
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
    .into()
}

/// Whether an error says that there is nothing at a path.
pub fn is_not_found(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::NotFound(_)))
}

/// Calls `each` for every name of a directory, in order, a page at a time.
pub fn each_entry(
    fs: &FileSystem,
    directory: Ino,
    mut each: impl FnMut(DirEntry) -> Result<()>,
) -> Result<()> {
    let mut after: Option<Vec<u8>> = None;
    loop {
        let page = fs.read_dir(directory, after.as_deref(), PAGE)?;
        let full = page.len() == PAGE;
        after = page.last().map(|entry| entry.name.clone());
        page.into_iter().try_for_each(&mut each)?;
        if !full {
            return Ok(());
        }
    }
}

/// All names of a directory.
pub fn entries(fs: &FileSystem, directory: Ino) -> Result<Vec<DirEntry>> {
    let mut all = Vec::new();
    each_entry(fs, directory, |entry| {
        all.push(entry);
        Ok(())
    })?;
    Ok(all)
}

/// Where something goes: a directory that exists and a name in it.
#[derive(Clone, Debug)]
pub struct Place {
    pub parent: Ino,
    pub name: Vec<u8>,
    pub path: RemotePath,
}

/// Where things with these names go for the target `to`, as with cp and mv: into an existing
/// directory, or, for a single one, to that very name.
pub enum Destination {
    Into(Ino, RemotePath),
    As(Place),
}

impl Destination {
    /// Looks up the target. `slash` says that a directory was meant.
    pub fn find(fs: &FileSystem, to: &RemotePath, single: bool, slash: bool) -> Result<Self> {
        match find_if_any(fs, to)? {
            Some(attr) if attr.kind == FileKind::Directory => Ok(Self::Into(attr.ino, to.clone())),
            Some(_) if !single || slash => Err(Error::NotADirectory(to.to_string()).into()),
            None if !single || slash => {
                let what = format!("{to}: no such directory in the volume");
                let hint = format!("Make it first: oblivio mkdir -p VOLUME {to}");
                Err(crate::exit::fault(crate::exit::Code::Path, what, hint))
            }
            _ => {
                let parent = find_directory(fs, &to.parent())?.ino;
                let name = to.name().unwrap_or_default().to_vec();
                Ok(Self::As(Place { parent, name, path: to.clone() }))
            }
        }
    }

    /// The place for an item of this name.
    pub fn place(&self, name: &[u8]) -> Place {
        match self {
            Self::Into(parent, path) => {
                Place { parent: *parent, name: name.to_vec(), path: path.join(name) }
            }
            Self::As(place) => place.clone(),
        }
    }
}

/// Whether a path ends in a slash.
pub fn ends_in_slash(text: &OsStr) -> bool {
    text.as_bytes().last() == Some(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read() -> Result<()> {
        let path = |text: &str| RemotePath::parse(OsStr::new(text));
        assert_eq!(path("/")?.bytes(), b"/");
        assert_eq!(path("//a/./b/")?.to_string(), "/a/b");
        assert_eq!(path("/a/b")?.name(), Some(&b"b"[..]));
        assert_eq!(path("/a/b")?.parent(), path("/a")?);
        assert!(path("/a/b")?.is_within(&path("/a")?));
        assert!(!path("/ab")?.is_within(&path("/a")?));
        for bad in ["", "a", "../a", "/a/../b", "/.."] {
            assert!(path(bad).is_err(), "{bad}");
        }
        Ok(())
    }
}
