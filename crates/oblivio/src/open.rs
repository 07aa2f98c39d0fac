//! Opening and making volumes.

use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::lanes;
use crate::options::{CreateOptions, Knowledge, OpenOptions};
use crate::passphrase::Passphrase;
#[cfg(feature = "share")]
use crate::shared;
use crate::volume::Volume;
use oblivio_app::others::{self, Wanted};
use oblivio_app::place::{self, Made};
use oblivio_app::{BesideFolder, Remembered, cache};
use oblivio_store::partition::Existing;
use oblivio_volume::disk::{Disk as InnerDisk, size_in};
use oblivio_volume::fs::FileSystem;
use oblivio_volume::{
    Beside, BlockSpace, ClosedVolume, Keeper, NewVolume, Records, SeenBy, Volume as Blocks, Which,
};
use std::path::Path;
use std::sync::Arc;

impl OpenOptions {
    /// Opens the files of the volume in a folder, file or partition, or at a URL.
    ///
    /// # Errors
    /// `WrongPassphrase`, `NotFound`, `NotAVolume`, `HoldsDisk`, `Busy`, `RolledBack`,
    /// `OtherVolume`, `Forgotten`, `Tampered`, `Io`; at a URL also `Held`, `Offline`, `Refused`.
    pub fn open(
        self,
        place: impl AsRef<Path>,
        passphrase: impl Into<Passphrase>,
    ) -> Result<Volume> {
        let (place, passphrase) = (place.as_ref(), passphrase.into());
        #[cfg(feature = "share")]
        if let Some(address) = shared::address(place) {
            return shared::open(&self, &address?, &passphrase);
        }
        let view = self.incomplete || matches!(self.history, Which::View(_));
        let wanted = Arc::default();
        let mut blocks = self.blocks(place, &passphrase, &wanted)?;
        if size_in(blocks.root())?.is_some() {
            blocks.finish()?;
            return Err(Error::HoldsDisk);
        }
        let lanes = lanes::of_files(&mut blocks)?;
        let fs = FileSystem::open(Box::new(blocks))?;
        if view { Ok(Volume::looked_at(fs)) } else { Volume::over(fs, lanes, wanted) }
    }

    /// Opens the disk that a volume holds.
    ///
    /// # Errors
    /// As for [`open`](Self::open), with `HoldsFiles` for `HoldsDisk`.
    pub fn open_disk(
        self,
        place: impl AsRef<Path>,
        passphrase: impl Into<Passphrase>,
    ) -> Result<Disk> {
        let (place, passphrase) = (place.as_ref(), passphrase.into());
        #[cfg(feature = "share")]
        if let Some(address) = shared::address(place) {
            return shared::open_disk(&self, &address?, &passphrase);
        }
        let view = self.incomplete || matches!(self.history, Which::View(_));
        let wanted = Arc::default();
        let mut blocks = self.blocks(place, &passphrase, &wanted)?;
        if size_in(blocks.root())?.is_none() {
            blocks.finish()?;
            return Err(Error::HoldsFiles);
        }
        let lanes = lanes::of_disks(&mut blocks)?;
        let disk = Disk::over(InnerDisk::open(Box::new(blocks))?, lanes, wanted);
        Ok(if view { disk.looked_at() } else { disk })
    }

    fn blocks(self, place: &Path, passphrase: &Passphrase, wanted: &Arc<Wanted>) -> Result<Blocks> {
        #[cfg(not(feature = "share"))]
        refuse_shared(place)?;
        let closed = ClosedVolume::read(place::open_patiently(place)?)?;
        let header = closed.header();
        let bytes = self.cache;
        let mut options = self.inner(place, header.engine.hides_reads)?;
        if place::is_online(place) {
            options.cache = cache::of(header.volume, bytes);
            let wanted = Arc::clone(wanted);
            options.on_wanted = Some(Box::new(move |host| wanted.tell(host)));
        }
        Ok(closed.open(passphrase.secret(), options)?)
    }

