//! The files of the folder, and this computer's own copies of them beside it.
//!
//! A sync client brings files in any order. One that is not here when it is needed may be late, or
//! lost. So what is made again in its place stays beside the folder at first, and is no damage. It
//! goes into the folder when this computer publishes an epoch that names it, or after [`LATE`].

use super::base::readable;
use super::entry::{Epoch, HeldExtent, OpenedEpoch};
use super::noted::{LATE_OBJECT, NotedFiles, SEEN_OBJECT};
use super::parity::{held, lone, recovered};
use super::shape::ExtentLayout;
use super::store::EpochSource;
use crate::Result;
use crate::damage::DamagedPlace;
use crate::environment::Clock;
use crate::options::Beside;
use oblivio_crypto::{VolumeId, digest};
use oblivio_store::{Objects, PutMode, Store, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Seconds after which a file that has not arrived counts as lost: some computers are off for a
/// night.
const LATE: u64 = 24 * 60 * 60;

/// Files that were made again, by their numbers.
pub type MadeAgain = BTreeMap<u64, Vec<u8>>;

/// The files in both places.
pub struct Copies {
    pub(super) folder: Arc<dyn Objects>,
    pub(super) beside: Arc<dyn Store>,
    link: Option<Arc<dyn Beside>>,
    clock: Arc<dyn Clock>,
    volume: VolumeId,
    pub(super) shape: ExtentLayout,
    /// Files of the folder that were whole when they were read.
    pub(super) seen: NotedFiles,
    /// Files that this computer has beside the folder, and never saw in it.
    pub(super) late: NotedFiles,
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
        (link, clock): (Option<Arc<dyn Beside>>, Arc<dyn Clock>),
        volume: VolumeId,
        shape: ExtentLayout,
    ) -> Result<Self> {
        let seen = NotedFiles::read(&*beside, SEEN_OBJECT)?;
        let (late, healed) = (NotedFiles::read(&*beside, LATE_OBJECT)?, Vec::new());
        Ok(Self { folder, beside, link, clock, volume, shape, seen, late, healed })
    }

    /// The most bytes of a file of an extent, or of an entry.
    pub(super) fn most_bytes(&self, extent: Option<u64>) -> u64 {
        match extent {
            Some(extent) => self.shape.bytes_of(extent),
            None => Epoch::most_bytes(self.shape.files()),
        }
    }

    /// Where files of epochs are read: without a place beside the folder, they are not kept twice.
    pub fn source(&self) -> EpochSource {
        if self.link.is_some() { EpochSource::Beside } else { EpochSource::Folder }
    }

    /// Keeps all files of an epoch beside the folder. Gives the extents whose files have not
    /// arrived, or not as a whole, and cannot be made again.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn keep_all(&mut self, entry: &Epoch) -> Result<Vec<u64>> {
        let mut missing = self.not_there(entry, self.source())?;
        for file in lone(&self.shape, &missing) {
            let Some(bytes) = self.made_again(entry, file)? else { continue };
            self.stand_in(entry, file, &bytes)?;
            missing.retain(|it| *it != file);
        }
        Ok(self.only_extents(missing))
    }

    /// Takes a file that was made again. One that has not arrived gets its time.
    fn stand_in(&mut self, entry: &Epoch, file: u64, bytes: &[u8]) -> Result<()> {
        let Some((id, _)) = held(&entry.table, file) else { return Ok(()) };
        let name = id.extent(file);
        if !self.may_be_late(&name, bytes.len())? {
            return self.restore(entry, file, bytes);
        }
        // First the note: without it, what is beside the folder was lost from it.
        self.miss(&name);
        self.late.write(&*self.beside)?;
        Ok(self.beside.put(&name, bytes, PutMode::Replace)?)
    }

    /// Whether a file of this length has not arrived, or not as a whole, and there is a place to
    /// keep it until it does.
    fn may_be_late(&self, name: &str, len: usize) -> Result<bool> {
        let there = self.folder.len(name)?.unwrap_or(0);
        Ok(self.source() == EpochSource::Beside && there < len as u64)
    }

    fn miss(&mut self, name: &str) {
        let since = self.late.get(name).unwrap_or_else(|| self.clock.date());
        self.late.note(name, Some(since));
    }

    /// Whether a file that the folder lacks may still come: this computer never saw it there, and
    /// has not missed it for long.
    pub(super) fn may_come(&self, name: &str) -> bool {
        let now = self.clock.date();
        self.late.get(name).is_some_and(|since| now.abs_diff(since) < LATE)
    }

    /// The extents whose files are not in the folder as a whole; of those that can be made again
    /// the bytes.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn look_for_all(&mut self, entry: &Epoch) -> Result<(Vec<u64>, MadeAgain)> {
        let mut missing = self.not_there(entry, EpochSource::Folder)?;
        let mut again = MadeAgain::new();
        for file in lone(&self.shape, &missing) {
            let Some(bytes) = self.made_again(entry, file)? else { continue };
            again.insert(file, bytes);
            missing.retain(|it| *it != file);
        }
        again.retain(|file, _| *file < self.shape.extents());
        Ok((self.only_extents(missing), again))
    }

    /// Nobody needs a parity where all extents are there.
    fn only_extents(&self, mut files: Vec<u64>) -> Vec<u64> {
        files.retain(|file| *file < self.shape.extents());
        files
    }

    /// The bytes of a file that is not whole, from all others of its group.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn made_again(&self, entry: &Epoch, file: u64) -> Result<Option<Vec<u8>>> {
        recovered(&self.shape, &entry.table, file, &mut |at, held| self.right(at, held))
    }

    /// The bytes of a file, from where they are right.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn right(&self, file: u64, (id, expected): HeldExtent) -> Result<Option<Vec<u8>>> {
        let name = id.extent(file);
        let right = |bytes: &Vec<u8>| digest(bytes) == expected;
        let most = self.shape.bytes_of(file);
        if self.source() == EpochSource::Beside
            && let Some(bytes) = readable(&*self.beside, &name, most)?.filter(right)
        {
            return Ok(Some(bytes));
        }
        Ok(readable(&*self.folder, &name, most)?.filter(right))
    }

    /// Puts a file that was made again where it belongs.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn restore(&mut self, entry: &Epoch, file: u64, bytes: &[u8]) -> Result<()> {
        let Some((id, _)) = held(&entry.table, file) else { return Ok(()) };
        let name = id.extent(file);
        put_new(&*self.folder, &name, bytes)?;
        if self.source() == EpochSource::Beside {
            self.keep(&name, bytes)?;
        }
        let why = "not whole in the folder; made again from the others".to_owned();
        self.healed.push(DamagedPlace { object: name, bytes: 0..0, why });
        Ok(())
    }

    /// The bytes of an entry, from whichever copy in the folder has them. The other one gets them
    /// too, unless it may still arrive.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn entry_of(&mut self, opened: &OpenedEpoch) -> Result<Option<Vec<u8>>> {
        let mut found = Vec::new();
        for name in opened.names() {
            let bytes = readable(&*self.folder, &name, self.most_bytes(None))?;
            found.push((name, bytes.filter(|bytes| digest(bytes) == opened.digest)));
        }
        let Some(right) = found.iter().find_map(|it| it.1.clone()) else { return Ok(None) };
        for (name, _) in found.into_iter().filter(|it| it.1.is_none()) {
            if self.may_be_late(&name, right.len())? {
                self.miss(&name);
                continue;
            }
            put_new(&*self.folder, &name, &right)?;
            let why = "not whole in the folder".into();
            self.healed.push(DamagedPlace { object: name, bytes: 0..0, why });
        }
        Ok(Some(right))
    }

    /// The files that are not there, or not as a whole. Those that are, are kept.
    fn not_there(&mut self, entry: &Epoch, source: EpochSource) -> Result<Vec<u64>> {
        let mut missing = Vec::new();
        for (extent, (id, expected)) in entry.files() {
            let (name, len) = (id.extent(extent), self.shape.bytes_of(extent));
            if source == EpochSource::Beside && self.beside.len(&name)? == Some(len) {
                continue;
            }
            let found = match self.folder.len(&name)? {
                Some(there) if there == len => readable(&*self.folder, &name, len)?,
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

    /// Notes beside the folder which files were seen whole, and which are missed.
    ///
    /// # Errors
    /// Those of the store beside the folder.
    pub fn write_notes(&mut self) -> Result<()> {
        self.seen.write(&*self.beside)?;
        self.late.write(&*self.beside)
    }
}

/// Stores a file under a name that is only ours. One that is there already was put before a crash,
/// or by a sync client. It has the same bytes, or was damaged and gets them back.
pub fn put_new(folder: &dyn Objects, name: &str, bytes: &[u8]) -> Result<()> {
    match folder.put(name, bytes, PutMode::IfAbsent) {
        Err(StoreError::Exists { .. }) => {}
        done => return Ok(done?),
    }
    let there = readable(folder, name, bytes.len() as u64)?;
    if there.is_none_or(|found| found != bytes) {
        folder.put(name, bytes, PutMode::Restore)?;
    }
    Ok(())
}
