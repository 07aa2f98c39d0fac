//! A hidden directory of the volume for new content that is not yet whole.
//!
//! A file that replaces another, or that is too large for one commit, is written here first and
//! then moved over its name in one step. Whatever happens, the name leads to the old or the new
//! content. Where only one process at a time has the volume open, content found here at the start
//! is a remnant of one that was killed. In a shared volume each command has a directory in it, and
//! one in which nothing was done for a day is a remnant.

use crate::inside::entries;
use crate::open::now;
use anyhow::Result;
use oblivio_app::walk::WriteFiles;
use oblivio_volume::fs::{FileKind, Ino, NewNode, ROOT_INO, RenameMode};
use oblivio_volume::{Error, Result as VolumeResult};

/// The directory's name, in the root.
pub const NAME: &[u8] = b".oblivio-incoming";
/// Prefix of our files in it; anything else there is not ours to remove.
const PREFIX: &str = "new-";
/// Seconds after which nobody works on it any more.
const FORGOTTEN: i64 = 24 * 3600;
/// How often the directory is made again that another command removed meanwhile.
const TRIES: usize = 8;

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
            gone(fs.unlink(directory, &entry.name))?;
        }
    }
    Ok(())
}

/// Another command may have removed it first.
fn gone(removed: VolumeResult<()>) -> VolumeResult<()> {
    match removed {
        Err(Error::NotFound(_)) => Ok(()),
        removed => removed,
    }
}

/// Removes a directory if nothing is in it.
fn remove(fs: &dyn WriteFiles, parent: Ino, name: &[u8]) -> VolumeResult<()> {
    match gone(fs.rmdir(parent, name)) {
        Err(Error::NotEmpty(_)) => Ok(()),
        removed => removed,
    }
}

/// Removes what commands that were killed left in a shared volume.
fn clear_forgotten(fs: &dyn WriteFiles, parent: Ino) -> Result<()> {
    for entry in entries(fs, parent)?.into_iter().filter(|it| it.kind == FileKind::Directory) {
        // It has the time of its names only.
        let inside = entries(fs, entry.ino)?.into_iter().map(|file| file.ino);
        let newest = inside.chain([entry.ino]).filter_map(|ino| fs.attr(ino).ok());
        let newest = newest.map(|attr| attr.mtime.seconds).max();
        if newest.is_some_and(|newest| now().seconds.saturating_sub(newest) > FORGOTTEN) {
            clear(fs, entry.ino)?;
            remove(fs, parent, &entry.name)?;
        }
    }
    Ok(())
}

/// The staging directory in the root, if it is there.
fn find(fs: &dyn WriteFiles) -> VolumeResult<Option<Ino>> {
    match fs.lookup(ROOT_INO, NAME) {
        Ok(attr) if attr.kind == FileKind::Directory => Ok(Some(attr.ino)),
        Ok(_) | Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where the files of this command go; made on first use.
pub struct Staging<'f> {
    fs: &'f dyn WriteFiles,
    directory: Option<Ino>,
    next: u64,
}

impl<'f> Staging<'f> {
    /// Clears the remnants of a killed command.
    pub fn new(fs: &'f dyn WriteFiles) -> Result<Self> {
        let shared = fs.among_others().is_some();
        let found = find(fs)?;
        match found {
            Some(parent) if shared => clear_forgotten(fs, parent)?,
            Some(directory) => clear(fs, directory)?,
            None => {}
        }
        Ok(Self { fs, directory: found.filter(|_| !shared), next: 0 })
    }

    /// A fresh name to write to.
    pub fn fresh(&mut self) -> Result<(Ino, Vec<u8>)> {
        let directory = match self.directory {
            Some(ino) => ino,
            None => *self.directory.insert(make(self.fs)?),
        };
        self.next += 1;
        Ok((directory, format!("{PREFIX}{}", self.next).into_bytes()))
    }

    /// Moves a written file to its place, over any file there.
    pub fn place(&self, from: &(Ino, Vec<u8>), parent: Ino, name: &[u8]) -> Result<()> {
        self.fs.rename(from.0, &from.1, parent, name, RenameMode::Replace)?;
        // Two names of one file: POSIX has the rename do nothing, so the first still exists.
        Ok(gone(self.fs.unlink(from.0, &from.1))?)
    }

    /// Removes unfinished files, and the directories if nothing else is in them.
    pub fn finish(&mut self) -> Result<()> {
        let Some(directory) = self.directory.take() else { return Ok(()) };
        clear(self.fs, directory)?;
        if let Some(session) = self.fs.among_others()
            && let Some(parent) = find(self.fs)?
        {
            remove(self.fs, parent, session.as_bytes())?;
        }
        Ok(remove(self.fs, ROOT_INO, NAME)?)
    }
}

/// Makes the directory of this command. In a shared volume another one may remove what is above it
/// just then: nothing was in it.
fn make(fs: &dyn WriteFiles) -> VolumeResult<Ino> {
    let node = NewNode { mode: 0o700, mtime: now(), ..NewNode::default() };
    let Some(session) = fs.among_others() else { return Ok(fs.mkdir(ROOT_INO, NAME, node)?.ino) };
    let mut tries = 0..TRIES;
    loop {
        let parent = match fs.mkdir(ROOT_INO, NAME, node) {
            Ok(made) => Ok(Some(made.ino)),
            Err(Error::Exists(_)) => find(fs),
            Err(error) => Err(error),
        };
        let made = parent?.map(|parent| fs.mkdir(parent, session.as_bytes(), node));
        match made {
            Some(Ok(made)) => return Ok(made.ino),
            None | Some(Err(Error::NotFound(_))) if tries.next().is_some() => {}
            Some(Err(error)) => return Err(error),
            None => return Err(Error::NotFound(String::from_utf8_lossy(NAME).into_owned())),
        }
    }
}
