//! A hidden directory of the volume for new content that is not yet whole.
//!
//! A file that replaces another, or that is too large for one commit, is written here first and
//! then moved over its name in one step. Whatever happens, the name leads to the old or the new
//! content. Where only one process at a time has the volume open, content found here at the start
//! is a remnant of one that was killed. In a shared volume each command has a directory of its own,
//! and one that nothing was done in for a day is a remnant.

use crate::inside::entries;
use anyhow::Result;
use oblivio::walk::WriteFiles;
use oblivio_volume::Error;
use oblivio_volume::fs::{FileKind, Ino, NewNode, ROOT_INO, RenameMode};

/// The directory's name, in the root.
pub const NAME: &[u8] = b".oblivio-incoming";
/// Prefix of our files in it; anything else there is not ours to remove.
const PREFIX: &str = "new-";
/// Seconds after which nobody works on it any more.
const FORGOTTEN: i64 = 24 * 3600;

impl Drop for Staging<'_> {
    /// Also when a command ends with an error: its remnants are useless and take space. Report that
    /// error, not one from here.
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

/// Removes our files from the directory.
fn clear(fs: &dyn WriteFiles, directory: Ino) -> Result<()> {
    for entry in entries(fs, directory)? {
        if entry.kind != FileKind::Directory && entry.name.starts_with(PREFIX.as_bytes()) {
            fs.unlink(directory, &entry.name)?;
        }
    }
    Ok(())
}

/// Removes what commands that were killed left in a shared volume.
fn clear_forgotten(fs: &dyn WriteFiles) -> Result<()> {
    for entry in entries(fs, ROOT_INO)? {
        let ours = entry.name.strip_prefix(NAME).is_some_and(|rest| rest.starts_with(b"-"));
        if ours && entry.kind == FileKind::Directory {
            let changed = fs.attr(entry.ino)?.mtime.seconds;
            if crate::open::now().seconds.saturating_sub(changed) > FORGOTTEN {
                clear(fs, entry.ino)?;
                remove(fs, &entry.name)?;
            }
        }
    }
    Ok(())
}

/// Removes the directory if nothing is in it.
fn remove(fs: &dyn WriteFiles, name: &[u8]) -> Result<()> {
    match fs.rmdir(ROOT_INO, name) {
        Ok(()) | Err(Error::NotEmpty(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The staging directory; made on first use.
pub struct Staging<'f> {
    fs: &'f dyn WriteFiles,
    name: Vec<u8>,
    directory: Option<Ino>,
    next: u64,
}

impl<'f> Staging<'f> {
    /// Clears the remnants of a killed command.
    pub fn new(fs: &'f dyn WriteFiles) -> Result<Self> {
        let mut name = NAME.to_vec();
        if let Some(session) = fs.among_others() {
            clear_forgotten(fs)?;
            name.extend(format!("-{session}").into_bytes());
            return Ok(Self { fs, name, directory: None, next: 0 });
        }
        let directory = match fs.lookup(ROOT_INO, NAME) {
            Ok(attr) if attr.kind == FileKind::Directory => Some(attr.ino),
            Ok(_) | Err(Error::NotFound(_)) => None,
            Err(error) => return Err(error.into()),
        };
        if let Some(ino) = directory {
            clear(fs, ino)?;
        }
        Ok(Self { fs, name, directory, next: 0 })
    }

    /// A fresh name to write to.
    pub fn fresh(&mut self) -> Result<(Ino, Vec<u8>)> {
        let directory = match self.directory {
            Some(ino) => ino,
            None => {
                let node = NewNode { mode: 0o700, mtime: crate::open::now(), ..NewNode::default() };
                let ino = self.fs.mkdir(ROOT_INO, &self.name, node)?.ino;
                *self.directory.insert(ino)
            }
        };
        self.next += 1;
        Ok((directory, format!("{PREFIX}{}", self.next).into_bytes()))
    }

    /// Moves a written file to its place, over any file there.
    pub fn place(&self, from: &(Ino, Vec<u8>), parent: Ino, name: &[u8]) -> Result<()> {
        self.fs.rename(from.0, &from.1, parent, name, RenameMode::Replace)?;
        // Two names of one file: POSIX has the rename do nothing, so the first still exists.
        match self.fs.unlink(from.0, &from.1) {
            Ok(()) | Err(Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes unfinished files, and the directory if nothing else is in it.
    pub fn finish(&mut self) -> Result<()> {
        let Some(directory) = self.directory.take() else { return Ok(()) };
        clear(self.fs, directory)?;
        remove(self.fs, &self.name)
    }
}
