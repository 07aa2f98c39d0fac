//! Opening and making volumes.

use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::options::{CreateOptions, Knowledge, OpenOptions, SeenBy};
use crate::passphrase::Passphrase;
use crate::place::{self, Made};
use crate::remembered::Remembered;
use crate::volume::Volume;
use oblivio_store::partition::Existing;
use oblivio_volume::disk::{Disk as InnerDisk, size_in};
use oblivio_volume::fs::FileSystem;
use oblivio_volume::sequential::SequentialOptions;
use oblivio_volume::{BlockSpace, Keeper, Volume as Blocks};
use std::path::Path;

/// Bytes in a block of a volume made against snapshots.
const SEQUENTIAL_BLOCK: usize = 4 << 10;

impl OpenOptions {
    /// Opens the files of the volume in a folder, file or partition.
    ///
    /// # Errors
    /// `WrongPassphrase`, `NotFound`, `NotAVolume`, `HoldsDisk`, `Busy`, `RolledBack`,
    /// `OtherVolume`, `Forgotten`, `Tampered`, `Io`.
    pub fn open(
        self,
        place: impl AsRef<Path>,
        passphrase: impl Into<Passphrase>,
    ) -> Result<Volume> {
        let mut blocks = self.blocks(place.as_ref(), &passphrase.into())?;
        if size_in(blocks.root())?.is_some() {
            blocks.finish()?;
            return Err(Error::HoldsDisk);
        }
        Volume::over(FileSystem::open(Box::new(blocks))?)
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
        let mut blocks = self.blocks(place.as_ref(), &passphrase.into())?;
        if size_in(blocks.root())?.is_none() {
            blocks.finish()?;
            return Err(Error::HoldsFiles);
        }
        Ok(Disk::over(InnerDisk::open(Box::new(blocks))?))
    }

    fn blocks(self, place: &Path, passphrase: &Passphrase) -> Result<Blocks> {
        let store = place::open(place)?;
        Ok(Blocks::open(store, passphrase.secret(), self.inner(place)?)?)
    }

    fn inner(self, place: &Path) -> Result<oblivio_volume::OpenOptions> {
        let any = self.accept_other_volume;
        let keeper: Option<Box<dyn Keeper>> = match self.knowledge {
            Knowledge::OfUser => Some(Box::new(Remembered::at(place, any)?)),
            Knowledge::In(folder) => Some(Box::new(Remembered::in_folder(folder, place, any))),
            Knowledge::Nowhere => None,
        };
        Ok(oblivio_volume::OpenOptions {
            memory_bytes: self.memory,
            keeper,
            accept_rollback: self.accept_rollback,
            pad: self.pad,
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
        self.make(place.as_ref(), passphrase.into(), |blocks| {
            Volume::over(FileSystem::format(blocks)?)
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
        self.size = Some(size);
        self.make(place.as_ref(), passphrase.into(), |blocks| {
            Ok(Disk::over(InnerDisk::format(blocks, size)?))
        })
    }

    fn make<T>(
        self,
        place: &Path,
        passphrase: Passphrase,
        hold: impl FnOnce(Box<dyn BlockSpace>) -> Result<T>,
    ) -> Result<T> {
        self.check(&passphrase)?;
        let sequential = match self.seen_by {
            SeenBy::Storage => None,
            SeenBy::Snapshots => {
                let size = self.size.ok_or_else(|| Error::Invalid(UNSIZED.into()))?;
                Some(SequentialOptions::new(self.block_size.unwrap_or(SEQUENTIAL_BLOCK), size))
            }
        };
        let made = match &sequential {
            Some(options) if self.one_file || (place.exists() && !place.is_dir()) => {
                Made::in_one(place, options, Existing::Refuse)?
            }
            _ => Made::in_folder(place)?,
        };
        let done = self.fill(&made, place, &passphrase, sequential).and_then(hold);
        if done.is_err() {
            made.undo();
        }
        done
    }

    fn check(&self, passphrase: &Passphrase) -> Result<()> {
        let why = match () {
            () if passphrase.secret().is_empty() => "the passphrase is empty",
            () if self.size == Some(0) => "a volume of no size holds nothing",
            () if self.one_file && self.seen_by == SeenBy::Storage => {
                "one file is for volumes made against snapshots: this one grows with its content"
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
        sequential: Option<SequentialOptions>,
    ) -> Result<Box<dyn BlockSpace>> {
        // Whatever was here before, the caller means this volume.
        let open = self.open.accept_other_volume().inner(place)?;
        let (store, secret) = (made.store(), passphrase.secret());
        Ok(Box::new(match sequential {
            Some(options) => {
                let unheard = &mut |_, _| {};
                Blocks::create_sequential(store, secret, self.guessing, options, open, unheard)?
            }
            None => {
                let defaults = oblivio_volume::CreateOptions::default();
                let create = oblivio_volume::CreateOptions {
                    block_bytes: self.block_size.unwrap_or(defaults.block_bytes),
                    capacity_bytes: self.size.unwrap_or(defaults.capacity_bytes),
                    kdf: self.guessing,
                };
                Blocks::create(store, secret, create, open)?
            }
        }))
    }
}

const UNSIZED: &str = "a volume made against snapshots needs a size: it takes its space at once";