    /// For a volume that hides reads, or one that need not pad them.
    fn inner(self, place: &Path, hides_reads: bool) -> Result<oblivio_volume::OpenOptions> {
        let any = self.accept_other_volume;
        let beside: Option<Arc<dyn Beside>> = match &self.knowledge {
            Knowledge::OfUser => Some(Arc::new(BesideFolder::at(place)?)),
            Knowledge::In(folder) => Some(Arc::new(BesideFolder::in_folder(folder, place))),
            Knowledge::Nowhere => None,
        };
        let keeper: Option<Box<dyn Keeper>> = match self.knowledge {
            Knowledge::OfUser => Some(Box::new(Remembered::at(place, any)?)),
            Knowledge::In(folder) => Some(Box::new(Remembered::in_folder(folder, place, any))),
            Knowledge::Nowhere => None,
        };
        Ok(oblivio_volume::OpenOptions {
            memory_bytes: self.memory,
            keeper,
            beside,
            accept_rollback: self.accept_rollback,
            history: self.history,
            incomplete: self.incomplete,
            pad: self.pad && hides_reads,
            records: if self.strict { Records::First } else { Records::Ahead },
            host: others::host(),
            on_wait: others::on_wait(self.wait),
            ..oblivio_volume::OpenOptions::default()
        })
    }
}

impl CreateOptions {
    /// Makes a volume for files and opens it.
    ///
    /// # Errors
    /// `Exists` if something is at the place; `Invalid` for options that make no sense; `Full`,
    /// `Io`, `Forgotten`.
    pub fn create(
        self,
        place: impl AsRef<Path>,
        passphrase: impl Into<Passphrase>,
    ) -> Result<Volume> {
        let (place, passphrase) = (place.as_ref(), passphrase.into());
        #[cfg(feature = "share")]
        if let Some(address) = shared::address(place) {
            self.check(&passphrase, 0)?;
            return self.create_shared(&address?, &passphrase);
        }
        self.make(place, passphrase, |mut blocks| {
            let lanes = lanes::of_files(&mut blocks)?;
            Volume::over(FileSystem::format(Box::new(blocks))?, lanes, Arc::default())
        })
    }

