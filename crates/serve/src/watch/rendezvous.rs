//! The meeting point of a volume's commands and its watcher: a socket named after the volume, in a
//! folder that only this user can enter.

use super::fault::WatchFault;
use crate::error::{Doing, Result};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Whether the socket exists in a private folder of ours: its listener gets all events.
pub fn is_there(socket: &Path) -> bool {
    fs::symlink_metadata(socket).is_ok() && socket.parent().is_some_and(is_private)
}

fn is_private(folder: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.uid() == me && found.mode() & 0o077 == 0)
}

/// The watcher's end. The holder of the lock may remove a stale socket.
#[derive(Debug)]
pub struct Meeting {
    pub(super) listener: UnixListener,
    socket: PathBuf,
    _lock: File,
}

impl Meeting {
    /// Begins to listen for the users of a volume, at the socket that they know.
    ///
    /// # Errors
    /// Another watcher has the volume; the folder is not private; those of the system.
    pub fn at(socket: &Path) -> Result<Self> {
        let folder = socket.parent().unwrap_or(Path::new("."));
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.doing(folder.display())?;
        if !is_private(folder) {
            return Err(WatchFault::OpenFolder(folder.to_owned()).into());
        }
        let lock = lock(&socket.with_extension("watch-lock"))?;
        // Ours to remove: its maker no longer holds the lock.
        match fs::remove_file(socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let listener = UnixListener::bind(socket)
            .map_err(|error| WatchFault::NoSocket { socket: socket.to_owned(), error })?;
        fs::set_permissions(socket, Permissions::from_mode(0o600))?;
        Ok(Self { listener, socket: socket.to_owned(), _lock: lock })
    }

    /// A file in the private folder, beside the socket.
    pub fn beside(&self, extension: &str) -> PathBuf {
        self.socket.with_extension(extension)
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.socket
    }
}

/// Removes the socket, to keep commands from looking for a listener that is gone.
pub fn end(socket: &Path) {
    // It may be gone already; the next watcher would remove it too.
    let _ = fs::remove_file(socket);
}

fn lock(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    let file = options.create(true).write(true).truncate(false).mode(0o600).open(path);
    let file = file.doing(path.display())?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(WatchFault::Watched.into());
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use anyhow::Result;

    #[test]
    fn one_at_a_time_and_only_for_oneself() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let socket = dir.path().join("deep/v.watch");
        assert!(!is_there(&socket));
        let meeting = Meeting::at(&socket)?;
        assert!(is_there(&socket));
        let mode = |path: &Path| fs::metadata(path).map(|found| found.mode() & 0o777);
        assert_eq!(mode(&socket)?, 0o600);
        assert_eq!(mode(&dir.path().join("deep"))?, 0o700);
        let second = Meeting::at(&socket).expect_err("it is taken");
        assert!(matches!(second, Error::Watch(WatchFault::Watched)));
        // A killed watcher leaves its socket; the next one takes its place.
        drop(meeting);
        assert!(is_there(&socket));
        let again = Meeting::at(&socket)?;
        end(again.path());
        assert!(!is_there(&socket));
        Ok(())
    }

    #[test]
    fn a_folder_that_others_can_enter_is_refused() -> Result<()> {
        let dir = tempfile::tempdir()?;
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755))?;
        let socket = dir.path().join("v.watch");
        assert!(Meeting::at(&socket).is_err());
        let _listener = UnixListener::bind(&socket)?;
        assert!(!is_there(&socket));
        Ok(())
    }
}
