//! What is known of files, directories and volumes.

use oblivio_app::VolumePath;
use oblivio_volume::fs::{Attr, DirEntry as Entry, FileKind};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What is known of a file or directory without reading its content.
#[derive(Clone, Debug)]
pub struct Metadata(Attr);

impl Metadata {
    pub(crate) fn of(attr: Attr) -> Self {
        Self(attr)
    }

    /// The length of the content in bytes; 0 for a directory.
    #[expect(clippy::len_without_is_empty, reason = "as that of the standard library")]
    pub fn len(&self) -> u64 {
        self.0.size
    }

    /// Its kind.
    pub fn kind(&self) -> FileKind {
        self.0.kind
    }

    /// Whether it is a file.
    pub fn is_file(&self) -> bool {
        self.0.kind == FileKind::File
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.0.kind == FileKind::Directory
    }

    /// Permission bits (`0o7777`). They bind mounts, not this library.
    pub fn mode(&self) -> u32 {
        self.0.mode
    }

    /// When the content last changed.
    pub fn modified(&self) -> SystemTime {
        self.0.mtime.into()
    }

    /// When it was made.
    pub fn created(&self) -> SystemTime {
        self.0.crtime.into()
    }
}

/// How much a volume holds, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// In files, by their lengths; in a shared volume, in blocks that hold anything.
    pub used: u64,
    /// What new files may still take.
    pub free: u64,
    /// The most that the volume may ever hold.
    pub capacity: u64,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    name: OsString,
    path: PathBuf,
    kind: FileKind,
}

impl DirEntry {
    pub(crate) fn of(directory: &VolumePath, entry: Entry) -> Self {
        let path = OsString::from_vec(directory.join(&entry.name).bytes()).into();
        Self { name: OsString::from_vec(entry.name), path, kind: entry.kind }
    }

    /// The name in its directory. Names are bytes that need not be text.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// The whole path inside the volume.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The kind of what it names; links are not followed.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.kind == FileKind::Directory
    }
}
