//! The engines that this version knows, and volumes on them. Nothing else outside an engine's own
//! folder names one.

use crate::Result;
use crate::engine::EngineEntry;
use crate::extents::{self, ExtentOptions, ExtentVolume};
use crate::options::{CreateOptions, OpenOptions};
use crate::sequential::{self, SequentialOptions, SequentialVolume};
use crate::tree::{self, TreeVolume};
use crate::volume::{ClosedVolume, Volume};
use crate::windows::{self, WindowOptions, WindowVolume};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::{AnyStore, Objects, Store};
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
    /// As [`TreeVolume::create`].
    pub fn create(
        store: Arc<dyn Store>,
        passphrase: &Passphrase,
        create: CreateOptions,
        open: OpenOptions,
    ) -> Result<Self> {
        TreeVolume::create(store, passphrase, create, open).map(Self::from)
    }

    /// Creates a volume for observers of the store's writes, and opens it.
    ///
    /// # Errors
    /// As [`SequentialVolume::create`].
    pub fn create_sequential(
        store: Arc<dyn Store>,
        passphrase: &Passphrase,
        kdf: KdfParams,
        create: SequentialOptions,
        open: OpenOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self> {
        SequentialVolume::create(store, passphrase, kdf, create, open, progress).map(Self::from)
    }

    /// Creates a volume on a store of whole objects, and opens it.
    ///
    /// # Errors
    /// As [`WindowVolume::create`].
    pub fn create_windows(
        store: Arc<dyn Objects>,
        passphrase: &Passphrase,
        kdf: KdfParams,
        create: WindowOptions,
        open: OpenOptions,
    ) -> Result<Self> {
        WindowVolume::create(store, passphrase, kdf, create, open).map(Self::from)
    }

    /// Creates a volume in a folder that a sync client copies, and opens it.
    ///
    /// # Errors
    /// As [`ExtentVolume::create`].
    pub fn create_extents(
        store: Arc<dyn Objects>,
        passphrase: &Passphrase,
        kdf: KdfParams,
        create: ExtentOptions,
        open: OpenOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self> {
        ExtentVolume::create(store, passphrase, kdf, create, open, progress).map(Self::from)
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
    engine: Options,
    kdf: KdfParams,
}

#[derive(Clone, Copy, Debug)]
enum Options {
    Tree(CreateOptions),
    Sequential(SequentialOptions),
    Windows(WindowOptions),
    Extents(ExtentOptions),
}

/// What a new volume costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cost {
    /// It grows with its content, and an access moves a path of this many bytes, once `stored`
    /// bytes are in it.
    Growing {
        /// Bytes in the volume.
        stored: u64,
        /// Bytes of a path.
        path: u64,
    },
    /// It takes these bytes at once, and each byte is written this many times.
    Fixed {
        /// Bytes in the store.
        stored: u64,
        /// Bytes written for each.
        written_per_byte: f64,
    },
}

impl NewVolume {
    /// Of this block size and capacity.
    pub fn new(seen_by: SeenBy, block_bytes: usize, capacity_bytes: u64, kdf: KdfParams) -> Self {
        let engine = match seen_by {
            SeenBy::Storage => Options::Tree(CreateOptions { block_bytes, capacity_bytes, kdf }),
            SeenBy::Snapshots => {
                Options::Sequential(SequentialOptions::new(block_bytes, capacity_bytes))
            }
        };
        Self { engine, kdf }
    }

    /// For a store of whole objects, which creates exclusively or not.
    pub fn on_windows(
        block_bytes: usize,
        capacity_bytes: u64,
        exclusive: bool,
        kdf: KdfParams,
    ) -> Self {
        let create = WindowOptions::new(block_bytes, capacity_bytes, exclusive);
        Self { engine: Options::Windows(create), kdf }
    }

    /// In a folder that a sync client copies.
    pub fn in_extents(block_bytes: usize, capacity_bytes: u64, kdf: KdfParams) -> Self {
        let create = ExtentOptions::new(block_bytes, capacity_bytes);
        Self { engine: Options::Extents(create), kdf }
    }

    /// The same, filled with random bytes first, if it takes all of its space at once.
    #[must_use]
    pub fn filled(mut self, fill: bool) -> Self {
        match &mut self.engine {
            Options::Sequential(create) => create.fill = fill,
            Options::Extents(create) => create.sequential.fill = fill,
            Options::Tree(_) | Options::Windows(_) => {}
        }
        self
    }

    /// The same with objects of about this many bytes, if it is on a store of whole objects.
    #[must_use]
    pub fn with_objects_of(mut self, bytes: usize) -> Self {
        if let Options::Windows(create) = &mut self.engine {
            create.object_bytes = bytes;
        }
        self
    }

    /// The same with its map on the disk instead of in memory, if it has a choice.
    #[must_use]
    pub fn map_on_disk(mut self) -> Self {
        match &mut self.engine {
            Options::Sequential(create) => *create = create.map_on_disk(),
            Options::Extents(create) => create.sequential = create.sequential.map_on_disk(),
            Options::Tree(_) | Options::Windows(_) => {}
        }
        self
    }

    /// The objects beside the header, and their lengths, if these never change. Then one file or a
    /// partition can hold it.
    ///
    /// # Errors
    /// `Invalid` for impossible parameters.
    pub fn fixed_objects(&self) -> Result<Option<Vec<(&'static str, u64)>>> {
        match &self.engine {
            Options::Tree(_) | Options::Windows(_) | Options::Extents(_) => Ok(None),
            Options::Sequential(create) => create.objects().map(Some),
        }
    }

    /// What it costs; if it grows, once `stored` bytes are in it, or as many as it may hold.
    ///
    /// # Errors
    /// As [`Self::fixed_objects`].
    pub fn cost(&self, stored: u64) -> Result<Cost> {
        match &self.engine {
            Options::Tree(create) => {
                let stored = stored.min(create.capacity_bytes);
                Ok(Cost::Growing { stored, path: TreeVolume::path_bytes(create, stored) })
            }
            Options::Windows(create) => {
                let stored = stored.min(create.capacity_bytes);
                Ok(Cost::Growing { stored, path: create.path_bytes(stored) })
            }
            Options::Extents(create) => Ok(Cost::Fixed {
                stored: create.sequential.stored_bytes()?,
                written_per_byte: create.sequential.written_per_byte()?,
            }),
            Options::Sequential(create) => Ok(Cost::Fixed {
                stored: create.stored_bytes()?,
                written_per_byte: create.written_per_byte()?,
            }),
        }
    }

    /// Makes it in an empty store and opens it; `progress` gets the bytes filled.
    ///
    /// # Errors
    /// As [`Volume::create`] and [`Volume::create_sequential`].
    pub fn create(
        self,
        store: impl Into<AnyStore>,
        passphrase: &Passphrase,
        open: OpenOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Volume> {
        let store = store.into();
        match self.engine {
            Options::Tree(create) => Volume::create(store.over()?, passphrase, create, open),
            Options::Windows(create) => {
                Volume::create_windows(store.objects(), passphrase, self.kdf, create, open)
            }
            Options::Extents(create) => {
                let store = store.objects();
                Volume::create_extents(store, passphrase, self.kdf, create, open, progress)
            }
            Options::Sequential(create) => {
                let store = store.over()?;
                Volume::create_sequential(store, passphrase, self.kdf, create, open, progress)
            }
        }
    }
}
