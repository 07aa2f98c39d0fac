//! This computer's own place for volumes in folders that a sync client copies: a folder for each in
//! the user's state folder.

use crate::remembered::state_folder;
use oblivio_crypto::{VolumeId, digest};
use oblivio_store::{LocalStore, Store};
use oblivio_volume::{Beside, Error, Result};
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of the volumes, in the state folder.
const FOLDERS: &str = "folders";

/// The place of the volume in one folder.
#[derive(Debug)]
pub struct BesideFolder {
    state: PathBuf,
    folder: PathBuf,
}

impl BesideFolder {
    /// For the volume in this folder, in the user's state folder.
    ///
    /// # Errors
    /// `Forgotten` when there is no home directory.
    pub fn at(folder: &Path) -> Result<Self> {
        Ok(Self::in_folder(&state_folder()?, folder))
    }

    /// The same with a state folder of the caller's.
    pub fn in_folder(state: &Path, folder: &Path) -> Self {
        // An absolute path: the process may go elsewhere.
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Self { state: state.to_owned(), folder }
    }

    fn place(&self, volume: VolumeId) -> PathBuf {
        self.state.join(FOLDERS).join(volume.to_string())
    }
}

/// Where files of such folders are made, in the user's state folder.
pub fn making() -> Option<PathBuf> {
    Some(state_folder().ok()?.join(FOLDERS).join("making"))
}

impl Beside for BesideFolder {
    fn store(&self, volume: VolumeId) -> Result<Arc<dyn Store>> {
        let place = self.place(volume);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&place);
        made.map_err(|error| {
            Error::Forgotten(format!("cannot be kept: {}: {error}", place.display()))
        })?;
        Ok(Arc::new(LocalStore::open(&place)?))
    }

    fn link(&self, volume: VolumeId, object: &str) -> bool {
        let (from, to) = (self.folder.join(object), self.place(volume).join(object));
        match fs::hard_link(&from, &to) {
            Ok(()) => true,
            // Of an earlier attempt, which may not have been complete.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                fs::remove_file(&to).is_ok() && fs::hard_link(&from, &to).is_ok()
            }
            Err(_) => false,
        }
    }

    /// Of the times, lengths and places that the system has for the file.
    fn fingerprint(&self, object: &str) -> Option<u64> {
        let found = self.folder.join(object).symlink_metadata().ok()?;
        let parts = [
            found.dev(),
            found.ino(),
            found.len(),
            found.mtime() as u64,
            found.mtime_nsec() as u64,
            found.ctime() as u64,
            found.ctime_nsec() as u64,
        ];
        let all = digest(&parts.map(u64::to_le_bytes).concat());
        all.first_chunk().copied().map(u64::from_le_bytes)
    }
}