    /// Makes a volume that holds a disk of `size` bytes, a multiple of 512, and opens it.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn create_disk(
        mut self,
        place: impl AsRef<Path>,
        passphrase: impl Into<Passphrase>,
        size: u64,
    ) -> Result<Disk> {
        let (place, passphrase) = (place.as_ref(), passphrase.into());
        self.size = Some(size);
        #[cfg(feature = "share")]
        if let Some(address) = shared::address(place) {
            self.check(&passphrase, 0)?;
            return self.create_shared_disk(&address?, &passphrase, size);
        }
        self.make(place, passphrase, |mut blocks| {
            let lanes = lanes::of_disks(&mut blocks)?;
            Ok(Disk::over(InnerDisk::format(Box::new(blocks), size)?, lanes, Arc::default()))
        })
    }

    fn make<T>(
        self,
        place: &Path,
        passphrase: Passphrase,
        hold: impl FnOnce(Blocks) -> Result<T>,
    ) -> Result<T> {
        let in_one = self.one_file || (place.exists() && !place.is_dir());
        let lanes = self.lanes.filter(|_| in_one);
        self.check(&passphrase, lanes.map_or(0, |lanes| lanes.count.into()))?;
        #[cfg(not(feature = "share"))]
        refuse_shared(place)?;
        if place::is_online(place) {
            return hold(self.make_online(place, &passphrase)?);
        }
        let size = match (self.size, self.seen_by) {
            (None, SeenBy::Snapshots) => return Err(Error::Invalid(UNSIZED.into())),
            (size, _) => size.unwrap_or(oblivio_volume::CreateOptions::default().capacity_bytes),
        };
        let block_size = self.block_size.unwrap_or(self.seen_by.block_bytes());
        let new = match self.sync_folder {
            true => NewVolume::in_extents(block_size, size, self.guessing),
            false => {
                NewVolume::new(self.seen_by, block_size, size, self.guessing).with_lanes(lanes)
            }
        };
        let made = match new.fixed_objects()? {
            Some(objects) if in_one => Made::in_one(place, &objects, Existing::Refuse)?,
            _ if self.sync_folder => Made::in_sync_folder(place)?.0,
            _ => Made::in_folder(place)?,
        };
        let done = self.fill(&made, place, &passphrase, new).and_then(hold);
        if done.is_err() {
            made.undo();
        }
        done
    }

    /// Tries out what the store at a URL does, then makes the volume there.
    #[cfg(feature = "online")]
    fn make_online(self, place: &Path, passphrase: &Passphrase) -> Result<Blocks> {
        use oblivio_app::online::{Begin, Effort, shape, try_out};
        if self.one_file || self.seen_by != SeenBy::Storage {
            return Err(Error::Invalid(
                "a volume in an online store hides reads, in a folder".into(),
            ));
        }
        let url = place.to_string_lossy();
        if let Some(name) = oblivio_app::moving::stranger(&place::open(place)?.objects().list()?) {
            return Err(Error::Exists(format!("{name}, which is of no volume,")));
        }
        let verdict = try_out(&url, Effort::SMALL);
        let exclusive = match verdict.map_err(|error| Error::NotAVolume(error.to_string()))?.begin {
            Begin::Exclusive => true,
            Begin::Alone => false,
            Begin::Refused(why) => return Err(Error::Invalid(why.into())),
        };
        let size = self.size.unwrap_or(oblivio_volume::CreateOptions::default().capacity_bytes);
        let shape = shape(&url).map_err(|error| Error::Invalid(error.to_string()))?;
        let block_size = self.block_size.unwrap_or(shape.block_bytes);
        let new = NewVolume::on_windows(block_size, size, exclusive, self.guessing)
            .with_objects_of(shape.object_bytes);
        self.fill(&Made::at_url(place)?, place, passphrase, new)
    }

    #[cfg(not(feature = "online"))]
    fn make_online(self, place: &Path, _: &Passphrase) -> Result<Blocks> {
        // It says that this build has none.
        place::open(place)?;
        Err(Error::Invalid("this build has no stores on a network".into()))
    }

    fn check(&self, passphrase: &Passphrase, lanes: usize) -> Result<()> {
        let why = match () {
            () if passphrase.secret().is_empty() => "the passphrase is empty",
            () if self.size == Some(0) => "a volume of no size holds nothing",
            () if self.one_file && self.seen_by == SeenBy::Storage => {
                "one file is for volumes made against snapshots: this one grows with its content"
            }
            () if self.one_file && self.sync_folder => {
                "a sync client sends one file again and again: leave one of the two out"
            }
            () if self.lane_passphrases.len() > lanes => {
                "more passphrases of lanes than lanes: a volume against snapshots in one file has one"
            }
            () if self.block_size.is_some_and(|bytes| {
                !bytes.is_power_of_two() || !(1 << 10..=1 << 20).contains(&bytes)
            }) =>
            {
                "the block size must be a power of two from 1 KiB to 1 MiB"
            }
            () => return Ok(()),
        };
        Err(Error::Invalid(why.into()))
    }

    fn fill(
        self,
        made: &Made,
        place: &Path,
        passphrase: &Passphrase,
        new: NewVolume,
    ) -> Result<Blocks> {
        let hides_reads = self.seen_by == SeenBy::Storage;
        // Whatever was here before, the caller means this volume.
        let open = self.open.accept_other_volume().inner(place, hides_reads)?;
        let unheard = &mut |_, _| {};
        let lanes: Vec<_> = self.lane_passphrases.iter().map(|lane| lane.secret()).collect();
        Ok(new.create_with((passphrase.secret(), &lanes), made.store(), open, unheard)?)
    }
}

#[cfg(not(feature = "share"))]
fn refuse_shared(place: &Path) -> Result<()> {
    match place::scheme(place) {
        Some("share") => {
            let why = "this build has no shared volumes: build it with the feature `share`";
            Err(Error::Invalid(why.into()))
        }
        _ => Ok(()),
    }
}

const UNSIZED: &str = "a volume made against snapshots needs a size: it takes its space at once";
