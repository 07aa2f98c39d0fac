//! Where a volume is: in a folder, in one file, or in a partition.

use oblivio_store::partition::{Existing, Place};
use oblivio_store::{LocalStore, PartitionStore, Store, StoreError};
use oblivio_volume::{HEADER_BYTES, HEADER_OBJECT};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a place has no store.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Nothing is there.
    #[error("{}: there is no such folder", .0.display())]
    Missing(PathBuf),
    /// It is a file or a device, and no volume.
    #[error("{} is no volume", .0.display())]
    NoVolume(PathBuf),
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// The store in an existing folder, file or partition. Whether it holds a volume shows when that is
/// opened.
///
/// # Errors
/// Nothing is there, or nothing of ours; those of the system.
pub fn open(place: &Path) -> Result<Arc<dyn Store>, PlaceError> {
    match std::fs::metadata(place) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(PlaceError::Missing(place.to_owned()));
        }
        Ok(found) if found.is_dir() => {}
        _ if PartitionStore::is_one(place)? => return Ok(Arc::new(PartitionStore::open(place)?)),
        _ => return Err(PlaceError::NoVolume(place.to_owned())),
    }
    Ok(Arc::new(LocalStore::open(place)?))
}

/// A store made for a volume.
pub struct Made {
    place: PathBuf,
    store: Arc<dyn Store>,
    /// Whether its folder or file is new.
    new: bool,
}

impl Made {
    /// Makes a store in a folder, which is new or empty.
    ///
    /// # Errors
    /// Something is in the folder; those of the system.
    pub fn in_folder(place: &Path) -> Result<Self, StoreError> {
        let (new, place) = (!place.exists(), place.to_owned());
        let store = Arc::new(LocalStore::create(&place)?);
        Ok(Self { place, store, new })
    }

    /// Makes a store for these objects and a header in one file or partition. What is there is
    /// overwritten only on request.
    ///
    /// # Errors
    /// Something is there; the volume does not fit; those of the system.
    pub fn in_one(
        place: &Path,
        objects: &[(&str, u64)],
        existing: Existing,
    ) -> Result<Self, StoreError> {
        let new = !place.exists();
        let fixed = objects.iter().map(|(name, bytes)| Place::fixed(name, *bytes));
        let header = Place::new(HEADER_OBJECT, HEADER_BYTES as u64);
        let places: Vec<_> = [header].into_iter().chain(fixed).collect();
        let store = Arc::new(PartitionStore::create(place, &places, existing)?);
        Ok(Self { place: place.to_owned(), store, new })
    }

    /// The store.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// Removes what was made: the volume did not come about.
    pub fn undo(self) {
        if self.new {
            // It holds only parts of this volume.
            let _ = match self.place.is_dir() {
                true => std::fs::remove_dir_all(&self.place),
                false => std::fs::remove_file(&self.place),
            };
        } else if let Ok(objects) = self.store.list() {
            let names: Vec<&str> = objects.iter().map(|(name, _)| name.as_str()).collect();
            let _ = self.store.delete(&names);
        }
    }
}
