//! The engines that this version knows, and volumes on them. Nothing else outside an engine's own
//! folder names one.

use crate::Result;
use crate::engine::EngineEntry;
use crate::options::{CreateOptions, OpenOptions};
use crate::sequential::{self, SequentialOptions, SequentialVolume};
use crate::tree::{self, TreeVolume};
use crate::volume::{ClosedVolume, Volume};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::Store;
use std::sync::Arc;

/// All of them.
pub static ENGINES: &[&EngineEntry] = &[&tree::ENGINE, &sequential::ENGINE];

impl ClosedVolume {
    /// Reads the header of the volume in a store.
    ///
    /// # Errors
    /// `Unsupported` if this version knows no such volume.
    pub fn read(store: Arc<dyn Store>) -> Result<Self> {
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

    /// Opens a volume; replays a session that did not end well.
    ///
    /// # Errors
    /// `WrongPassphrase`, `Unsupported`, `Tampered`, `RolledBack`, `Busy`.
    pub fn open(store: Arc<dyn Store>, passphrase: &Passphrase, open: OpenOptions) -> Result<Self> {
        // Nobody may write between the header and the rest.
        store.lock()?;
        ClosedVolume::read(store)?.open(passphrase, open)
    }
}
