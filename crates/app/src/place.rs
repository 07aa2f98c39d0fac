//! Where a volume is: in a folder, in one file, in a partition, or at a URL.

use crate::beside;
pub use crate::url::{is_service, scheme};
use oblivio_store::partition::{Existing, PartitionPlace};
use oblivio_store::{AnyStore, Held, LocalStore, Objects, PartitionStore, StoreError, SyncFolder};
use oblivio_volume::{HEADER_BYTES, HEADER_OBJECTS};
use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Why a place has no store.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Nothing is there.
    #[error("{}: there is no such folder", .0.display())]
    Missing(PathBuf),
    /// It is a file or a device, and no volume.
    #[error("{} is no volume", .0.display())]
    NoVolume(PathBuf),
    /// It is a URL that leads to no store.
    #[error("{url}: {why}")]
    Url {
        /// The URL, without what may be secret in it.
        url: String,
        /// The reason, with advice.
        why: String,
    },
    /// Its sync client fetches this file when it is read.
    #[error("{file} is not on this computer: the sync client of {} keeps it online only, where \
             reads are seen", .folder.display())]
    OnlineOnly {
        /// The folder.
        folder: PathBuf,
        /// One such file.
        file: String,
    },
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// Whether a place is at a URL, and not of this computer.
pub fn is_online(place: &Path) -> bool {
    #[cfg(feature = "online")]
    return crate::online::url(place).is_some();
    #[cfg(not(feature = "online"))]
    return scheme(place).is_some() && !place.exists();
}

#[cfg(feature = "online")]
fn open_online(place: &Path) -> Result<AnyStore, PlaceError> {
    let url = place.to_str().unwrap_or_default();
    match crate::online::connect(url) {
        Ok(store) => Ok(AnyStore::Objects(Arc::new(crate::online::with_words(store, url)))),
        Err(error) => Err(PlaceError::Url { url: error.url, why: error.why }),
    }
}

#[cfg(not(feature = "online"))]
fn open_online(place: &Path) -> Result<AnyStore, PlaceError> {
    let why = "this build has no stores on a network: build it with the feature `online`";
    let url = scheme(place).unwrap_or_default();
    Err(PlaceError::Url { url: format!("{url}://"), why: why.into() })
}

/// How a server waits for a store on a network.
pub struct Network {
    /// How long, while the volume is opened.
    pub patience: Duration,
    /// Grows with each answer.
    pub answers: Arc<AtomicU64>,
}

/// How a server waits for the store at this place, which is open; `None` on a disk.
#[must_use]
pub fn network(place: &Path) -> Option<Network> {
    #[cfg(feature = "online")]
    if is_online(place) {
        // Opening it has refused a patience that makes no sense.
        let patience = crate::online::patience().unwrap_or(oblivio_store::waits::COMMAND);
        return Some(Network { patience, answers: crate::online::answers() });
    }
    let _ = place;
    None
}

/// As [`open`], for one who has no layer that outlasts outages: at a URL, what fails is repeated
/// for two minutes.
///
/// # Errors
/// Those of [`open`].
pub fn open_patiently(place: &Path) -> Result<AnyStore, PlaceError> {
    let store = open(place)?;
    #[cfg(feature = "online")]
    if is_online(place) {
        return Ok(crate::online::patiently(&store));
    }
    Ok(store)
}

/// The store in an existing folder, file or partition, or at a URL. Whether it holds a volume shows
/// when that is opened.
///
/// # Errors
/// Nothing is there, or nothing of ours; those of the system.
pub fn open(place: &Path) -> Result<AnyStore, PlaceError> {
    if is_online(place) {
        return open_online(place);
    }
    match std::fs::metadata(place) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(PlaceError::Missing(place.to_owned()));
        }
        Ok(found) if found.is_dir() && SyncFolder::is_one(place) => {
            let store = SyncFolder::open(place, beside::making().as_deref())?;
            return match store.online_only()? {
                Some(file) => Err(PlaceError::OnlineOnly { folder: place.to_owned(), file }),
                None => Ok(AnyStore::Objects(Arc::new(store))),
            };
        }
        Ok(found) if found.is_dir() => {}
        _ if PartitionStore::is_one(place)? => {
            return Ok(Arc::new(PartitionStore::open(place)?).into());
        }
        _ => return Err(PlaceError::NoVolume(place.to_owned())),
    }
    Ok(Arc::new(LocalStore::open(place)?).into())
}

