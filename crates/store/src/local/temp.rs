//! Temporary files, so that `put` makes objects appear whole.
//!
//! No `replace_file`: a store stays in the directory that it opened, whatever happens to its path,
//! may have to create exclusively, and finds what crashed sessions left by its locks.

use super::directory::Directory;
use crate::medium::try_lock;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};

const PREFIX: &str = ".tmp-";

/// A file under a temporary name, with durable content. Removed on drop.
pub(super) struct Temp<'a> {
    directory: &'a Directory,
    name: String,
    /// Open for its lock, which shows other processes that this is no orphan.
    _file: File,
    renamed: bool,
}

impl<'a> Temp<'a> {
    /// Writes and syncs a new temporary file.
    pub(super) fn create(directory: &'a Directory, data: &[u8]) -> io::Result<Self> {
        let (name, mut file) = create_locked(directory)?;
        let written = file.write_all(data).and_then(|()| file.sync_all());
        let temp = Self { directory, name, _file: file, renamed: false };
        written.map(|()| temp)
    }

    /// Gives the file its name, replacing any other file of that name.
    pub(super) fn rename(mut self, object: &str) -> io::Result<()> {
        self.directory.rename(&self.name, object)?;
        self.renamed = true;
        Ok(())
    }

    /// Gives the file its name, if that is free.
    pub(super) fn link(mut self, object: &str) -> io::Result<()> {
        match self.directory.link(&self.name, object) {
            // FAT and some network file systems have no hard links.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                self.directory.rename_new(&self.name, object).map_err(|second| {
                    let exists = second.kind() == io::ErrorKind::AlreadyExists;
                    if exists { second } else { error }
                })?;
                self.renamed = true;
                Ok(())
            }
            result => result,
        }
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // On failure, the next open of the store removes it.
            let _ = self.directory.unlink(&self.name);
        }
    }
}

/// A new file that `remove_orphans` cannot have taken in between.
fn create_locked(directory: &Directory) -> io::Result<(String, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        match directory.open_file(&name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
            // A file system without locks cannot clean it up either.
            Ok(file) if try_lock(&file).unwrap_or(true) && file.metadata()?.nlink() > 0 => {
                return Ok((name, file));
            }
            Ok(_) => {}
        }
    }
}

/// Removes temporary files that no process holds. Failures wait for the next time: the medium may
/// be read-only.
pub(super) fn remove_orphans(directory: &Directory) {
    for name in directory.names().unwrap_or_default() {
        if !name.starts_with(PREFIX) {
            continue;
        }
        // The file stays open, and so locked, until its name is gone.
        if let Ok(file) = directory.open_file(&name, OFlags::RDWR)
            && try_lock(&file).unwrap_or(false)
        {
            let _ = directory.unlink(&name);
        }
    }
}
