//! Paths inside a volume, as the command line has them, and where things go there.

use crate::exit::{Code, fault, usage};
use anyhow::Result;
use oblivio_app::walk::ReadFiles;
pub use oblivio_app::walk::{entries, find, find_directory, find_if_any, follow, in_words_of};
pub use oblivio_app::{BadPath, VolumePath};
use oblivio_volume::Error;
use oblivio_volume::fs::{FileKind, Ino};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Reads a path from the command line.
pub fn parse(text: impl AsRef<OsStr>) -> Result<VolumePath> {
    VolumePath::parse(text).map_err(|bad| {
        let hint = match &bad {
            BadPath::NotAbsolute(shown) => {
                format!("Paths inside a volume begin with `/`: /{shown}")
            }
            BadPath::Upwards(_) => "Write the path without `..`.".into(),
        };
        usage(bad.to_string(), hint)
    })
}

/// Reads several.
pub fn parse_all(texts: &[impl AsRef<OsStr>]) -> Result<Vec<VolumePath>> {
    texts.iter().map(parse).collect()
}

/// Whether an error says that there is nothing at a path.
pub fn is_not_found(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::NotFound(_)))
}

/// Where something goes: a directory that exists and a name in it.
#[derive(Clone, Debug)]
pub struct TargetName {
    pub parent: Ino,
    pub name: Vec<u8>,
    pub path: VolumePath,
}

/// Where things with these names go for the target `to`, as with cp and mv: into an existing
/// directory, or, for a single one, to that very name.
pub enum Destination {
    Into(Ino, VolumePath),
    As(TargetName),
}

impl Destination {
    /// Looks up the target. `slash` says that a directory was meant.
    pub fn find(fs: &dyn ReadFiles, to: &VolumePath, single: bool, slash: bool) -> Result<Self> {
        match find_if_any(fs, to)? {
            Some(attr) if attr.kind == FileKind::Directory => Ok(Self::Into(attr.ino, to.clone())),
            Some(_) if !single || slash => Err(Error::NotADirectory(to.to_string()).into()),
            None if !single || slash => {
                let what = format!("{to}: no such directory in the volume");
                let hint = format!("Make it first: oblivio mkdir -p VOLUME {to}");
                Err(fault(Code::Path, what, hint))
            }
            _ => {
                let parent = find_directory(fs, &to.parent())?.ino;
                let name = to.name().unwrap_or_default().to_vec();
                Ok(Self::As(TargetName { parent, name, path: to.clone() }))
            }
        }
    }

    /// The place for an item of this name.
    pub fn place(&self, name: &[u8]) -> TargetName {
        match self {
            Self::Into(parent, path) => {
                TargetName { parent: *parent, name: name.to_vec(), path: path.join(name) }
            }
            Self::As(place) => place.clone(),
        }
    }
}

/// Whether a path ends in a slash.
pub fn ends_in_slash(text: &OsStr) -> bool {
    text.as_bytes().last() == Some(&b'/')
}
