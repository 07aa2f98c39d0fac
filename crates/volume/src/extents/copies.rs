//! The files of the folder, and this computer's own copies of them beside it.

use super::base::readable;
use super::entry::Epoch;
use super::seen::SeenFiles;
use super::shape::ExtentLayout;
use super::store::EpochSource;
use crate::Result;
use crate::damage::DamagedPlace;
use crate::options::Beside;
use oblivio_crypto::{VolumeId, digest};
use oblivio_store::{Objects, PutMode, Store, StoreError};
use std::sync::Arc;

/// The files in both places.
pub struct Copies {
    pub(super) folder: Arc<dyn Objects>,
    pub(super) beside: Arc<dyn Store>,
    link: Option<Arc<dyn Beside>>,
    volume: VolumeId,
    pub(super) shape: ExtentLayout,
    /// Files of the folder that were whole when they were read.
    pub(super) seen: SeenFiles,
    /// What this session found damaged and made whole.
    pub(super) healed: Vec<DamagedPlace>,
}

impl Copies {
    /// Those of a volume. Without a link to the place beside the folder there are no own copies.
    ///
    /// # Errors
    /// Those of the store beside the folder.
    pub fn new(
        (folder, beside): (Arc<dyn Objects>, Arc<dyn Store>),
        link: Option<Arc<dyn Beside>>,
        volume: VolumeId,
        shape: ExtentLayout,
    ) -> Result<Self> {
        let seen = SeenFiles::read(&*beside)?;
        Ok(Self { folder, beside, link, volume, shape, seen, healed: Vec::new() })
    }

    /// Where files of epochs are read: without a place beside the folder, they are not kept twice.
    pub fn source(&self) -> EpochSource {
        if self.link.is_some() { EpochSource::Beside } else { EpochSource::Folder }
    }

    /// Keeps all files of an epoch beside the folder. Gives the extents whose files have not
    /// arrived, or not as a whole.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn keep_all(&mut self, entry: &Epoch, source: EpochSource) -> Result<Vec<u64>> {
        let mut missing = Vec::new();
        for (extent, (id, expected)) in entry.files() {
            let (name, len) = (id.extent(extent), self.shape.bytes_of(extent));
            if source == EpochSource::Beside && self.beside.len(&name)? == Some(len) {
                continue;
            }
            let found = match self.folder.len(&name)? {
                Some(there) if there == len => readable(&*self.folder, &name)?,
                _ => None,
            };
            match found.filter(|bytes| digest(bytes) == expected) {
                Some(bytes) if source == EpochSource::Beside => self.keep(&name, &bytes)?,
                Some(_) => {}
                None => missing.push(extent),
            }
        }
        Ok(missing)
    }

    /// Keeps a file of the folder, which is whole, beside it too.
    ///
    /// # Errors
    /// Those of the store beside the folder.
    pub fn keep(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let linked = self.link.as_ref().is_some_and(|link| link.link(self.volume, name));
        if !linked || self.beside.len(name)? != Some(bytes.len() as u64) {
            self.beside.put(name, bytes, PutMode::Replace)?;
        }
        // A second name changes what the system has for it.
        self.seen.note(name, self.fingerprint(name));
        Ok(())
    }

    pub(super) fn fingerprint(&self, name: &str) -> Option<u64> {
        self.link.as_ref()?.fingerprint(name)
    }

    /// Notes beside the folder which files were seen whole.
    ///
    /// # Errors
    /// Those of the store beside the folder.
    pub fn write_seen(&mut self) -> Result<()> {
        self.seen.write(&*self.beside)
    }
}

/// Stores a file under a name that is only ours. One that is there already was put before a crash,
/// or by a sync client. It has the same bytes, or was damaged and gets them back.
pub fn put_new(folder: &dyn Objects, name: &str, bytes: &[u8]) -> Result<()> {
    match folder.put(name, bytes, PutMode::IfAbsent) {
        Err(StoreError::Exists { .. }) => {}
        done => return Ok(done?),
    }
    if readable(folder, name)?.is_none_or(|found| found != bytes) {
        folder.put(name, bytes, PutMode::Restore)?;
    }
    Ok(())
}
