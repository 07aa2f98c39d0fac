//! The engines that this version knows, and volumes on them. Nothing else outside an engine's own
//! folder names one.

use crate::creation::{Cost, FixedObjects, NewOptions};
use crate::engine::{Creation, EngineEntry, Making};
use crate::options::{CreateOptions, OpenOptions};
use crate::sequential::LaneParameters;
use crate::tree::{self, TreeVolume};
use crate::volume::{ClosedVolume, Volume};
use crate::{Error, Result, extents, sequential, windows};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::{AnyStore, Store};
use std::sync::Arc;

/// All of them.
pub static ENGINES: &[&EngineEntry] =
    &[&tree::ENGINE, &sequential::ENGINE, &windows::ENGINE, &extents::ENGINE];

impl ClosedVolume {
    /// Reads the header of the volume in a store.
    ///
    /// # Errors
    /// `Unsupported` if this version knows no such volume.
    pub fn read(store: impl Into<AnyStore>) -> Result<Self> {
        Self::read_on(store, ENGINES)
    }
}

impl Volume {
    /// Creates a volume for a store that sees every read and every write, and opens it.
    ///
    /// # Errors
    /// As `TreeVolume::create`.
    pub fn create(
        store: Arc<dyn Store>,
        passphrase: &Passphrase,
        create: CreateOptions,
        open: OpenOptions,
    ) -> Result<Self> {
        TreeVolume::create(store, passphrase, create, open).map(Self::from)
    }

    /// Opens a volume; replays a session that did not end well.
    ///
    /// # Errors
    /// `WrongPassphrase`, `Unsupported`, `Tampered`, `RolledBack`, `Busy`.
    pub fn open(
        store: impl Into<AnyStore>,
        passphrase: &Passphrase,
        open: OpenOptions,
    ) -> Result<Self> {
        let store = store.into();
        // Nobody may write between the header and the rest.
        store.lock()?;
        ClosedVolume::read(store)?.open(passphrase, open)
    }
}

/// Who can see the storage, which decides how a volume works, and on which engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeenBy {
    /// The storage itself, which sees every read and every write: a cloud, a rented server.
    #[default]
    Storage,
    /// Somebody who sees what was written, however often, but never a read: an inspector who
    /// images the disk, a service that syncs a folder of this computer. Much faster; takes all of
    /// its space at once.
    Snapshots,
}

impl SeenBy {
    /// The block size that suits most.
    pub fn block_bytes(self) -> usize {
        match self {
            Self::Storage => CreateOptions::default().block_bytes,
            Self::Snapshots => 4 << 10,
        }
    }
}

/// A volume to make, on the engine for who sees it.
#[derive(Clone, Copy, Debug)]
pub struct NewVolume {
    engine: &'static EngineEntry,
    options: NewOptions,
}

impl NewVolume {
    /// Of this block size and capacity.
    pub fn new(seen_by: SeenBy, block_bytes: usize, capacity_bytes: u64, kdf: KdfParams) -> Self {
        let engine = match seen_by {
            SeenBy::Storage => &tree::ENGINE,
            SeenBy::Snapshots => &sequential::ENGINE,
        };
        Self::on(engine, block_bytes, capacity_bytes, kdf)
    }

    /// On this engine.
    pub fn on(
        engine: &'static EngineEntry,
        block_bytes: usize,
        capacity_bytes: u64,
        kdf: KdfParams,
    ) -> Self {
        let options = NewOptions {
            block_bytes,
            capacity_bytes,
            kdf,
            fill: false,
            map_on_disk: false,
            seeks: true,
            lanes: None,
            object_bytes: None,
            exclusive: false,
        };
        Self { engine, options }
    }

    /// For a store of whole objects, which creates exclusively or not.
    pub fn on_windows(
        block_bytes: usize,
        capacity_bytes: u64,
        exclusive: bool,
        kdf: KdfParams,
    ) -> Self {
        let mut new = Self::on(&windows::ENGINE, block_bytes, capacity_bytes, kdf);
        new.options.exclusive = exclusive;
        new
    }

    /// In a folder that a sync client copies.
    pub fn in_extents(block_bytes: usize, capacity_bytes: u64, kdf: KdfParams) -> Self {
        Self::on(&extents::ENGINE, block_bytes, capacity_bytes, kdf)
    }

    /// The same, filled with random bytes first, if it takes all of its space at once.
    #[must_use]
    pub fn filled(mut self, fill: bool) -> Self {
        self.options.fill = fill;
        self
    }

    /// The same with objects of about this many bytes, if it is on a store of whole objects.
    #[must_use]
    pub fn with_objects_of(mut self, bytes: usize) -> Self {
        self.options.object_bytes = Some(bytes);
        self
    }

    /// The same with its map on the disk instead of in memory, if it has a choice.
    #[must_use]
    pub fn map_on_disk(mut self) -> Self {
        self.options.map_on_disk = true;
        self
    }

    /// The same for a disk without seeks, or with them, if that makes a difference.
    #[must_use]
    pub fn with_seeks(mut self, seeks: bool) -> Self {
        self.options.seeks = seeks;
        self
    }

    /// The same with lanes beside it, if it is against snapshots.
    #[must_use]
    pub fn with_lanes(mut self, lanes: Option<LaneParameters>) -> Self {
        self.options.lanes = lanes;
        self
    }

    /// The objects beside the header, and their lengths, if these never change. Then one file or a
    /// partition can hold it.
    ///
    /// # Errors
    /// `Invalid` for impossible parameters.
    pub fn fixed_objects(&self) -> Result<Option<FixedObjects>> {
        (self.making()?.fixed_objects)(&self.options)
    }

    /// What it costs; if it grows, once `stored` bytes are in it, or as many as it may hold.
    ///
    /// # Errors
    /// As [`Self::fixed_objects`].
    pub fn cost(&self, stored: u64) -> Result<Cost> {
        (self.making()?.cost)(&self.options, stored)
    }

    /// Makes it in an empty store and opens it; `progress` gets the bytes filled.
    ///
    /// # Errors
    /// `Exists` if there is a volume already, `Invalid` if there is something else or the options
    /// make no sense; those of the store.
    pub fn create(
        self,
        store: impl Into<AnyStore>,
        passphrase: &Passphrase,
        open: OpenOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Volume> {
        self.create_with((passphrase, &[]), store, open, progress)
    }

    /// The same, with passphrases of its lanes behind its own, of the first lane first.
    ///
    /// # Errors
    /// As [`Self::create`]; `Unsupported` for more lanes than it has, `Invalid` if a lane has the
    /// passphrase of another one or of the volume: who knows that would open both.
    pub fn create_with(
        self,
        (passphrase, lanes): (&Passphrase, &[&Passphrase]),
        store: impl Into<AnyStore>,
        open: OpenOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Volume> {
        let all: Vec<&Passphrase> = lanes.iter().copied().chain([passphrase]).collect();
        let twice = |(at, one): (usize, &&Passphrase)| all[..at].iter().any(|it| it.same_as(one));
        if all.iter().enumerate().any(twice) {
            return Err(Error::Invalid("a lane needs a passphrase of its own".into()));
        }
        if lanes.len() > self.options.lanes.map_or(0, |lanes| lanes.count.into()) {
            return Err(Error::Unsupported("the volume has fewer lanes".into()));
        }
        let place = Creation { store: store.into(), passphrase, lanes, open, progress };
        (self.making()?.create)(&self.options, place).map(Volume::of)
    }

    fn making(&self) -> Result<&'static Making> {
        let making = self.engine.making.as_ref();
        making.ok_or_else(|| Error::Unsupported("no new volume is made on this engine".into()))
    }
}