/// The store of this name in a place that has several: a folder in a folder, which is made if it is
/// not there, or what is below a URL.
///
/// # Errors
/// Those of [`open`].
pub fn open_within(place: &Path, name: &str) -> Result<AnyStore, StoreError> {
    let failed = |why: String| StoreError::io(name, io::Error::other(why));
    let within = below(place, name);
    if !is_online(&within) {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&within);
        made.map_err(|error| StoreError::io(&within.display().to_string(), error))?;
    }
    open(&within).map_err(|error| match error {
        PlaceError::Store(error) => error,
        other => failed(other.to_string()),
    })
}

fn below(place: &Path, name: &str) -> PathBuf {
    match place.to_str().filter(|_| is_online(place)) {
        Some(url) => {
            let (path, query) = url.split_at(url.find('?').unwrap_or(url.len()));
            PathBuf::from(format!("{}/{name}{query}", path.trim_end_matches('/')))
        }
        None => place.join(name),
    }
}

/// A store made for a volume.
pub struct Made {
    place: PathBuf,
    store: AnyStore,
    /// Whether its folder or file is new.
    new: bool,
    /// Whether it is at a URL.
    online: bool,
}

impl Made {
    /// Makes a store in a folder, which is new or empty.
    ///
    /// # Errors
    /// Something is in the folder; those of the system.
    pub fn in_folder(place: &Path) -> Result<Self, StoreError> {
        let (new, place) = (!place.exists(), place.to_owned());
        let store = Arc::new(LocalStore::create(&place)?).into();
        Ok(Self { place, store, new, online: false })
    }

    /// Makes a store in a folder that a sync client copies, which is new or empty. Says whether its
    /// files are made outside of the folder.
    ///
    /// # Errors
    /// Something is in the folder; those of the system.
    pub fn in_sync_folder(place: &Path) -> Result<(Self, bool), StoreError> {
        let (new, place) = (!place.exists(), place.to_owned());
        let store = SyncFolder::create(&place, beside::making().as_deref())?;
        let outside = store.makes_outside();
        let store = AnyStore::Objects(Arc::new(store));
        Ok((Self { place, store, new, online: false }, outside))
    }

    /// A store at a URL, which makes nothing yet.
    ///
    /// # Errors
    /// Those of [`open`].
    pub fn at_url(place: &Path) -> Result<Self, PlaceError> {
        let store = open_patiently(place)?;
        Ok(Self { place: place.to_owned(), store, new: false, online: true })
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
        let fixed = objects.iter().map(|(name, bytes)| PartitionPlace::fixed(name, *bytes));
        let header = |object| PartitionPlace::new(object, HEADER_BYTES as u64);
        let places: Vec<_> = HEADER_OBJECTS.map(header).into_iter().chain(fixed).collect();
        let store = Arc::new(PartitionStore::create(place, &places, existing)?).into();
        Ok(Self { place: place.to_owned(), store, new, online: false })
    }

    /// The store.
    pub fn store(&self) -> AnyStore {
        self.store.clone()
    }

    /// Removes what was made: the volume did not come about.
    pub fn undo(self) {
        if self.online {
            // What is left has names of its own, and nothing refers to it. Others' objects stay.
            return;
        }
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

#[cfg(all(test, feature = "online"))]
mod tests {
    use super::*;

    #[test]
    fn a_name_goes_before_the_query_of_a_url() {
        let of = |place: &str| below(Path::new(place), "team").display().to_string();
        assert_eq!(of("s3://bucket/a?region=x"), "s3://bucket/a/team?region=x");
        assert_eq!(of("s3://bucket/a/"), "s3://bucket/a/team");
        assert_eq!(of("cloud:a"), "cloud:a/team");
        assert_eq!(of("/srv/tables"), "/srv/tables/team");
    }
}
